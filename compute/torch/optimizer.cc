#include "compute/torch/optimizer.h"

#include <cmath>
#include <string>
#include <utility>

#include "compute/optimizer_state.h"

namespace kith::compute::torch {
namespace {

Status corrupt(const std::string& what) {
  return fail(ErrorCode::kCorrupt, "optimiser state: " + what);
}

}  // namespace

Optimizer::Optimizer(OptimizerSpec spec, std::vector<at::Tensor> parameters)
    : spec_(std::move(spec)), parameters_(std::move(parameters)) {
  std::size_t count = 2;
  if (spec_.name == "sgd") count = spec_.momentum != 0.0 ? 1 : 0;
  for (std::size_t i = 0; i < count; ++i) moments_.push_back(make_moments());
}

Optimizer::Moments Optimizer::make_moments() const {
  Moments moments;
  std::int64_t total = 0;
  for (const at::Tensor& parameter : parameters_) total += parameter.numel();
  moments.flat = at::zeros({total}, parameters_.front().options().requires_grad(false));
  std::int64_t offset = 0;
  for (const at::Tensor& parameter : parameters_) {
    moments.views.push_back(
        moments.flat.narrow(0, offset, parameter.numel()).view(parameter.sizes()));
    offset += parameter.numel();
  }
  return moments;
}

at::Tensor Optimizer::norm(const std::vector<at::Tensor>& gradients) const {
  at::NoGradGuard guard;
  std::vector<at::Tensor> norms;
  norms.reserve(gradients.size());
  for (const at::Tensor& gradient : gradients) norms.push_back(gradient.norm(2.0));
  return norms.size() == 1 ? norms[0] : at::stack(norms).norm(2.0);
}

void Optimizer::clip(std::vector<at::Tensor>& gradients, const at::Tensor& norm) const {
  if (spec_.clip_norm == 0.0) return;
  at::NoGradGuard guard;
  const at::Tensor factor = at::clamp(spec_.clip_norm / (norm + 1e-6), std::nullopt, 1.0);
  for (at::Tensor& gradient : gradients) gradient.mul_(factor);
}

void Optimizer::step(const std::vector<at::Tensor>& gradients, double learning_rate) {
  at::NoGradGuard guard;
  ++steps_;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (spec_.name == "sgd") {
      step_sgd(i, gradients[i], learning_rate);
    } else {
      step_adam(i, gradients[i], learning_rate);
    }
  }
}

void Optimizer::step_sgd(std::size_t index, at::Tensor gradient, double learning_rate) {
  at::Tensor& parameter = parameters_[index];
  if (spec_.weight_decay != 0.0) gradient = gradient.add(parameter, spec_.weight_decay);
  if (!moments_.empty()) {
    at::Tensor& velocity = moments_[0].views[index];
    if (steps_ == 1) {
      velocity.copy_(gradient);
    } else {
      velocity.mul_(spec_.momentum).add_(gradient);
    }
    gradient = spec_.nesterov ? gradient.add(velocity, spec_.momentum) : velocity;
  }
  parameter.add_(gradient, -learning_rate);
}

void Optimizer::step_adam(std::size_t index, at::Tensor gradient, double learning_rate) {
  at::Tensor& parameter = parameters_[index];
  if (spec_.weight_decay != 0.0) {
    if (spec_.name == "adamw") {
      parameter.mul_(1.0 - learning_rate * spec_.weight_decay);
    } else {
      gradient = gradient.add(parameter, spec_.weight_decay);
    }
  }
  at::Tensor& first = moments_[0].views[index];
  at::Tensor& second = moments_[1].views[index];
  const auto step = static_cast<double>(steps_);
  const double correction1 = 1.0 - std::pow(spec_.beta1, step);
  const double correction2 = 1.0 - std::pow(spec_.beta2, step);
  first.mul_(spec_.beta1).add_(gradient, 1.0 - spec_.beta1);
  second.mul_(spec_.beta2).addcmul_(gradient, gradient, 1.0 - spec_.beta2);
  const at::Tensor denominator = (second.sqrt() / std::sqrt(correction2)).add_(spec_.eps);
  parameter.addcdiv_(first, denominator, -learning_rate / correction1);
}

StateBytes Optimizer::state() const {
  OptimizerState state{spec_.name, steps_, {}};
  for (const Moments& moments : moments_) {
    const at::Tensor host = moments.flat.cpu();
    const float* begin = host.const_data_ptr<float>();
    state.tensors.emplace_back(begin, begin + host.numel());
  }
  return encode_optimizer_state(state);
}

Status Optimizer::load(std::span<const std::byte> bytes) {
  KITH_ASSIGN(OptimizerState state, decode_optimizer_state(bytes));
  if (state.name != spec_.name) {
    return corrupt("it is of '" + state.name + "', and train.optimizer is " + spec_.name);
  }
  if (state.step == 0) {
    reset();
    return {};
  }
  if (state.tensors.size() != moments_.size()) {
    return corrupt(std::to_string(state.tensors.size()) +
                   " moments per parameter, and train.optimizer = " + spec_.name +
                   " with these settings keeps " + std::to_string(moments_.size()));
  }
  for (std::size_t i = 0; i < moments_.size(); ++i) {
    const auto wanted = static_cast<std::size_t>(moments_[i].flat.numel());
    if (state.tensors[i].size() != wanted) {
      return corrupt(std::to_string(state.tensors[i].size()) +
                     " values per moment, and the model has " + std::to_string(wanted) +
                     " parameters");
    }
  }
  for (std::size_t i = 0; i < moments_.size(); ++i) {
    at::Tensor& flat = moments_[i].flat;
    flat.copy_(at::from_blob(state.tensors[i].data(), {flat.numel()}, at::kFloat));
  }
  steps_ = state.step;
  return {};
}

void Optimizer::reset() {
  for (Moments& moments : moments_) moments.flat.zero_();
  steps_ = 0;
}

}  // namespace kith::compute::torch
