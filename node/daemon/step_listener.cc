#include "node/daemon/step_listener.h"

namespace kith::node {

void StepListener::on_figures(const compute::StepFigures& figures) {
  if (step_log == nullptr) return;
  StepRecord record;
  record.step = figures.step;
  record.wall_seconds = clock->wall_seconds();
  record.loss = figures.loss;
  record.learning_rate = figures.learning_rate;
  record.samples = figures.samples;
  record.epoch = static_cast<double>(others_samples.load() + figures.samples) / samples_per_epoch;
  record.exchanges = exchanges_.load(std::memory_order_relaxed);
  record.staleness_steps = staleness_steps_.load(std::memory_order_relaxed);
  step_log->add(record);
}

void StepListener::on_step(Step step) {
  if (exchange != nullptr) exchange->step(step);
  const compute::TrainerStats stats = trainer->stats();
  double busy = 0.0;
  for (const double seconds : stats.phase_seconds) busy += seconds;
  if (busy > busy_before_)
    metrics->observe_step(busy - busy_before_);  // a busy reader delays the copy by a step
  busy_before_ = busy;
  const double length = length_samples.load(std::memory_order_relaxed);
  const bool by_samples =
      length > 0 && static_cast<double>(others_samples.load() + stats.samples) >= length;
  const bool by_steps = length_steps > 0 && others_steps.load() + step >= length_steps;
  if (!by_samples && !by_steps) return;
  trainer->hold();
  loop->wake();
}

void StepListener::on_exchange(const gossip::ExchangeEvent& event) {
  using Kind = gossip::ExchangeEvent::Kind;
  const bool ours = event.kind == Kind::kCompletedInitiator;
  if (ours)
    staleness_steps_.store(static_cast<double>(event.staleness_steps), std::memory_order_relaxed);
  if (ours || event.kind == Kind::kCompletedResponder) ++exchanges_;
}

}  // namespace kith::node
