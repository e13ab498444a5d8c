#include "compute/trainer_meter.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kith::compute {
namespace {

constexpr double kLossWeight = 0.05;  // of the newest loss in the exponential mean
constexpr Duration kMarkEvery = std::chrono::milliseconds(500);

}  // namespace

TrainerMeter::TrainerMeter(const Clock& clock) : clock_(clock) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  own_.loss = own_.last_loss = own_.eval_loss = own_.eval_accuracy = kNone;
  shared_ = own_;
}

// Marks are half a second apart; eight of them give the speed of the last four seconds.
void TrainerMeter::mark_step() {
  const TimePoint now = clock_.now();
  if (marks_used_ > 0 && now - own_marks_[marks_used_ - 1].at < kMarkEvery) return;
  if (marks_used_ == kMarks) {
    std::move(own_marks_.begin() + 1, own_marks_.end(), own_marks_.begin());
    --marks_used_;
  }
  own_marks_[marks_used_++] = {now, own_.steps};
}

void TrainerMeter::add_step(const StepResult& result, std::size_t samples, double learning_rate,
                            double seconds) {
  if (marks_used_ == 0) mark_step();  // before the first step: the speed counts from here
  ++own_.steps;
  own_.samples += samples;
  steps_.store(own_.steps, std::memory_order_relaxed);
  samples_.store(own_.samples, std::memory_order_relaxed);
  own_.last_loss = result.loss;
  own_.loss =
      std::isnan(own_.loss) ? result.loss : own_.loss + kLossWeight * (result.loss - own_.loss);
  own_.grad_norm = result.grad_norm;
  own_.learning_rate = learning_rate;
  add(TrainerPhase::kForward, result.forward_seconds);
  add(TrainerPhase::kBackward, result.backward_seconds);
  add(TrainerPhase::kOptimizer, result.optimizer_seconds);
  own_.longest_step_seconds = std::max(own_.longest_step_seconds, seconds);
  mark_step();
}

void TrainerMeter::add_safe_point(const SafePointStats& stats) {
  own_.merged_values += stats.merged_values;
  own_.published_values += stats.published_values;
  own_.skipped_fragments += stats.skipped_fragments;
  own_.clamped_values += stats.clamped_values;
}

void TrainerMeter::add_evaluation(const EvalResult& result) {
  own_.eval_loss = result.loss;
  own_.eval_accuracy = result.accuracy;
  ++own_.evaluations;
}

void TrainerMeter::set_healthy(bool healthy) { own_.healthy = healthy; }

void TrainerMeter::restore(Step steps, Samples samples, double loss) {
  own_.steps = steps;
  own_.samples = samples;
  own_.loss = loss;
  steps_.store(steps, std::memory_order_relaxed);
  samples_.store(samples, std::memory_order_relaxed);
  marks_used_ = 0;
}

void TrainerMeter::publish(bool wait) {
  std::unique_lock lock(mutex_, std::defer_lock);
  if (wait) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return;  // a reader is copying: the next step hands over
  }
  shared_ = own_;
  shared_mark_ = marks_used_ > 0 ? own_marks_[0] : Mark{clock_.now(), own_.steps};
}

TrainerStats TrainerMeter::read() const {
  TrainerStats stats;
  Mark mark;
  {
    const std::lock_guard lock(mutex_);
    stats = shared_;
    mark = shared_mark_;
  }
  stats.steps = steps_.load(std::memory_order_relaxed);
  stats.samples = samples_.load(std::memory_order_relaxed);
  const double seconds = to_seconds(clock_.now() - mark.at);
  if (seconds > 0.0 && stats.steps > mark.steps) {
    stats.steps_per_second = static_cast<double>(stats.steps - mark.steps) / seconds;
  }
  return stats;
}

}  // namespace kith::compute
