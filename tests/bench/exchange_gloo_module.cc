// Gloo out of LibTorch as a lane: one all-reduce of the model, halved. A module of its own, loaded
// by exchange_gloo.cc, so that kith_bench itself needs no LibTorch. The only file here that sees
// torch headers.
#define USE_C10D_GLOO
#include <ATen/ATen.h>

#include <cstring>
#include <exception>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "tests/bench/exchange_lane.h"

namespace kith::bench {
namespace {

class GlooLane final : public Lane {
 public:
  GlooLane(int side, const std::string& store_file, std::size_t values);
  [[nodiscard]] std::string_view name() const override { return "gloo all-reduce"; }
  void prepare(std::uint64_t round) override;
  Status run() override;
  Result<std::uint64_t> check(std::uint64_t round) override;

 private:
  int side_;
  std::vector<at::Tensor> values_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
};

GlooLane::GlooLane(int side, const std::string& store_file, std::size_t values)
    : side_(side), values_{at::zeros({static_cast<std::int64_t>(values)})} {
  auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::seconds(60));
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1", false));
  const auto store = c10::make_intrusive<c10d::FileStore>(store_file, 2);
  group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store, side, 2, options);
}

void GlooLane::prepare(std::uint64_t round) {
  auto* at = values_[0].data_ptr<float>();
  for (std::int64_t i = 0; i < values_[0].numel(); ++i)
    at[i] = start_value(side_, round, static_cast<std::size_t>(i));
}

Status GlooLane::run() {
  try {
    group_->allreduce(values_)->wait();
    values_[0].mul_(0.5);
    return {};
  } catch (const std::exception& error) {
    return fail(std::string("gloo: ") + error.what());
  }
}

Result<std::uint64_t> GlooLane::check(std::uint64_t round) {
  const auto* at = values_[0].data_ptr<float>();
  for (std::int64_t i = 0; i < values_[0].numel(); ++i)
    if (at[i] != mean_value(round, static_cast<std::size_t>(i))) return fail("gloo: not the mean");
  return std::uint64_t{0};
}

}  // namespace
}  // namespace kith::bench

// Null, with the reason on stderr, if there is no group.
extern "C" __attribute__((visibility("default"))) kith::bench::Lane* kith_bench_make_gloo_lane(
    int side, const char* store_file, std::size_t values) {
  try {
    return new kith::bench::GlooLane(side, store_file, values);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kith_bench: gloo: %s\n", error.what());
    return nullptr;
  }
}
