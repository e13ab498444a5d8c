// Trainer: the thread that steps a model, and its safe points with the replica between two steps.
// Nothing it does waits for the network: its listener and the replica only ever get try-locks and
// short copies.
//
// States: resting (held, or not finite and waiting for adopt), stepping, idling out min_step,
// stopped. A step is data, forward, backward, optimiser, safe point, listener. Requests (cut,
// adopt, image, evaluate, share) are served in order between two steps, also while resting or
// idling; cut and adopt wait while the replica is frozen. What the model throws ends as
// on_nonfinite.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/result.h"
#include "compute/data.h"
#include "compute/model.h"
#include "compute/replica.h"
#include "compute/schedule.h"

namespace kith::compute {

struct TrainerSettings {
  std::size_t batch_size = 32;
  // Of the batch order: the same for members that share their data, else a node's own.
  std::uint64_t seed = 0;
  ScheduleSpec schedule;
  Duration min_step{0};  // shortest time a step may take
  std::size_t eval_batch = 250;
};

// Wait is the time in the listener and for locks, merge the safe points. Both count what the thread
// worked or was blocked, not what the scheduler gave to others meanwhile (work_timer.h).
enum class TrainerPhase { kData, kForward, kBackward, kOptimizer, kMerge, kWait, kCount };

// Read by any thread; counters never fall.
struct TrainerStats {
  Step steps = 0;
  Samples samples = 0;
  double flops = 0.0;  // floating-point operations of those samples (ModelSchema::training_flops)
  double loss = 0.0;   // exponential mean, NaN before the first step
  double last_loss = 0.0;
  double grad_norm = 0.0;
  double learning_rate = 0.0;
  double steps_per_second = 0.0;  // over the last seconds
  double phase_seconds[static_cast<int>(TrainerPhase::kCount)] =
      {};                     // min_step's idling is in none of them
  double idle_seconds = 0.0;  // min_step
  double longest_step_seconds = 0.0;
  std::uint64_t merged_values = 0, published_values = 0, skipped_fragments = 0, clamped_values = 0;
  double eval_loss = 0.0, eval_accuracy = 0.0;  // NaN before the first evaluation
  std::uint64_t evaluations = 0;
  std::uint64_t nonfinite = 0;  // times loss or parameters were not finite
  bool healthy = true;
};

// Everything of the trainer that a checkpoint or an adopting peer needs, taken at one safe point.
struct TrainerImage {
  Step step = 0;
  Samples samples = 0;
  BatchCursor::Position cursor;
  std::uint64_t seed = 0;
  double lr_scale = 1.0;  // halved by recoveries from non-finite states
  double loss = 0.0;
  StateBytes optimizer;
  std::vector<std::int64_t> integers;
  bool healthy = true;  // false: not finite; nothing was merged or published, do not save this
};

// A whole state to continue from (checkpoint or donor). `values` is the flat model.
struct TrainerState {
  std::vector<float> values;
  std::vector<std::int64_t> integers;
  StateBytes optimizer;  // empty: fresh moments
  // Set when resuming one's own checkpoint; when adopting, the own counters and cursor stay.
  std::optional<TrainerImage> own;
};

// What one step was, exactly; TrainerStats may lag by a step.
struct StepFigures {
  Step step = 0;
  Samples samples = 0;  // so far, this step's included
  double loss = 0.0;    // of this step's batch
  double learning_rate = 0.0;
};

// Called on the trainer thread; must return at once.
class TrainerListener {
 public:
  virtual ~TrainerListener() = default;
  virtual void on_figures(const StepFigures&) {}  // of the step that on_step() tells next
  virtual void on_step(Step step) = 0;            // a safe point has passed
  virtual void on_evaluated(const EvalResult&) {}
  virtual void on_nonfinite(
      const std::string& what) = 0;  // the trainer holds until adopt() or stop()
};

class Trainer {
 public:
  // All references outlive the trainer. `progress` gives the cluster's samples for the schedule
  // (any thread, lock free).
  Trainer(TrainerSettings settings, Model& model, Replica& replica, const Dataset& train,
          const Dataset& test, const Clock& clock, std::function<Samples()> progress,
          TrainerListener& listener, LogSink& log);
  ~Trainer();  // stops

  // Publishes the model's values, then starts the thread.
  void start();   // thread runs, held: no step before resume()
  void resume();  // train
  void hold();    // after the step in progress: no further steps (safe points go on)
  // Ends after the step in progress and joins the thread. Requests that cannot be served any more
  // are dropped.
  void stop();
  [[nodiscard]] bool holding() const;  // no step is in progress and none will start
  // Exchange thread, after deltas were added: while resting they are merged at once, otherwise at
  // the next safe point.
  void nudge();

  [[nodiscard]] TrainerStats stats() const;

  // At the next safe point: merges, publishes everything, freezes the replica and hands out the
  // image (on the trainer thread: move it away and return). The taker reads the replica, then calls
  // replica.thaw(). Works while held.
  void cut(std::function<void(TrainerImage)> taker);
  // At the next safe point: replaces values, integers and moments, resets the replica (nothing open
  // by then).
  void adopt(TrainerState state, std::function<void()> done);
  // Copies integers and optimiser state at the next safe point, for a donor. No freeze.
  void image(std::function<void(TrainerImage)> taker);
  // Evaluate at the next safe point (also while held), result through the listener.
  void evaluate();
  void scale_learning_rate(double factor);
  // From the next batch on only these samples are drawn (data.h); `at`: from this place on, where
  // the cluster is. Counters go on.
  void share(SampleMask mask, std::optional<BatchCursor::Position> at = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kith::compute
