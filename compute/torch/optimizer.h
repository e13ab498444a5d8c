// SGD (momentum, Nesterov), Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019) on
// views of flat moments.
//
// Bit for bit the same as torch::optim: the same element-wise operations on the same tensors in the
// same order. Our own, because torch's keep their moments per tensor behind names, and a checkpoint
// or a donor wants them as flat bytes. Thread: the model's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "compute/model.h"
#include "compute/torch/aten.h"

namespace kith::compute::torch {

class Optimizer {
 public:
  Optimizer(OptimizerSpec spec, std::vector<at::Tensor> parameters);

  // 2-norm over all gradients, as torch.nn.utils.clip_grad_norm_ takes it; clip() scales them as it
  // would.
  at::Tensor norm(const std::vector<at::Tensor>& gradients) const;
  void clip(std::vector<at::Tensor>& gradients, const at::Tensor& norm) const;

  void step(const std::vector<at::Tensor>& gradients, double learning_rate);

  // As optimizer_state.h lays it out. Tensors: sgd with momentum 1 (velocity), adam and adamw 2
  // (first and second moment), all over the parameters in schema order without buffers.
  [[nodiscard]] StateBytes state() const;
  Status load(std::span<const std::byte> bytes);
  void reset();

 private:
  struct Moments {
    at::Tensor flat;
    std::vector<at::Tensor> views;  // one per parameter
  };
  Moments make_moments() const;
  void step_sgd(std::size_t index, at::Tensor gradient, double learning_rate);
  void step_adam(std::size_t index, at::Tensor gradient, double learning_rate);

  OptimizerSpec spec_;
  std::vector<at::Tensor> parameters_;
  std::vector<Moments> moments_;  // none, velocity, or first and second moment
  std::uint64_t steps_ = 0;
};

}  // namespace kith::compute::torch
