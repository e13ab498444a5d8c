// What a trainer counts about itself: filled by the trainer's thread, read by any.
//
// The trainer writes into its own copy and hands it over with a try-lock after each step, so that a
// reader never makes it wait; the counters that others compute with (steps, samples) are atomics
// and always exact.
#pragma once

#include <array>
#include <atomic>
#include <mutex>

#include "base/clock.h"
#include "compute/replica.h"
#include "compute/trainer.h"

namespace kith::compute {

class TrainerMeter {
 public:
  explicit TrainerMeter(const Clock& clock);

  // -- trainer thread --
  void add(TrainerPhase phase, double seconds) {
    own_.phase_seconds[static_cast<int>(phase)] += seconds;
  }
  void add_idle(double seconds) { own_.idle_seconds += seconds; }
  void add_step(const StepResult& result, std::size_t samples, double learning_rate,
                double seconds);
  void add_safe_point(const SafePointStats& stats);
  void add_evaluation(const EvalResult& result);
  void set_healthy(bool healthy);
  void count_nonfinite() { ++own_.nonfinite; }
  // Continues the counters of a checkpoint.
  void restore(Step steps, Samples samples, double loss);
  void publish(bool wait);
  [[nodiscard]] const TrainerStats& own() const { return own_; }

  // -- any thread --
  [[nodiscard]] TrainerStats read() const;

 private:
  // Where the counters stood at some moments, for the speed over the last seconds.
  struct Mark {
    TimePoint at;
    Step steps = 0;
  };
  static constexpr std::size_t kMarks = 8;
  void mark_step();

  const Clock& clock_;
  TrainerStats own_;                    // trainer thread only
  std::array<Mark, kMarks> own_marks_;  // trainer thread only; oldest first
  std::size_t marks_used_ = 0;          // trainer thread only
  std::atomic<Step> steps_{0};
  std::atomic<Samples> samples_{0};

  mutable std::mutex mutex_;
  TrainerStats shared_;  // guarded by mutex_
  Mark shared_mark_;     // guarded by mutex_: the oldest mark
};

}  // namespace kith::compute
