#include "compute/linear_model.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/random.h"
#include "compute/kernels.h"

namespace kith::compute {
namespace {

constexpr std::size_t kLanes = 8;

// Sums in eight fixed lanes: vectorised, and the same bits whatever the width of the processor's
// vectors.
float dot(const float* a, const float* b, std::size_t n) {
  float lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j) lanes[j] += a[i + j] * b[i + j];
  }
  float sum = ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
              ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void add_scaled(float* y, float factor, const float* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

// Turns logits into probabilities; returns the cross entropy against `label`.
double softmax(std::span<float> logits, std::size_t label) {
  const float highest = *std::max_element(logits.begin(), logits.end());
  const float at_label = logits[label] - highest;
  float sum = 0.0f;
  for (float& v : logits) sum += v = std::exp(v - highest);
  for (float& v : logits) v /= sum;
  return std::log(static_cast<double>(sum)) - at_label;
}

std::size_t feature_count(const ModelSpec& spec) {
  return std::accumulate(
      spec.input_shape.begin(), spec.input_shape.end(), std::size_t{1},
      [](std::size_t n, std::int64_t dim) { return n * static_cast<std::size_t>(dim); });
}

ModelSchema linear_schema(std::size_t classes, std::size_t features) {
  const auto c = static_cast<std::int64_t>(classes), f = static_cast<std::int64_t>(features);
  ModelSchema schema;
  schema.tensors.push_back({"weight", {c, f}, TensorKind::kParameter, 0, classes * features});
  schema.tensors.push_back({"bias", {c}, TensorKind::kParameter, classes * features, classes});
  schema.value_count = classes * features + classes;
  schema.classes = classes;
  schema.forward_flops = 2.0 * static_cast<double>(classes * features);
  return schema;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Result<std::unique_ptr<Model>> LinearModel::make(const ModelSpec& spec,
                                                 const OptimizerSpec& optimizer) {
  KITH_TRY(validate(optimizer));
  if (spec.input_shape.empty())
    return fail(ErrorCode::kUsage, "model 'linear' needs the shape of a sample");
  double features = 1.0;
  for (const std::int64_t dim : spec.input_shape) {
    if (dim < 1)
      return fail(ErrorCode::kUsage,
                  "model 'linear': a sample's dimension is " + std::to_string(dim));
    features *= static_cast<double>(dim);
  }
  if (spec.classes < 2) {
    return fail(ErrorCode::kUsage,
                "model 'linear' needs at least 2 classes, has " + std::to_string(spec.classes));
  }
  if (features * static_cast<double>(spec.classes) > 4e9) {
    return fail(
        ErrorCode::kUsage,
        "model 'linear' would have more than 4e9 weights: check shape and classes of the data");
  }
  if (spec.device != "auto" && spec.device != "cpu") {
    return fail(ErrorCode::kUsage,
                "model 'linear' runs on the CPU only, device is '" + spec.device + "'");
  }
  return std::make_unique<LinearModel>(spec, optimizer);
}

LinearModel::LinearModel(const ModelSpec& spec, const OptimizerSpec& optimizer)
    : features_(feature_count(spec)),
      classes_(spec.classes),
      spec_(optimizer),
      schema_(linear_schema(classes_, features_)),
      values_(schema_.value_count),
      gradient_(schema_.value_count),
      optimizer_(optimizer, schema_.value_count) {
  initialise(spec.seed);
}

// As torch.nn.Linear: uniform within 1 / sqrt(features), from kith's own generator.
void LinearModel::initialise(std::uint64_t seed) {
  Random random = Random(seed).fork("linear");
  const double bound = 1.0 / std::sqrt(static_cast<double>(features_));
  for (float& v : values_) v = static_cast<float>(random.uniform(-bound, bound));
}

void LinearModel::forward(const float* sample, std::span<float> logits) const {
  const float* bias = values_.data() + classes_ * features_;
  for (std::size_t c = 0; c < classes_; ++c) {
    logits[c] = dot(values_.data() + c * features_, sample, features_) + bias[c];
  }
}

// Fills errors_ with (softmax - one-hot) / count; returns the mean loss.
double LinearModel::forward_batch(const Batch& batch) {
  errors_.resize(batch.count * classes_);
  const float scale = 1.0f / static_cast<float>(batch.count);
  double loss = 0.0;
  for (std::size_t i = 0; i < batch.count; ++i) {
    const std::span<float> error(errors_.data() + i * classes_, classes_);
    const auto label = static_cast<std::size_t>(batch.labels[i]);
    forward(batch.inputs.data() + i * features_, error);
    loss += softmax(error, label);
    error[label] -= 1.0f;
    for (float& e : error) e *= scale;
  }
  return loss / static_cast<double>(batch.count);
}

void LinearModel::backward_batch(const Batch& batch) {
  std::fill(gradient_.begin(), gradient_.end(), 0.0f);
  float* bias = gradient_.data() + classes_ * features_;
  for (std::size_t c = 0; c < classes_; ++c) {
    float* row = gradient_.data() + c * features_;
    for (std::size_t i = 0; i < batch.count; ++i) {
      const float error = errors_[i * classes_ + c];
      add_scaled(row, error, batch.inputs.data() + i * features_, features_);
      bias[c] += error;
    }
  }
}

StepResult LinearModel::step(const Batch& batch, double learning_rate) {
  KITH_CHECK(batch.count > 0 && batch.inputs.size() == batch.count * features_,
             "a batch of whole samples");
  StepResult result;
  auto start = std::chrono::steady_clock::now();
  result.loss = forward_batch(batch);
  result.forward_seconds = seconds_since(start);
  start = std::chrono::steady_clock::now();
  backward_batch(batch);
  result.grad_norm = norm_of(gradient_);
  result.backward_seconds = seconds_since(start);
  result.finite = std::isfinite(result.loss) && std::isfinite(result.grad_norm);
  if (!result.finite) return result;
  start = std::chrono::steady_clock::now();
  clip_gradient(gradient_, result.grad_norm, spec_.clip_norm);
  optimizer_.step(values_, gradient_, learning_rate);
  result.optimizer_seconds = seconds_since(start);
  return result;
}

EvalResult LinearModel::evaluate(const Batch& batch) {
  EvalResult result;
  std::vector<float> logits(classes_);
  std::size_t right = 0;
  for (std::size_t i = 0; i < batch.count; ++i) {
    forward(batch.inputs.data() + i * features_, logits);
    const auto label = static_cast<std::size_t>(batch.labels[i]);
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    right += static_cast<std::size_t>(best) == label ? 1 : 0;
    result.loss += softmax(logits, label);
  }
  result.count = batch.count;
  if (batch.count == 0) return result;
  result.loss /= static_cast<double>(batch.count);
  result.accuracy = static_cast<double>(right) / static_cast<double>(batch.count);
  return result;
}

std::size_t LinearModel::merge_and_publish(std::size_t offset, std::span<const float> taken,
                                           std::span<float> published) {
  float* x = values_.data() + offset;
  KITH_CHECK(offset + std::max(taken.size(), published.size()) <= values_.size(),
             "a range inside the model");
  if (!taken.empty() && !published.empty()) {
    add_and_copy(x, taken.data(), published.data(), taken.size());
  } else if (!taken.empty()) {
    add(x, taken.data(), taken.size());
  } else if (!published.empty()) {
    std::memcpy(published.data(), x, published.size_bytes());
  }
  return 0;
}

void LinearModel::read_values(std::size_t offset, std::span<float> out) const {
  KITH_CHECK(offset + out.size() <= values_.size(), "a range inside the model");
  std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
}

void LinearModel::write_values(std::size_t offset, std::span<const float> values) {
  KITH_CHECK(offset + values.size() <= values_.size(), "a range inside the model");
  std::copy(values.begin(), values.end(), values_.begin() + static_cast<std::ptrdiff_t>(offset));
}

void LinearModel::write_integers(std::span<const std::int64_t> values) {
  KITH_CHECK(values.empty(), "the linear model has no integer buffers");
}

}  // namespace kith::compute
