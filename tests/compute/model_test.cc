#include "compute/model.h"

#include <gtest/gtest.h>

#include <functional>

#include "compute/model_module.h"

namespace kith::compute {
namespace {

ModelSpec spec_of(const std::string& kind) {
  ModelSpec spec;
  spec.kind = kind;
  spec.input_shape = {1, 28, 28};
  return spec;
}

TEST(Models, TheTableNamesTheKinds) {
  std::vector<std::string> kinds;
  for (const ModelInfo& info : model_kinds()) kinds.emplace_back(info.kind);
  EXPECT_EQ(kinds, (std::vector<std::string>{"linear", "mlp", "cnn", "cnn-batchnorm"}));
}

TEST(Models, AnUnknownKindIsAUsageErrorThatNamesTheNearest) {
  for (const auto& [typed, meant] : {std::pair{"liner", "linear"},
                                     {"cnn-batch-norm", "cnn-batchnorm"},
                                     {"CNN", "cnn"},
                                     {"mpl", "mlp"}}) {
    const auto model = make_model(spec_of(typed), {});
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().code, ErrorCode::kUsage);
    EXPECT_NE(model.error().message.find("did you mean '" + std::string(meant) + "'"),
              std::string::npos)
        << model.error().message;
  }
}

TEST(Models, BadSpecificationsOfTheLinearModelAreUsageErrors) {
  const auto code = [](const ModelSpec& spec, const OptimizerSpec& optimizer = {}) {
    const auto model = make_model(spec, optimizer);
    return model ? ErrorCode::kFailed : model.error().code;
  };
  auto spec = spec_of("linear");
  EXPECT_TRUE(make_model(spec, {}));
  EXPECT_EQ(code(spec, {.name = "sgdx"}), ErrorCode::kUsage);
  spec.classes = 1;
  EXPECT_EQ(code(spec), ErrorCode::kUsage);
  spec = spec_of("linear");
  spec.device = "cuda:0";
  EXPECT_EQ(code(spec), ErrorCode::kUsage);
  spec.device = "auto";
  spec.input_shape = {1 << 20, 1 << 20, 1 << 20};
  EXPECT_EQ(code(spec), ErrorCode::kUsage);
  spec.input_shape = {0};
  EXPECT_EQ(code(spec), ErrorCode::kUsage);
  spec.input_shape = {};
  EXPECT_EQ(code(spec), ErrorCode::kUsage);
}

TEST(Models, AMissingModuleOrOneOfAnotherKindSaysWhatToDo) {
  const auto missing = make_model(spec_of("cnn"), {}, "/nowhere/libkith_torch.so");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("/nowhere/libkith_torch.so, which is not there"),
            std::string::npos);
  EXPECT_NE(missing.error().message.find("linear"), std::string::npos);
  const auto no_library = make_model(spec_of("cnn"), {}, "/proc/self/exe");
  ASSERT_FALSE(no_library);
  EXPECT_EQ(no_library.error().code, ErrorCode::kFailed);
  EXPECT_NE(no_library.error().message.find("cannot load the module"), std::string::npos)
      << no_library.error().message;
}

TEST(Models, TheModuleIsLookedForBesideTheBinary) {
  const std::string path = default_module_path();
  EXPECT_TRUE(path.ends_with("/lib/libkith_torch.so")) << path;
  EXPECT_TRUE(path.starts_with("/")) << path;
}

TEST(SchemaHash, SeesNamesShapesKindsClassesAndFragments) {
  const auto schema = [] { return (*make_model(spec_of("linear"), {}))->schema(); };
  const auto plain = schema().hash(4096);
  EXPECT_EQ(plain, schema().hash(4096));
  EXPECT_NE(plain, schema().hash(8192));
  const std::function<void(ModelSchema&)> kChanges[] = {
      [](auto& s) { s.tensors[0].name = "w"; },
      [](auto& s) { std::swap(s.tensors[0].shape[0], s.tensors[0].shape[1]); },
      [](auto& s) { s.tensors[1].kind = TensorKind::kBuffer; },
      [](auto& s) { s.classes = 11; },
      [](auto& s) { s.tensors.pop_back(); },
  };
  for (const auto& change : kChanges) {
    auto other = schema();
    change(other);
    EXPECT_NE(other.hash(4096), plain);
  }
}

}  // namespace
}  // namespace kith::compute
