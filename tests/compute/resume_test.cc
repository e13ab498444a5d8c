// A run that was stopped and resumed is bit for bit the unbroken one; and with nobody to average
// with, the trainer is bit for bit the plain loop.
#include <gtest/gtest.h>

#include <cmath>
#include <future>

#include "compute/linear_model.h"
#include "trainer_fixture.h"

namespace kith::compute {
namespace {

using testing::eventually;

// One node on its own, stopped exactly after `until` steps.
struct NodeRun {
  NodeRun(const Dataset& data, const OptimizerSpec& optimizer, Step until,
          const TrainerState* from = nullptr) {
    ModelSpec spec;
    spec.kind = "linear";
    spec.input_shape = data.sample_shape;
    spec.classes = 2;
    model = std::move(*make_model(spec, optimizer));
    replica = std::make_unique<Replica>(model->schema().value_count, 16);
    TrainerSettings settings{
        .batch_size = 8, .seed = from ? 999U : 5U};  // a resumed run takes the seed from its state
    settings.schedule = {.name = "cosine", .base = 0.05, .warmup = 80, .total = 4000};
    trainer = std::make_unique<Trainer>(
        settings, *model, *replica, data, test, clock, [this] { return trainer->stats().samples; },
        listener, log);
    listener.at_step = [this, until](Step step) {
      losses.push_back(trainer->stats().last_loss);
      if (step == until) trainer->hold();
    };
    trainer->start();
    if (from) {
      std::promise<void> adopted;
      trainer->adopt(*from, [&] { adopted.set_value(); });
      adopted.get_future().wait();
    }
    trainer->resume();
    EXPECT_TRUE(eventually([&] { return listener.steps == until && trainer->holding(); }));
    std::promise<TrainerImage> promise;
    trainer->cut([&](TrainerImage image) { promise.set_value(std::move(image)); });
    state.own = promise.get_future().get();
    for (FragmentIndex f = 0; f < replica->fragment_count(); ++f) {
      std::vector<float> part(replica->range(f).count);
      replica->read(f, part);
      state.values.insert(state.values.end(), part.begin(), part.end());
    }
    replica->thaw();
    state.optimizer = state.own->optimizer;
    trainer->stop();
  }

  SystemClock clock;
  MemoryLog log;
  testing::RecordingListener listener;
  Dataset test;
  std::unique_ptr<Model> model;
  std::unique_ptr<Replica> replica;
  std::unique_ptr<Trainer> trainer;
  TrainerState state;
  std::vector<double> losses;
};

class EveryOptimizer : public ::testing::TestWithParam<OptimizerSpec> {};
INSTANTIATE_TEST_SUITE_P(
    Resume, EveryOptimizer,
    ::testing::Values(OptimizerSpec{.name = "sgd", .momentum = 0.9},
                      OptimizerSpec{
                          .name = "sgd", .momentum = 0.9, .nesterov = true, .weight_decay = 1e-3},
                      OptimizerSpec{.name = "adam"},
                      OptimizerSpec{.name = "adamw", .weight_decay = 0.01, .clip_norm = 0.5}));

// 50 samples in batches of 8: seven batches a pass (the last of 2), so step 98 is an epoch's edge
// and step 100 is not.
TEST_P(EveryOptimizer, StoppedAndResumedIsTheUnbrokenRunToTheBit) {
  const Dataset data = testing::tiny_data(50);
  const NodeRun unbroken(data, GetParam(), 110);
  for (const Step stop : {Step{98}, Step{100}, Step{105}}) {
    const NodeRun first(data, GetParam(), stop);
    EXPECT_EQ(first.state.own->step, stop);
    const NodeRun second(data, GetParam(), 110, &first.state);
    EXPECT_EQ(second.state.values, unbroken.state.values) << stop;
    EXPECT_EQ(second.state.optimizer, unbroken.state.optimizer) << stop;
    EXPECT_EQ(second.state.own->cursor, unbroken.state.own->cursor);
    EXPECT_EQ(second.state.own->samples, unbroken.state.own->samples);
    const std::vector<double> tail(
        unbroken.losses.end() - static_cast<std::ptrdiff_t>(second.losses.size()),
        unbroken.losses.end());
    EXPECT_EQ(second.losses.size(), 110 - stop);
    for (std::size_t i = 1; i < tail.size(); ++i) EXPECT_EQ(second.losses[i], tail[i]) << i;
  }
}

// Momentum that is lost on the way is what the test above must catch.
TEST(Resume, WithoutTheMomentsTheRunIsAnother) {
  const Dataset data = testing::tiny_data(50);
  const OptimizerSpec momentum{.name = "sgd", .momentum = 0.9};
  const NodeRun unbroken(data, momentum, 110);
  NodeRun first(data, momentum, 100);
  first.state.optimizer.clear();
  const NodeRun second(data, momentum, 110, &first.state);
  EXPECT_NE(second.state.values, unbroken.state.values);
}

TEST_P(EveryOptimizer, AloneTheTrainerIsThePlainLoopToTheBit) {
  const Dataset data = testing::tiny_data(50);
  const NodeRun run(data, GetParam(), 60);
  ModelSpec spec;
  spec.kind = "linear";
  spec.input_shape = data.sample_shape;
  spec.classes = 2;
  LinearModel model(spec, GetParam());
  BatchCursor cursor(data, 8, 5);
  const ScheduleSpec schedule{.name = "cosine", .base = 0.05, .warmup = 80, .total = 4000};
  std::size_t samples = 0;
  for (int step = 0; step < 60; ++step) {
    const Batch batch = cursor.next();
    model.step(batch, learning_rate(schedule, static_cast<double>(samples)));
    samples += batch.count;
  }
  std::vector<float> values(model.schema().value_count);
  model.read_values(0, values);
  EXPECT_EQ(run.state.values, values);
}

}  // namespace
}  // namespace kith::compute
