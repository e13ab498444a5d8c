// A model that tests steer: its values drift by a constant at each step, and a test may stop it
// inside a merge or make its loss not finite.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "compute/model.h"

namespace kith::compute::testing {

class FakeModel final : public Model {
 public:
  explicit FakeModel(std::size_t count) : x(count, 0.0f) {
    schema_.tensors.push_back(
        {"x", {static_cast<std::int64_t>(count)}, TensorKind::kParameter, 0, count});
    schema_.value_count = count;
    schema_.classes = 2;
  }

  std::vector<float> x;
  float drift = 0.0f;
  double loss = 1.0;
  std::function<void()> inside_merge = [] {
  };  // after x += taken, before the publication is written
  std::function<void()> inside_step = [] {};
  std::function<void(const Batch&)> at_batch = [](const Batch&) {};
  std::size_t merges = 0;
  std::size_t moments_reset = 0;

  [[nodiscard]] const ModelSchema& schema() const override { return schema_; }
  [[nodiscard]] std::string_view device() const override { return "cpu"; }
  StepResult step(const Batch& batch, double) override {
    inside_step();
    at_batch(batch);
    StepResult result;
    result.loss = loss;
    result.finite = loss == loss;
    if (result.finite) {
      for (float& v : x) v += drift;
    }
    return result;
  }
  EvalResult evaluate(const Batch& batch) override { return {0.5, 0.25, batch.count}; }
  std::size_t merge_and_publish(std::size_t offset, std::span<const float> taken,
                                std::span<float> published) override {
    ++merges;
    for (std::size_t i = 0; i < taken.size(); ++i) x[offset + i] += taken[i];
    inside_merge();
    std::copy_n(x.begin() + static_cast<std::ptrdiff_t>(offset), published.size(),
                published.begin());
    return 0;
  }
  void read_values(std::size_t offset, std::span<float> out) const override {
    std::copy_n(x.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }
  void write_values(std::size_t offset, std::span<const float> values) override {
    std::copy(values.begin(), values.end(), x.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  [[nodiscard]] std::vector<std::int64_t> read_integers() const override { return {}; }
  void write_integers(std::span<const std::int64_t>) override {}
  [[nodiscard]] StateBytes optimizer_state() const override { return StateBytes(1); }
  Status load_optimizer_state(std::span<const std::byte>) override { return {}; }
  void reset_optimizer() override { ++moments_reset; }

 private:
  ModelSchema schema_;
};

}  // namespace kith::compute::testing
