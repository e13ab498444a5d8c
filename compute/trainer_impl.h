// The inside of the trainer (trainer.h), shared by its loop (trainer.cc) and by what it does for
// others between two steps (trainer_requests.cc); nobody else includes it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "compute/trainer.h"
#include "compute/trainer_meter.h"
#include "compute/work_timer.h"

namespace kith::compute {

struct Trainer::Impl {
  struct Request {
    enum class Kind { kCut, kAdopt, kImage, kEvaluate, kScale, kShare };
    Kind kind;
    std::function<void(TrainerImage)> taker;
    TrainerState state;
    std::function<void()> done;
    double factor = 1.0;
    SampleMask mask;
    std::optional<BatchCursor::Position> at;

    // A frozen replica belongs to whoever reads it.
    [[nodiscard]] bool must_wait(const Replica& replica) const {
      return (kind == Kind::kCut || kind == Kind::kAdopt) && replica.frozen();
    }
  };

  Impl(TrainerSettings settings_in, Model& model_in, Replica& replica_in, const Dataset& train_in,
       const Dataset& test_in, const Clock& clock_in, std::function<Samples()> progress_in,
       TrainerListener& listener_in, LogSink& log_in)
      : settings(std::move(settings_in)),
        model(model_in),
        replica(replica_in),
        test(test_in),
        clock(clock_in),
        progress(std::move(progress_in)),
        listener(listener_in),
        log(log_in),
        meter(clock_in),
        seed(settings.seed),
        cursor(train_in, settings.batch_size, settings.seed) {}

  // -- trainer thread --
  void run();
  void turn();
  bool may_step();
  void step_once();
  bool merge(bool stepped);
  void rest();
  void idle(TimePoint due);
  void serve();
  bool next_request(Request& request);
  void perform(Request& request);
  void cut(Request& request);
  void adopt(Request& request);
  void evaluate();
  void lose_health(const std::string& what);
  [[nodiscard]] TrainerImage image() const;

  // -- any thread --
  void post(Request request);
  void set(std::atomic<bool>& flag, bool value);
  // Under the mutex.
  [[nodiscard]] bool can_serve() const {
    return !requests.empty() && !requests.front().must_wait(replica);
  }

  // Constant after construction.
  const TrainerSettings settings;
  Model& model;
  Replica& replica;
  const Dataset& test;
  const Clock& clock;
  const std::function<Samples()> progress;
  TrainerListener& listener;
  LogSink& log;

  // Trainer thread only (the meter has a side for readers).
  TrainerMeter meter;
  WorkTimer timer;
  std::uint64_t seed;
  BatchCursor cursor;
  double lr_scale = 1.0;
  TimePoint due{};         // when the step before may end at the earliest
  bool left_busy = false;  // the last safe point skipped fragments

  std::atomic<bool> hold{true};
  std::atomic<bool> stopping{false};
  std::atomic<bool> nudged{false};
  std::atomic<bool> resting{false};
  std::atomic<bool> blocked{false};       // not finite: waits for adopt
  std::atomic<bool> has_requests{false};  // so that an ordinary step takes no lock

  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Request> requests;  // guarded by mutex
  std::thread thread;
};

}  // namespace kith::compute
