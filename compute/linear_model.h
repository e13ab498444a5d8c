// `linear`: softmax regression, logits = W x + b, mean cross entropy. Plain C++ on one thread: for
// light tests, tiny machines, and as a second implementation of Model beside LibTorch. Names as in
// torch.nn.Linear over flattened samples: "weight" [classes, features], "bias" [classes]. Results
// do not depend on the width of the processor's vectors.
#pragma once

#include <memory>
#include <vector>

#include "compute/model.h"
#include "compute/optimizer.h"

namespace kith::compute {

class LinearModel final : public Model {
 public:
  // kUsage: no input shape, fewer than two classes, a GPU asked for, optimiser out of range.
  static Result<std::unique_ptr<Model>> make(const ModelSpec& spec, const OptimizerSpec& optimizer);
  LinearModel(const ModelSpec& spec, const OptimizerSpec& optimizer);

  [[nodiscard]] const ModelSchema& schema() const override { return schema_; }
  [[nodiscard]] std::string_view device() const override { return "cpu"; }
  StepResult step(const Batch& batch, double learning_rate) override;
  EvalResult evaluate(const Batch& batch) override;
  std::size_t merge_and_publish(std::size_t offset, std::span<const float> taken,
                                std::span<float> published) override;
  void read_values(std::size_t offset, std::span<float> out) const override;
  void write_values(std::size_t offset, std::span<const float> values) override;
  [[nodiscard]] std::vector<std::int64_t> read_integers() const override { return {}; }
  void write_integers(std::span<const std::int64_t> values) override;
  [[nodiscard]] StateBytes optimizer_state() const override { return optimizer_.state(); }
  Status load_optimizer_state(std::span<const std::byte> bytes) override {
    return optimizer_.load(bytes);
  }
  void reset_optimizer() override { optimizer_.reset(); }

 private:
  void initialise(std::uint64_t seed);
  void forward(const float* sample, std::span<float> logits) const;
  double forward_batch(const Batch& batch);
  void backward_batch(const Batch& batch);

  const std::size_t features_;
  const std::size_t classes_;
  const OptimizerSpec spec_;
  ModelSchema schema_;
  std::vector<float> values_;  // weight, then bias
  std::vector<float> gradient_;
  std::vector<float> errors_;  // per sample of the batch: softmax - one-hot, divided by the count
  Optimizer optimizer_;
};

}  // namespace kith::compute
