#include "compute/torch/optimizer.h"

#include <cmath>
#include <cstring>
#include <string>
#include <utility>

namespace kith::compute::torch {
namespace {

constexpr std::uint8_t kStateVersion = 1;

Status check_range(const char* key, double value, double low, double high) {
  if (value >= low && value < high) return {};
  return fail(ErrorCode::kUsage, std::string("train.") + key + " is " + std::to_string(value) +
                                     ": it must be at least " + std::to_string(low) +
                                     " and less than " + std::to_string(high));
}

template <typename T>
void put(StateBytes& bytes, const T& value) {
  const auto* begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof value);
}

// Reads numbers from the front of the bytes; false when they are too short.
struct Reader {
  std::span<const std::byte> rest;

  bool take(void* out, std::size_t size) {
    if (rest.size() < size) return false;
    std::memcpy(out, rest.data(), size);
    rest = rest.subspan(size);
    return true;
  }
  template <typename T>
  bool take(T& value) {
    return take(&value, sizeof value);
  }
};

Status corrupt(const std::string& what) {
  return fail(ErrorCode::kCorrupt, "optimiser state: " + what);
}

struct Header {
  std::string name;
  std::uint64_t steps = 0;
  std::uint32_t tensors = 0;
};

Result<Header> read_header(Reader& reader) {
  std::uint8_t version = 0;
  std::uint8_t length = 0;
  Header header;
  if (!reader.take(version) || !reader.take(length))
    return fail(ErrorCode::kCorrupt, "optimiser state: cut short");
  if (version != kStateVersion) {
    return fail(ErrorCode::kCorrupt, "optimiser state: version " + std::to_string(version) +
                                         ", known is " + std::to_string(kStateVersion));
  }
  header.name.resize(length);
  if (!reader.take(header.name.data(), length) || !reader.take(header.steps) ||
      !reader.take(header.tensors)) {
    return fail(ErrorCode::kCorrupt, "optimiser state: cut short");
  }
  return header;
}

}  // namespace

Status validate(const OptimizerSpec& spec) {
  if (spec.name != "sgd" && spec.name != "adam" && spec.name != "adamw") {
    return fail(ErrorCode::kUsage,
                "train.optimizer is '" + spec.name + "': known are sgd, adam and adamw");
  }
  if (spec.name == "sgd") {
    KITH_TRY(check_range("momentum", spec.momentum, 0.0, 1.0));
  } else {
    KITH_TRY(check_range("beta1", spec.beta1, 0.0, 1.0));
    KITH_TRY(check_range("beta2", spec.beta2, 0.0, 1.0));
    KITH_TRY(check_range("eps", spec.eps, 0.0, 1.0));
  }
  KITH_TRY(check_range("weight_decay", spec.weight_decay, 0.0, 1e6));
  return check_range("clip_norm", spec.clip_norm, 0.0, 1e30);
}

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
  StateBytes bytes;
  put(bytes, kStateVersion);
  put(bytes, static_cast<std::uint8_t>(spec_.name.size()));
  for (const char letter : spec_.name) bytes.push_back(static_cast<std::byte>(letter));
  put(bytes, steps_);
  put(bytes, static_cast<std::uint32_t>(moments_.size()));
  for (const Moments& moments : moments_) {
    const at::Tensor host = moments.flat.cpu();
    put(bytes, static_cast<std::uint64_t>(host.numel()));
    const auto* begin = reinterpret_cast<const std::byte*>(host.const_data_ptr<float>());
    bytes.insert(bytes.end(), begin, begin + host.nbytes());
  }
  return bytes;
}

Status Optimizer::load(std::span<const std::byte> bytes) {
  Reader reader{bytes};
  KITH_ASSIGN(const Header header, read_header(reader));
  if (header.name != spec_.name) {
    return corrupt("it is of '" + header.name + "', and train.optimizer is " + spec_.name);
  }
  if (header.tensors != moments_.size()) {
    return corrupt(std::to_string(header.tensors) +
                   " moments per parameter, and train.optimizer = " + spec_.name +
                   " with these settings keeps " + std::to_string(moments_.size()));
  }
  std::vector<at::Tensor> loaded;
  for (const Moments& moments : moments_) {
    std::uint64_t values = 0;
    if (!reader.take(values)) return corrupt("cut short");
    if (values != static_cast<std::uint64_t>(moments.flat.numel())) {
      return corrupt(std::to_string(values) + " values per moment, and the model has " +
                     std::to_string(moments.flat.numel()) + " parameters");
    }
    loaded.push_back(at::empty({moments.flat.numel()}, at::TensorOptions().dtype(at::kFloat)));
    if (!reader.take(loaded.back().data_ptr<float>(), values * sizeof(float)))
      return corrupt("cut short");
  }
  if (!reader.rest.empty()) return corrupt(std::to_string(reader.rest.size()) + " bytes too many");
  for (std::size_t i = 0; i < moments_.size(); ++i) moments_[i].flat.copy_(loaded[i]);
  steps_ = header.steps;
  return {};
}

void Optimizer::reset() {
  for (Moments& moments : moments_) moments.flat.zero_();
  steps_ = 0;
}

}  // namespace kith::compute::torch
