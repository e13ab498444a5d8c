// Optimisers in plain C++ over a flat run of parameters: SGD (momentum, Nesterov), Adam (Kingma and
// Ba 2015), AdamW (Loshchilov and Hutter 2019), with the update formulas of PyTorch, in fp32. For
// the linear model; LibTorch models use LibTorch's own. Deterministic: elementwise, in order.
// Thread: one owner.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "compute/model.h"

namespace kith::compute {

// kUsage: unknown name, or a value out of range, naming the key of [train].
Status validate(const OptimizerSpec& spec);

// Scales the gradient to clip_norm if its norm is above it: g *= clip_norm / (norm + 1e-6), at
// most 1. 0 = off.
void clip_gradient(std::span<float> gradient, double norm, double clip_norm);
double norm_of(std::span<const float> values);

class Optimizer {
 public:
  Optimizer(const OptimizerSpec& spec, std::size_t count);

  // One update of `parameters` by `gradient` (which is overwritten where weight decay is added).
  void step(std::span<float> parameters, std::span<float> gradient, double learning_rate);

  [[nodiscard]] StateBytes state() const;
  Status load(std::span<const std::byte> bytes);  // on error the old state stays
  void reset();

 private:
  void sgd(std::span<float> parameters, std::span<float> gradient, float learning_rate);
  void adam(std::span<float> parameters, std::span<float> gradient, double learning_rate);
  [[nodiscard]] bool is_sgd() const { return spec_.name == "sgd"; }
  [[nodiscard]] std::size_t tensors_used() const;

  const OptimizerSpec spec_;
  const std::size_t count_;
  std::uint64_t steps_ = 0;
  std::vector<float> first_;   // momentum buffer, or Adam's first moment; empty until used
  std::vector<float> second_;  // Adam's second moment
};

}  // namespace kith::compute
