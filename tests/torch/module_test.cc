// The module as the daemon loads it: this binary is linked without LibTorch.
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "compute/model.h"
#include "compute/model_module.h"

namespace kith::compute {
namespace {

const std::string kModule = std::string(KITH_BINARY_DIR) + "/lib/libkith_torch.so";

ModelSpec digits() {
  ModelSpec spec;
  spec.kind = "cnn";
  spec.input_shape = {1, 28, 28};
  spec.device = "cpu";
  return spec;
}

std::size_t threads_here() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    ++count;
  return count;
}

bool libtorch_is_mapped() {
  std::ifstream maps("/proc/self/maps");
  const std::string text{std::istreambuf_iterator<char>(maps), {}};
  return text.find("libtorch_cpu") != std::string::npos;
}

// First in this file: GoogleTest runs tests in the order of their definition.
TEST(TorchModule, IsLoadedOnlyWhenAModelNeedsIt) {
  ModelSpec spec = digits();
  spec.kind = "linear";
  ASSERT_TRUE(make_model(spec, {}, kModule));
  EXPECT_FALSE(libtorch_is_mapped());
  spec.kind = "cnn";
  const auto model = make_model(spec, {}, kModule);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_TRUE(libtorch_is_mapped());
  EXPECT_EQ((*model)->device(), "cpu");
  EXPECT_EQ((*model)->schema().value_count, 105866U);
}

TEST(TorchModule, IsFoundBesideTheBinary) {
  const auto model = make_model(digits(), {});
  EXPECT_TRUE(model) << model.error().message;
}

TEST(TorchModule, MissingOneIsAnErrorThatSaysWhatToDo) {
  const auto model = make_model(digits(), {}, "/nowhere/libkith_torch.so");
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("/nowhere/libkith_torch.so"), std::string::npos);
  EXPECT_NE(model.error().message.find("KITH_TORCH=ON"), std::string::npos);
}

TEST(TorchModule, ErrorsOfASpecCrossTheBorder) {
  ModelSpec spec = digits();
  spec.channels = {4, 4, 4, 4, 4, 4};
  const auto model = make_model(spec, {}, kModule);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::kUsage);
  EXPECT_NE(model.error().message.find("28 x 28"), std::string::npos) << model.error().message;
}

// A pool as large as the machine makes several daemons on one host fight for the same cores.
TEST(TorchModule, StartsNoMoreThreadsThanItMayUseCores) {
  std::size_t before = 0;
  std::size_t after = 0;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    before = threads_here();  // LibTorch starts threads as soon as it is told how many
    ModelSpec spec = digits();
    spec.threads = 64;
    const auto model = make_model(spec, {}, kModule);
    ASSERT_TRUE(model) << model.error().message;
    const std::vector<float> inputs(64 * 784, 0.5F);
    const std::vector<std::int64_t> labels(64, 3);
    for (int i = 0; i < 3; ++i) (*model)->step({inputs, labels, 64}, 0.01);
    (*model)->evaluate({inputs, labels, 64});
    after = threads_here();
  }).join();
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace kith::compute
