#include "compute/torch/network.h"

#include <utility>

#include "compute/torch/relu_pool.h"

namespace kith::compute::torch {

Network::Network(NetworkPlan plan, at::Device device) : plan_(std::move(plan)) {
  const ModelSchema& schema = plan_.schema;
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device);
  flat_ = at::zeros({static_cast<std::int64_t>(schema.value_count)}, options);
  integers_.resize(schema.integer_count);
  for (const TensorInfo& info : schema.tensors) {
    if (info.kind == TensorKind::kIntegerBuffer) continue;
    at::Tensor view = flat_
                          .narrow(0, static_cast<std::int64_t>(info.offset),
                                  static_cast<std::int64_t>(info.count))
                          .view(info.shape)
                          .variable_data();
    if (info.kind == TensorKind::kParameter) {
      view.set_requires_grad(true);
      parameters_.push_back(view);
    } else {
      statistics_.push_back(view);
      saved_.push_back(at::zeros(info.shape, options));
    }
    tensors_.push_back(std::move(view));
  }
}

at::Tensor Network::forward(const at::Tensor& inputs, bool training) {
  std::vector<std::int64_t> shape = plan_.input_shape;
  shape.insert(shape.begin(), inputs.size(0));
  at::Tensor values = inputs.view(shape);
  for (const Layer& layer : plan_.layers) values = run(layer, values, training);
  return values;
}

at::Tensor Network::run(const Layer& layer, const at::Tensor& inputs, bool training) {
  const auto tensor = [&](std::size_t i) -> const at::Tensor& {
    return tensors_[layer.tensors[i]];
  };
  switch (layer.kind) {
    case LayerKind::kFlatten:
      return inputs.flatten(1);
    case LayerKind::kLinear:
      return at::linear(inputs, tensor(0), tensor(1));
    case LayerKind::kConv:
      return at::conv2d(inputs, tensor(0), tensor(1), /*stride=*/1, /*padding=*/1);
    case LayerKind::kBatchNorm:
      return at::batch_norm(inputs, tensor(0), tensor(1), tensor(2), tensor(3), training,
                            /*momentum=*/0.1, /*eps=*/1e-5, at::globalContext().userEnabledCuDNN());
    case LayerKind::kRelu:
      return at::relu(inputs);
    case LayerKind::kMaxPool:
      return inputs;  // done by the ReLU before it
    case LayerKind::kReluPool:
      return relu_pool(inputs);
  }
  return inputs;
}

void Network::save_statistics() {
  for (std::size_t i = 0; i < statistics_.size(); ++i) saved_[i].copy_(statistics_[i]);
}

void Network::restore_statistics() {
  for (std::size_t i = 0; i < statistics_.size(); ++i) statistics_[i].copy_(saved_[i]);
}

void Network::count_batch() {
  for (std::int64_t& batches : integers_) ++batches;
}

std::vector<at::Tensor> Network::take_gradients() {
  std::vector<at::Tensor> gradients;
  gradients.reserve(parameters_.size());
  for (at::Tensor& parameter : parameters_) {
    gradients.push_back(std::exchange(parameter.mutable_grad(), at::Tensor()));
  }
  return gradients;
}

}  // namespace kith::compute::torch
