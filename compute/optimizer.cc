#include "compute/optimizer.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "compute/optimizer_state.h"

namespace kith::compute {
namespace {

Status check_range(const char* key, double value, bool good, const char* expected) {
  if (good && std::isfinite(value)) return {};
  return fail(ErrorCode::kUsage,
              std::string(key) + " is " + std::to_string(value) + ": expected " + expected);
}

}  // namespace

Status validate(const OptimizerSpec& spec) {
  if (spec.name != "sgd" && spec.name != "adam" && spec.name != "adamw") {
    return fail(ErrorCode::kUsage,
                "unknown optimizer '" + spec.name + "': expected sgd, adam or adamw");
  }
  const auto below_one = [](double v) { return v >= 0.0 && v < 1.0; };
  KITH_TRY(check_range("learning_rate", spec.learning_rate, spec.learning_rate > 0, "more than 0"));
  KITH_TRY(check_range("momentum", spec.momentum, below_one(spec.momentum), "0 <= momentum < 1"));
  KITH_TRY(check_range("beta1", spec.beta1, below_one(spec.beta1), "0 <= beta1 < 1"));
  KITH_TRY(check_range("beta2", spec.beta2, below_one(spec.beta2), "0 <= beta2 < 1"));
  KITH_TRY(check_range("eps", spec.eps, spec.eps >= 0, "0 or more"));
  KITH_TRY(check_range("weight_decay", spec.weight_decay, spec.weight_decay >= 0, "0 or more"));
  KITH_TRY(check_range("clip_norm", spec.clip_norm, spec.clip_norm >= 0, "0 (off) or more"));
  if (spec.name == "sgd" && spec.nesterov && spec.momentum <= 0) {
    return fail(ErrorCode::kUsage, "nesterov = true needs momentum above 0");
  }
  return {};
}

double norm_of(std::span<const float> values) {
  double sum = 0.0;
  for (const float v : values) sum += static_cast<double>(v) * v;
  return std::sqrt(sum);
}

void clip_gradient(std::span<float> gradient, double norm, double clip_norm) {
  if (clip_norm <= 0.0) return;
  const double factor = clip_norm / (norm + 1e-6);
  if (factor >= 1.0) return;
  for (float& g : gradient) g *= static_cast<float>(factor);
}

Optimizer::Optimizer(const OptimizerSpec& spec, std::size_t count) : spec_(spec), count_(count) {}

void Optimizer::step(std::span<float> parameters, std::span<float> gradient, double learning_rate) {
  KITH_CHECK(parameters.size() == count_ && gradient.size() == count_,
             "one gradient per parameter");
  if (is_sgd()) {
    sgd(parameters, gradient, static_cast<float>(learning_rate));
  } else {
    adam(parameters, gradient, learning_rate);
  }
  ++steps_;
}

void Optimizer::sgd(std::span<float> parameters, std::span<float> gradient, float learning_rate) {
  const auto decay = static_cast<float>(spec_.weight_decay);
  const auto momentum = static_cast<float>(spec_.momentum);
  if (decay != 0.0f) {
    for (std::size_t i = 0; i < count_; ++i) gradient[i] += decay * parameters[i];
  }
  if (momentum == 0.0f) {
    for (std::size_t i = 0; i < count_; ++i) parameters[i] -= learning_rate * gradient[i];
    return;
  }
  if (first_.empty()) {
    first_.assign(gradient.begin(), gradient.end());  // the first buffer is the gradient itself
  } else {
    for (std::size_t i = 0; i < count_; ++i) first_[i] = momentum * first_[i] + gradient[i];
  }
  const bool nesterov = spec_.nesterov;
  for (std::size_t i = 0; i < count_; ++i) {
    const float direction = nesterov ? gradient[i] + momentum * first_[i] : first_[i];
    parameters[i] -= learning_rate * direction;
  }
}

void Optimizer::adam(std::span<float> parameters, std::span<float> gradient, double learning_rate) {
  if (first_.empty()) {
    first_.assign(count_, 0.0f);
    second_.assign(count_, 0.0f);
  }
  const bool decoupled = spec_.name == "adamw";
  const auto shrink =
      static_cast<float>(decoupled ? 1.0 - learning_rate * spec_.weight_decay : 1.0);
  const auto decay = static_cast<float>(decoupled ? 0.0 : spec_.weight_decay);
  const auto beta1 = static_cast<float>(spec_.beta1), beta2 = static_cast<float>(spec_.beta2);
  const auto rest1 = static_cast<float>(1.0 - spec_.beta1),
             rest2 = static_cast<float>(1.0 - spec_.beta2);
  const auto t = static_cast<double>(steps_ + 1);
  const auto size = static_cast<float>(learning_rate / (1.0 - std::pow(spec_.beta1, t)));
  const auto root = static_cast<float>(std::sqrt(1.0 - std::pow(spec_.beta2, t)));
  const auto eps = static_cast<float>(spec_.eps);
  for (std::size_t i = 0; i < count_; ++i) {
    const float p = parameters[i] * shrink;
    const float g = gradient[i] + decay * p;
    first_[i] = beta1 * first_[i] + rest1 * g;
    second_[i] = beta2 * second_[i] + rest2 * g * g;
    parameters[i] = p - size * first_[i] / (std::sqrt(second_[i]) / root + eps);
  }
}

std::size_t Optimizer::tensors_used() const {
  if (is_sgd()) return spec_.momentum == 0.0 ? 0 : 1;
  return 2;
}

StateBytes Optimizer::state() const {
  OptimizerState state{spec_.name, steps_, {}};
  if (!first_.empty()) state.tensors.push_back(first_);
  if (!second_.empty()) state.tensors.push_back(second_);
  return encode_optimizer_state(state);
}

Status Optimizer::load(std::span<const std::byte> bytes) {
  KITH_ASSIGN(OptimizerState state, decode_optimizer_state(bytes));
  if (state.name != spec_.name) {
    return fail(ErrorCode::kCorrupt,
                "optimiser state is of '" + state.name + "', this run uses '" + spec_.name + "'");
  }
  const std::size_t used = tensors_used();
  if (state.tensors.size() != (state.step == 0 ? 0 : used)) {
    return fail(ErrorCode::kCorrupt, "optimiser state has " + std::to_string(state.tensors.size()) +
                                         " tensors, " + spec_.name + " with these settings needs " +
                                         std::to_string(used));
  }
  for (const auto& tensor : state.tensors) {
    if (tensor.size() != count_) {
      return fail(ErrorCode::kCorrupt,
                  "optimiser state has a tensor of " + std::to_string(tensor.size()) +
                      " values, the model has " + std::to_string(count_) + " parameters");
    }
  }
  const auto negative = [](float v) { return v < 0.0f; };
  if (state.tensors.size() > 1 &&
      std::any_of(state.tensors[1].begin(), state.tensors[1].end(), negative)) {
    return fail(ErrorCode::kCorrupt, "optimiser state has a negative second moment");
  }
  reset();
  steps_ = state.step;
  if (!state.tensors.empty()) first_ = std::move(state.tensors[0]);
  if (state.tensors.size() > 1) second_ = std::move(state.tensors[1]);
  return {};
}

void Optimizer::reset() {
  steps_ = 0;
  first_.clear();
  second_.clear();
}

}  // namespace kith::compute
