// What the trainer does for others between two steps: cuts, adoptions, images, evaluations.
#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "compute/trainer_impl.h"

namespace kith::compute {

bool Trainer::Impl::next_request(Request& request) {
  const std::lock_guard lock(mutex);
  if (!can_serve()) return false;
  request = std::move(requests.front());
  requests.pop_front();
  has_requests.store(!requests.empty());
  return true;
}

void Trainer::Impl::serve() {
  Request request;
  while (has_requests.load() && next_request(request)) perform(request);
}

void Trainer::Impl::perform(Request& request) {
  switch (request.kind) {
    case Request::Kind::kCut:
      return cut(request);
    case Request::Kind::kAdopt:
      return adopt(request);
    case Request::Kind::kImage:
      return request.taker(image());
    case Request::Kind::kEvaluate:
      return evaluate();
    case Request::Kind::kScale:
      lr_scale *= request.factor;
      return;
    case Request::Kind::kShare:
      cursor.share(std::move(request.mask));
      if (request.at) cursor.restore(*request.at);
      return;
  }
}

TrainerImage Trainer::Impl::image() const {
  TrainerImage image;
  image.step = meter.own().steps;
  image.samples = meter.own().samples;
  image.cursor = cursor.position();
  image.seed = seed;
  image.lr_scale = lr_scale;
  image.loss = meter.own().loss;
  image.optimizer = model.optimizer_state();
  image.integers = model.read_integers();
  image.healthy = !blocked.load();
  return image;
}

void Trainer::Impl::cut(Request& request) {
  if (!blocked.load()) {
    timer.restart();
    const SafePointStats stats = replica.settle(model);
    meter.add(TrainerPhase::kMerge, timer.seconds());
    meter.add_safe_point(stats);
    if (stats.nonfinite_fragments > 0) lose_health("parameters are not finite");
  }
  TrainerImage taken = image();  // may throw: then nothing is frozen
  replica.freeze();
  request.taker(std::move(taken));
}

void Trainer::Impl::adopt(Request& request) {
  TrainerState& state = request.state;
  const ModelSchema& schema = model.schema();
  KITH_CHECK(
      state.values.size() == schema.value_count && state.integers.size() == schema.integer_count,
      "a state for this model");
  model.write_values(0, state.values);
  model.write_integers(state.integers);
  const Status loaded =
      state.optimizer.empty() ? Status{} : model.load_optimizer_state(state.optimizer);
  if (state.optimizer.empty() || !loaded) model.reset_optimizer();
  if (!loaded) {
    log.log(LogLevel::kWarn, "trainer",
            "starting with fresh moments: the optimiser's state does not fit",
            {{"why", loaded.error().message}});
  }
  if (state.own) {
    seed = state.own->seed;
    lr_scale = state.own->lr_scale;
    cursor.reseed(seed, state.own->cursor);
    meter.restore(state.own->step, state.own->samples, state.own->loss);
  }
  replica.reset(model);
  blocked.store(false);
  meter.set_healthy(true);
  meter.publish(true);
  if (request.done) request.done();
}

void Trainer::Impl::evaluate() {
  const std::size_t values = test.sample_values();
  EvalResult total;
  for (std::size_t from = 0; from < test.count && !stopping.load(); from += settings.eval_batch) {
    const std::size_t count = std::min(settings.eval_batch, test.count - from);
    const EvalResult part =
        model.evaluate({std::span(test.inputs).subspan(from * values, count * values),
                        std::span(test.labels).subspan(from, count), count});
    total.loss += part.loss * static_cast<double>(count);
    total.accuracy += part.accuracy * static_cast<double>(count);
    total.count += count;
  }
  if (total.count != test.count) return;  // stopping
  const double count = total.count == 0 ? std::numeric_limits<double>::quiet_NaN()
                                        : static_cast<double>(total.count);
  total.loss /= count;
  total.accuracy /= count;
  meter.add_evaluation(total);
  meter.publish(true);
  listener.on_evaluated(total);
}

}  // namespace kith::compute
