// FlatModel: a model that is nothing but its values. Benchmarks that need a replica use it in the
// trainer's place.
#pragma once

#include <algorithm>
#include <vector>

#include "compute/kernels.h"
#include "compute/model.h"

namespace kith::bench {

class FlatModel final : public compute::Model {
 public:
  explicit FlatModel(std::size_t values) : values_(values) {
    schema_.value_count = values;
    schema_.tensors.push_back({"values",
                               {static_cast<std::int64_t>(values)},
                               compute::TensorKind::kParameter,
                               0,
                               values});
  }
  [[nodiscard]] std::vector<float>& values() { return values_; }

  [[nodiscard]] const compute::ModelSchema& schema() const override { return schema_; }
  [[nodiscard]] std::string_view device() const override { return "cpu"; }
  compute::StepResult step(const compute::Batch&, double) override { return {}; }
  compute::EvalResult evaluate(const compute::Batch&) override { return {}; }
  std::size_t merge_and_publish(std::size_t offset, std::span<const float> taken,
                                std::span<float> published) override {
    float* x = values_.data() + offset;
    if (!taken.empty() && !published.empty())
      compute::add_and_copy(x, taken.data(), published.data(), taken.size());
    else if (!taken.empty())
      compute::add(x, taken.data(), taken.size());
    else
      std::copy_n(x, published.size(), published.data());
    return 0;
  }
  void read_values(std::size_t offset, std::span<float> out) const override {
    std::copy_n(values_.data() + offset, out.size(), out.data());
  }
  void write_values(std::size_t offset, std::span<const float> values) override {
    std::copy(values.begin(), values.end(), values_.data() + offset);
  }
  [[nodiscard]] std::vector<std::int64_t> read_integers() const override { return {}; }
  void write_integers(std::span<const std::int64_t>) override {}
  [[nodiscard]] compute::StateBytes optimizer_state() const override { return {}; }
  Status load_optimizer_state(std::span<const std::byte>) override { return {}; }
  void reset_optimizer() override {}

 private:
  compute::ModelSchema schema_;
  std::vector<float> values_;
};

}  // namespace kith::bench
