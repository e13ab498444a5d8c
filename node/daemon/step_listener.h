// StepListener: what happens after each optimiser step. Rings the exchange loop, counts the step's
// duration, writes the step's line, and holds the trainer at the run's length as this node knows it
// (alone: exactly). Threads: on_exchange() on the control loop's, the rest on the trainer's, which
// must never wait here; the atomics on any.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "compute/trainer.h"
#include "gossip/exchange/exchange.h"
#include "monitoring/metrics.h"
#include "node/daemon/control_loop.h"
#include "node/daemon/exchange_loop.h"
#include "node/daemon/step_log.h"

namespace kith::node {

class StepListener final : public compute::TrainerListener {
 public:
  void on_figures(const compute::StepFigures& figures) override;
  void on_step(Step step) override;
  void on_evaluated(const compute::EvalResult& result) override { loop->on_evaluated(result); }
  void on_nonfinite(const std::string& what) override { loop->on_nonfinite(what); }
  // For the step log.
  void on_exchange(const gossip::ExchangeEvent& event);

  std::atomic<Samples> others_samples{0};
  std::atomic<double> length_samples{0.0};
  std::atomic<Step> others_steps{0};
  // set before the trainer starts
  Step length_steps = 0;  // 0: the length is not counted in steps
  compute::Trainer* trainer = nullptr;
  ExchangeLoop* exchange = nullptr;  // null: standalone
  ControlLoop* loop = nullptr;
  monitoring::Metrics* metrics = nullptr;
  StepLog* step_log = nullptr;  // null: none was asked for
  const Clock* clock = nullptr;
  double samples_per_epoch = 1.0;

 private:
  std::atomic<std::uint64_t> exchanges_{0};
  std::atomic<double> staleness_steps_{std::numeric_limits<double>::quiet_NaN()};
  double busy_before_ = 0.0;  // trainer thread
};

}  // namespace kith::node
