#include "compute/trainer.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <exception>
#include <utility>

#include "base/check.h"
#include "compute/trainer_impl.h"

namespace kith::compute {
namespace {

// While frozen or after a busy fragment a resting trainer looks again by itself: nobody tells it
// that a lock is free.
constexpr Duration kLookAgain = std::chrono::milliseconds(2);
constexpr int kTrainerNice = 5;  // a third of an ordinary thread's weight where they compete

}  // namespace

Trainer::Trainer(TrainerSettings settings, Model& model, Replica& replica, const Dataset& train,
                 const Dataset& test, const Clock& clock, std::function<Samples()> progress,
                 TrainerListener& listener, LogSink& log)
    : impl_(std::make_unique<Impl>(std::move(settings), model, replica, train, test, clock,
                                   std::move(progress), listener, log)) {}
Trainer::~Trainer() { stop(); }

// -- trainer thread: the loop --

void Trainer::Impl::run() {
  pthread_setname_np(pthread_self(), "kith-trainer");
  // Training takes all the time it is given; what answers others needs little, but soon. Where
  // there are fewer cores than busy threads, exchanges would otherwise queue behind whole steps.
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kTrainerNice);
  while (!stopping.load()) {
    try {
      turn();
    } catch (const std::exception& error) {
      lose_health(std::string("the model failed: ") + error.what());
    }
  }
  try {
    serve();
  } catch (const std::exception& error) {
    log.log(LogLevel::kError, "trainer", "a last request failed", {{"why", error.what()}});
  }
  meter.publish(true);
}

void Trainer::Impl::turn() {
  serve();
  if (stopping.load()) return;
  if (may_step()) {
    step_once();
  } else {
    rest();
  }
}

// Leaving rest is decided under the mutex, so that whoever holds the trainer and then sees it
// resting sees the truth.
bool Trainer::Impl::may_step() {
  if (!resting.load()) return !hold.load() && !blocked.load();
  const std::lock_guard lock(mutex);
  resting.store(hold.load() || blocked.load());
  return !resting.load();
}

void Trainer::Impl::step_once() {
  const TimePoint start = clock.now();
  // A wake-up that came late is made good by the next step, so that the pace is min_step and not a
  // little more.
  const bool on_pace = start >= due && start - due < settings.min_step / 4;
  due = (on_pace ? due : start) + settings.min_step;

  const Batch batch = cursor.next();
  meter.add(TrainerPhase::kData, to_seconds(clock.now() - start));
  const double rate = learning_rate(settings.schedule, static_cast<double>(progress())) * lr_scale;
  const StepResult result = model.step(batch, rate);
  if (!result.finite || !std::isfinite(result.loss))
    return lose_health("the loss or its gradient is not finite");
  if (!merge(true)) return;
  meter.add_step(result, batch.count, rate, to_seconds(clock.now() - start));
  timer.restart();
  listener.on_figures({meter.own().steps, meter.own().samples, result.loss, rate});
  listener.on_step(meter.own().steps);
  meter.add(TrainerPhase::kWait, timer.seconds());
  meter.publish(false);
  idle(due);
}

// The safe point. False: the parameters are not finite.
bool Trainer::Impl::merge(bool stepped) {
  if (replica.frozen()) return true;  // what arrived stays known as a nudge
  nudged.store(false);
  timer.restart();
  const SafePointStats stats = replica.safe_point(model, false, stepped);
  meter.add(TrainerPhase::kMerge, timer.seconds());
  meter.add_safe_point(stats);
  left_busy = stats.skipped_fragments > 0;
  if (stats.nonfinite_fragments == 0) return true;
  lose_health("parameters are not finite");
  return false;
}

// Held: deltas that peers commit are still merged, so that a finishing node converges with them.
void Trainer::Impl::rest() {
  if (!blocked.load()) merge(false);
  meter.publish(true);
  const auto something = [this] {
    const bool free = !hold.load() && !blocked.load();
    return stopping.load() || free || can_serve() ||
           (nudged.load() && !blocked.load() && !replica.frozen());
  };
  std::unique_lock lock(mutex);
  resting.store(true);
  if (left_busy || replica.frozen()) {
    wake.wait_for(lock, kLookAgain, something);
  } else {
    wake.wait(lock, something);
  }
}

// The rest of min_step. What arrived meanwhile is merged at its end, before the next gradient is
// taken.
void Trainer::Impl::idle(TimePoint until) {
  Duration left = until - clock.now();
  if (left <= Duration{0}) return;
  double idled = 0.0;
  while (left > Duration{0} && !stopping.load() && !hold.load()) {
    const TimePoint start = clock.now();
    {
      std::unique_lock lock(mutex);
      wake.wait_for(lock, left, [this] { return stopping.load() || hold.load() || can_serve(); });
    }
    const TimePoint end = clock.now();
    idled += to_seconds(end - start);
    if (!has_requests.load()) break;
    serve();
    if (blocked.load()) break;
    left = until - clock.now();
  }
  meter.add_idle(idled);
  if (nudged.load() && !blocked.load() && !stopping.load()) merge(false);
}

void Trainer::Impl::lose_health(const std::string& what) {
  blocked.store(true);
  meter.count_nonfinite();
  meter.set_healthy(false);
  meter.publish(true);
  log.log(LogLevel::kError, "trainer", what + ": holding until a state is adopted",
          {{"step", std::to_string(meter.own().steps)}});
  listener.on_nonfinite(what);
}

// -- any thread --

void Trainer::Impl::post(Request request) {
  {
    const std::lock_guard lock(mutex);
    requests.push_back(std::move(request));
    has_requests.store(true);
  }
  wake.notify_all();
}

void Trainer::Impl::set(std::atomic<bool>& flag, bool value) {
  {
    const std::lock_guard lock(mutex);  // so that a thread about to wait sees it
    flag.store(value);
  }
  wake.notify_all();
}

void Trainer::start() {
  KITH_CHECK(!impl_->thread.joinable(), "a trainer starts once");
  impl_->replica.reset(impl_->model);
  impl_->resting.store(true);
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
}

void Trainer::resume() { impl_->set(impl_->hold, false); }
void Trainer::hold() { impl_->set(impl_->hold, true); }

void Trainer::stop() {
  if (!impl_->thread.joinable()) return;
  impl_->set(impl_->stopping, true);
  impl_->thread.join();
}

bool Trainer::holding() const {
  return impl_->resting.load() && (impl_->hold.load() || impl_->blocked.load());
}

void Trainer::nudge() {
  if (impl_->nudged.exchange(true)) return;  // told already, and not looked at yet
  if (impl_->resting.load()) impl_->set(impl_->nudged, true);
}

TrainerStats Trainer::stats() const {
  TrainerStats stats = impl_->meter.read();
  stats.flops = static_cast<double>(stats.samples) * impl_->model.schema().training_flops();
  return stats;
}

void Trainer::cut(std::function<void(TrainerImage)> taker) {
  impl_->post({.kind = Impl::Request::Kind::kCut, .taker = std::move(taker)});
}
void Trainer::adopt(TrainerState state, std::function<void()> done) {
  impl_->post(
      {.kind = Impl::Request::Kind::kAdopt, .state = std::move(state), .done = std::move(done)});
}
void Trainer::image(std::function<void(TrainerImage)> taker) {
  impl_->post({.kind = Impl::Request::Kind::kImage, .taker = std::move(taker)});
}
void Trainer::evaluate() { impl_->post({.kind = Impl::Request::Kind::kEvaluate}); }
void Trainer::scale_learning_rate(double factor) {
  impl_->post({.kind = Impl::Request::Kind::kScale, .factor = factor});
}
void Trainer::share(SampleMask mask, std::optional<BatchCursor::Position> at) {
  impl_->post({.kind = Impl::Request::Kind::kShare, .mask = std::move(mask), .at = at});
}

}  // namespace kith::compute
