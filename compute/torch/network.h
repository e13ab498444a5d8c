// The network: a plan's layers run on tensors that are all views into one flat fp32 tensor in
// schema order.
//
// Why flat: a merge adds one span to another, whatever the tensors in it; a fragment is a range.
// The views share the flat tensor's storage but no version counter, so that BatchNorm may write its
// running statistics between the forward and the backward pass; nothing else writes while a graph
// is alive. Thread: the model's. Errors: torch's exceptions pass through; TorchModel ends them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compute/torch/aten.h"
#include "compute/torch/plan.h"

namespace kith::compute::torch {

class Network {
 public:
  Network(NetworkPlan plan, at::Device device);

  [[nodiscard]] const NetworkPlan& plan() const { return plan_; }
  [[nodiscard]] const at::Tensor& flat() const { return flat_; }
  [[nodiscard]] std::vector<std::int64_t>& integers() { return integers_; }
  [[nodiscard]] const std::vector<std::int64_t>& integers() const { return integers_; }
  [[nodiscard]] const std::vector<at::Tensor>& parameters() const { return parameters_; }

  // (count, sample values) -> (count, classes). Training mode updates BatchNorm's statistics, but
  // not its counters.
  at::Tensor forward(const at::Tensor& inputs, bool training);

  // BatchNorm's statistics before a step, so that a step that was not made leaves none behind.
  void save_statistics();
  void restore_statistics();
  void count_batch();

  // The gradients of the parameters in their order, taken away from them.
  std::vector<at::Tensor> take_gradients();

 private:
  at::Tensor run(const Layer& layer, const at::Tensor& inputs, bool training);

  NetworkPlan plan_;
  at::Tensor flat_;
  std::vector<at::Tensor> tensors_;     // views, as in schema.tensors (floats only)
  std::vector<at::Tensor> parameters_;  // those that are trained
  std::vector<at::Tensor> statistics_;  // running means and variances
  std::vector<at::Tensor> saved_;
  std::vector<std::int64_t> integers_;
};

}  // namespace kith::compute::torch
