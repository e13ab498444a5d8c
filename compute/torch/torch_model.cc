#include "compute/torch/torch_model.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "base/check.h"
#include "compute/kernels.h"
#include "compute/optimizer.h"
#include "compute/torch/aten.h"
#include "compute/torch/block_cache.h"
#include "compute/torch/device.h"
#include "compute/torch/network.h"
#include "compute/torch/optimizer.h"

namespace kith::compute::torch {
namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point& mark) {
  const auto now = SteadyClock::now();
  return std::chrono::duration<double>(now - std::exchange(mark, now)).count();
}

// torch's message without its C++ stack.
std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

class TorchModel final : public Model {
 public:
  TorchModel(NetworkPlan plan, const OptimizerSpec& optimizer, at::Device device,
             const ModelSpec& spec)
      : network_(std::move(plan), device),
        optimizer_(optimizer, network_.parameters()),
        device_(device),
        device_name_(device.str()),
        threads_(spec.threads) {
    std::vector<float> initial(schema().value_count);
    initialise(network_.plan(), spec.seed, initial, network_.integers());
    write_values(0, initial);
    for (const TensorInfo& info : schema().tensors) {
      if (info.kind == TensorKind::kVarianceBuffer) variances_.push_back({info.offset, info.count});
    }
  }

  [[nodiscard]] const ModelSchema& schema() const override { return network_.plan().schema; }
  [[nodiscard]] std::string_view device() const override { return device_name_; }

  StepResult step(const Batch& batch, double learning_rate) override {
    return guarded("step", [&] { return train(batch, learning_rate); });
  }
  EvalResult evaluate(const Batch& batch) override {
    return guarded("evaluate", [&] { return test(batch); });
  }
  std::size_t merge_and_publish(std::size_t offset, std::span<const float> taken,
                                std::span<float> published) override {
    return guarded("merge_and_publish", [&] {
      return device_.is_cpu() ? merge_here(offset, taken, published)
                              : merge_on_device(offset, taken, published);
    });
  }

  void read_values(std::size_t offset, std::span<float> out) const override {
    check_range(offset, out.size());
    guarded("read_values", [&] { copy_out(offset, out); });
  }
  void write_values(std::size_t offset, std::span<const float> values) override {
    check_range(offset, values.size());
    guarded("write_values", [&] { copy_in(offset, values); });
  }
  [[nodiscard]] std::vector<std::int64_t> read_integers() const override {
    return network_.integers();
  }
  void write_integers(std::span<const std::int64_t> values) override {
    KITH_CHECK(values.size() == network_.integers().size(), "integer buffers of another model");
    std::ranges::copy(values, network_.integers().begin());
  }

  [[nodiscard]] StateBytes optimizer_state() const override {
    return guarded("optimizer_state", [&] { return optimizer_.state(); });
  }
  Status load_optimizer_state(std::span<const std::byte> bytes) override {
    return guarded("load_optimizer_state", [&] { return optimizer_.load(bytes); });
  }
  void reset_optimizer() override {
    guarded("reset_optimizer", [&] { optimizer_.reset(); });
  }

 private:
  struct Range {
    std::size_t offset, count;
  };

  template <typename Body>
  auto guarded(const char* what, Body&& body) const -> decltype(body()) {
    try {
      use_threads(threads_);
      return body();
    } catch (const std::exception& error) {
      check_failed(__FILE__, __LINE__, what,
                   "LibTorch on " + device_name_ + ": " + first_line(error));
    }
  }

  void check_range(std::size_t offset, std::size_t count) const {
    KITH_CHECK(offset <= schema().value_count && count <= schema().value_count - offset,
               "values outside the flat space of the model");
  }
  void check_batch(const Batch& batch) const {
    const NetworkPlan& plan = network_.plan();
    KITH_CHECK(batch.count > 0 && batch.labels.size() == batch.count &&
                   batch.inputs.size() == batch.count * plan.sample_values,
               "a batch of another shape than the model's samples");
    const auto classes = static_cast<std::int64_t>(schema().classes);
    KITH_CHECK(
        std::ranges::all_of(batch.labels, [&](std::int64_t c) { return c >= 0 && c < classes; }),
        "a label outside the model's classes");
  }

  // The batch on the device; on the CPU a view of the caller's memory.
  [[nodiscard]] at::Tensor inputs(const Batch& batch) const {
    const auto count = static_cast<std::int64_t>(batch.count);
    const auto values = static_cast<std::int64_t>(network_.plan().sample_values);
    return at::from_blob(const_cast<float*>(batch.inputs.data()), {count, values}, at::kFloat)
        .to(device_);
  }
  [[nodiscard]] at::Tensor labels(const Batch& batch) const {
    return at::from_blob(const_cast<std::int64_t*>(batch.labels.data()),
                         {static_cast<std::int64_t>(batch.count)}, at::kLong)
        .to(device_);
  }

  StepResult train(const Batch& batch, double learning_rate) {
    check_batch(batch);
    StepResult result;
    auto mark = SteadyClock::now();
    network_.save_statistics();
    at::Tensor loss = at::cross_entropy_loss(network_.forward(inputs(batch), true), labels(batch));
    result.loss = loss.item<float>();
    result.forward_seconds = seconds_since(mark);
    if (!std::isfinite(result.loss)) return not_made(result);

    loss.backward();
    std::vector<at::Tensor> gradients = network_.take_gradients();
    const at::Tensor norm = optimizer_.norm(gradients);
    result.grad_norm = norm.item<float>();
    result.backward_seconds = seconds_since(mark);
    if (!std::isfinite(result.grad_norm)) return not_made(result);

    optimizer_.clip(gradients, norm);
    optimizer_.step(gradients, learning_rate);
    network_.count_batch();
    result.optimizer_seconds = seconds_since(mark);
    return result;
  }

  StepResult not_made(StepResult result) {
    result.finite = false;
    network_.restore_statistics();
    return result;
  }

  EvalResult test(const Batch& batch) {
    check_batch(batch);
    at::NoGradGuard guard;
    const at::Tensor wanted = labels(batch);
    const at::Tensor logits = network_.forward(inputs(batch), false);
    EvalResult result;
    result.loss = at::cross_entropy_loss(logits, wanted).item<float>();
    const auto right = logits.argmax(1).eq(wanted).sum().item<std::int64_t>();
    result.accuracy = static_cast<double>(right) / static_cast<double>(batch.count);
    result.count = batch.count;
    return result;
  }

  void check_merge(std::size_t offset, std::span<const float> taken,
                   std::span<float> published) const {
    KITH_CHECK(taken.empty() || published.empty() || taken.size() == published.size(),
               "what is merged and what is published are one range");
    check_range(offset, std::max(taken.size(), published.size()));
  }

  [[nodiscard]] float* live() const { return network_.flat().mutable_data_ptr<float>(); }

  std::size_t merge_here(std::size_t offset, std::span<const float> taken,
                         std::span<float> published) {
    check_merge(offset, taken, published);
    float* x = live() + offset;
    if (taken.empty()) {
      std::copy_n(x, published.size(), published.data());
      return 0;
    }
    if (published.empty()) {
      add(x, taken.data(), taken.size());
    } else {
      add_and_copy(x, taken.data(), published.data(), taken.size());
    }
    return clamp_variances(offset, taken.size(), published);
  }

  // Variances are few: looked at again after the one pass over everything.
  std::size_t clamp_variances(std::size_t offset, std::size_t count, std::span<float> published) {
    std::size_t clamped = 0;
    for (const Range& range : variances_) {
      const std::size_t begin = std::max(offset, range.offset);
      const std::size_t end = std::min(offset + count, range.offset + range.count);
      for (std::size_t i = begin; i < end; ++i) {
        float& value = live()[i];
        if (!(value < 0.0F)) continue;
        value = 0.0F;
        if (!published.empty()) published[i - offset] = 0.0F;
        ++clamped;
      }
    }
    return clamped;
  }

  [[nodiscard]] at::Tensor device_range(std::size_t offset, std::size_t count) const {
    return network_.flat().narrow(0, static_cast<std::int64_t>(offset),
                                  static_cast<std::int64_t>(count));
  }

  // Pinned, so that copies run at the bus's speed; as large as the largest range so far (one
  // fragment).
  at::Tensor staging(std::size_t count) const {
    const auto values = static_cast<std::int64_t>(count);
    if (!staging_.defined() || staging_.numel() < values) {
      staging_ = at::empty({values}, at::TensorOptions().dtype(at::kFloat).pinned_memory(true));
    }
    return staging_.narrow(0, 0, values);
  }

  std::size_t merge_on_device(std::size_t offset, std::span<const float> taken,
                              std::span<float> published) {
    check_merge(offset, taken, published);
    std::int64_t clamped = 0;
    if (!taken.empty()) {
      at::Tensor host = staging(taken.size());
      std::ranges::copy(taken, host.data_ptr<float>());
      device_range(offset, taken.size()).add_(host.to(device_));
      for (const Range& range : variances_) {
        const std::size_t begin = std::max(offset, range.offset);
        const std::size_t end = std::min(offset + taken.size(), range.offset + range.count);
        if (begin >= end) continue;
        at::Tensor values = device_range(begin, end - begin);
        clamped += values.lt(0).sum().item<std::int64_t>();
        values.clamp_min_(0);
      }
    }
    copy_out(offset, published);
    return static_cast<std::size_t>(clamped);
  }

  void copy_out(std::size_t offset, std::span<float> out) const {
    if (out.empty()) return;
    if (device_.is_cpu()) {
      std::copy_n(live() + offset, out.size(), out.data());
      return;
    }
    at::Tensor host = staging(out.size());
    host.copy_(device_range(offset, out.size()));
    std::copy_n(host.data_ptr<float>(), out.size(), out.data());
  }

  void copy_in(std::size_t offset, std::span<const float> values) {
    if (values.empty()) return;
    if (device_.is_cpu()) {
      std::ranges::copy(values, live() + offset);
      return;
    }
    at::Tensor host = staging(values.size());
    std::ranges::copy(values, host.data_ptr<float>());
    device_range(offset, values.size()).copy_(host);
  }

  Network network_;
  Optimizer optimizer_;
  at::Device device_;
  std::string device_name_;
  unsigned threads_;
  std::vector<Range> variances_;
  mutable at::Tensor staging_;  // GPU only
};

}  // namespace

Result<std::unique_ptr<Model>> make_torch_model(const ModelSpec& spec,
                                                const OptimizerSpec& optimizer) {
  KITH_TRY(validate(optimizer));
  KITH_ASSIGN(NetworkPlan plan, plan_network(spec));
  try {
    use_block_cache();
    use_threads(spec.threads);
    KITH_ASSIGN(const at::Device device, choose_device(spec.device));
    return std::make_unique<TorchModel>(std::move(plan), optimizer, device, spec);
  } catch (const std::exception& error) {
    return fail("cannot make model '" + spec.kind + "' on " + spec.device + ": " +
                first_line(error));
  }
}

}  // namespace kith::compute::torch
