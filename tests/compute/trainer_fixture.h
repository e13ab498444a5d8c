// What trainer tests share: a tiny data set, a listener that records, and bounded waiting for a
// condition.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "compute/trainer.h"
#include "fake_model.h"

namespace kith::compute::testing {

// True as soon as the condition holds; false if it does not within 20 seconds.
inline bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

class RecordingListener final : public TrainerListener {
 public:
  std::atomic<Step> steps{0};
  std::atomic<int> evaluations{0};
  std::atomic<int> nonfinite{0};
  std::function<void(Step)> at_step = [](Step) {};

  void on_step(Step step) override {
    at_step(step);
    steps = step;
  }
  void on_evaluated(const EvalResult& result) override {
    last_count = result.count;
    ++evaluations;
  }
  void on_nonfinite(const std::string& what) override {
    {
      const std::lock_guard lock(mutex_);
      why_ = what;
    }
    ++nonfinite;
  }
  [[nodiscard]] std::string why() const {
    const std::lock_guard lock(mutex_);
    return why_;
  }
  std::atomic<std::size_t> last_count{0};

 private:
  mutable std::mutex mutex_;
  std::string why_;
};

inline Dataset tiny_data(std::size_t count) {
  Dataset data;
  data.count = count;
  data.sample_shape = {4};
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < 4; ++j)
      data.inputs.push_back(static_cast<float>((i * 7 + j * 3) % 11) - 5.0F);
    data.labels.push_back(static_cast<std::int64_t>(i % 2));
  }
  return data;
}

// A trainer of a FakeModel of 8 values in 2 fragments.
struct FakeTrainer {
  explicit FakeTrainer(TrainerSettings settings = {.batch_size = 4}) {
    trainer = std::make_unique<Trainer>(
        settings, model, replica, data, test, clock, [] { return Samples{0}; }, listener, log);
  }
  FakeModel model{8};
  Replica replica{8, 16};
  Dataset data = tiny_data(10);
  Dataset test = tiny_data(6);
  SystemClock clock;
  MemoryLog log;
  RecordingListener listener;
  std::unique_ptr<Trainer> trainer;

  [[nodiscard]] std::vector<float> read(FragmentIndex f) {
    std::vector<float> out(replica.range(f).count);
    replica.read(f, out);
    return out;
  }
  Status apply(FragmentIndex f, float value) {
    const std::vector<float> delta(4, value);
    return replica.apply(f, {{Slice::copy_of(std::as_bytes(std::span(delta)))}}, CodecId::kFp32);
  }
};

}  // namespace kith::compute::testing
