#include "compute/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <limits>
#include <utility>

#include "trainer_fixture.h"

namespace kith::compute {
namespace {

using testing::eventually;
using testing::FakeTrainer;

TEST(TrainerThread, StepsOnlyBetweenResumeAndHold) {
  FakeTrainer t;
  t.trainer->start();
  EXPECT_TRUE(t.trainer->holding());
  EXPECT_EQ(t.trainer->stats().steps, 0U);
  EXPECT_TRUE(std::isnan(t.trainer->stats().loss));
  t.trainer->resume();
  ASSERT_TRUE(eventually([&] { return t.listener.steps >= 20; }));
  t.trainer->hold();
  ASSERT_TRUE(eventually([&] { return t.trainer->holding(); }));
  const Step steps = t.listener.steps;
  std::promise<void> served;
  t.trainer->image([&](const TrainerImage& image) {
    EXPECT_EQ(image.step, steps);
    served.set_value();
  });
  served.get_future().wait();
  EXPECT_EQ(t.listener.steps, steps);
  const auto stats = t.trainer->stats();
  EXPECT_EQ(stats.steps, steps);
  EXPECT_EQ(stats.samples, steps / 3 * 10 + steps % 3 * 4);  // batches of 4, 4, 2
  EXPECT_EQ(stats.loss, 1.0);
  EXPECT_GT(stats.steps_per_second, 0.0);
  t.trainer->stop();
}

TEST(TrainerThread, MergesWhatPeersCommitAndPublishesWhatWasRead) {
  FakeTrainer t;
  t.trainer->start();
  t.trainer->resume();
  ASSERT_TRUE(t.apply(1, 5.0F));
  t.trainer->nudge();
  ASSERT_TRUE(eventually([&] { return t.trainer->stats().merged_values == 4; }));
  t.trainer->stop();
  EXPECT_EQ(t.model.x[3], 0.0F);
  EXPECT_EQ(t.model.x[4], 5.0F);
}

TEST(TrainerThread, WhileHeldANudgeMergesAtOnce) {
  FakeTrainer t;
  t.trainer->start();
  for (int i = 1; i <= 50; ++i) {
    ASSERT_TRUE(t.apply(0, 1.0F));
    t.trainer->nudge();
    ASSERT_TRUE(eventually([&] {
      return t.trainer->stats().merged_values == static_cast<std::uint64_t>(4 * i);
    })) << i;
  }
  EXPECT_EQ(t.trainer->stats().steps, 0U);
  t.trainer->stop();
  EXPECT_EQ(t.model.x[0], 50.0F);
}

TEST(TrainerThread, MinStepSetsThePaceAndIdlingIsNotWaiting) {
  FakeTrainer t({.batch_size = 4, .min_step = std::chrono::milliseconds(20)});
  t.trainer->start();
  const auto start = std::chrono::steady_clock::now();
  t.trainer->resume();
  ASSERT_TRUE(eventually([&] { return t.listener.steps >= 11; }));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_GE(seconds, 0.195);
  t.trainer->stop();
  const auto stats = t.trainer->stats();
  EXPECT_GT(stats.idle_seconds, 0.1);
  EXPECT_LT(stats.phase_seconds[static_cast<int>(TrainerPhase::kWait)], 0.05 * seconds);
  EXPECT_LT(stats.phase_seconds[static_cast<int>(TrainerPhase::kMerge)], 0.05 * seconds);
  EXPECT_LT(stats.longest_step_seconds, 10.0);
}

TEST(TrainerThread, StopAndHoldAndRequestsInterruptIdlingAtOnce) {
  FakeTrainer t({.batch_size = 4, .min_step = std::chrono::hours(1)});
  t.trainer->start();
  t.trainer->resume();
  ASSERT_TRUE(eventually([&] { return t.listener.steps == 1; }));
  std::promise<void> imaged;
  t.trainer->image([&](const TrainerImage&) { imaged.set_value(); });
  ASSERT_EQ(imaged.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  t.trainer->evaluate();
  ASSERT_TRUE(eventually([&] { return t.listener.evaluations == 1; }));
  t.trainer->hold();
  ASSERT_TRUE(eventually([&] { return t.trainer->holding(); }));
  EXPECT_EQ(t.listener.steps, 1U);
  t.trainer->resume();
  ASSERT_TRUE(eventually([&] { return t.listener.steps == 2; }));
  t.trainer->stop();
}

TEST(TrainerThread, ACutIsOneSafePointOfModelReplicaAndImage) {
  FakeTrainer t;
  t.model.drift = 1.0F;
  t.trainer->start();
  t.trainer->resume();
  for (int round = 0; round < 20; ++round) {
    std::promise<TrainerImage> promise;
    t.trainer->cut([&](TrainerImage image) { promise.set_value(std::move(image)); });
    auto future = promise.get_future();
    ASSERT_EQ(future.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    const TrainerImage image = future.get();
    const Step later = image.step + 3;
    ASSERT_TRUE(eventually([&] { return t.listener.steps >= later; }))
        << "training goes on while the replica is read";
    EXPECT_TRUE(t.replica.frozen());
    EXPECT_EQ(t.read(0)[0], static_cast<float>(image.step));
    EXPECT_EQ(t.read(1)[3], static_cast<float>(image.step));
    t.replica.thaw();
  }
  t.trainer->stop();
}

TEST(TrainerThread, ACutWhileFrozenWaitsForTheThaw) {
  FakeTrainer t;
  t.trainer->start();
  std::promise<void> first, second;
  t.trainer->cut([&](const TrainerImage&) { first.set_value(); });
  t.trainer->cut([&](const TrainerImage&) { second.set_value(); });
  first.get_future().wait();
  auto waiting = second.get_future();
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(0)), std::future_status::timeout);
  t.replica.thaw();
  EXPECT_EQ(waiting.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  t.replica.thaw();
  t.trainer->stop();
}

TEST(TrainerThread, DeltasThatArriveWhileFrozenAndHeldAreMergedAfterTheThaw) {
  FakeTrainer t;
  t.trainer->start();
  for (int round = 1; round <= 20; ++round) {
    std::promise<void> cut;
    t.trainer->cut([&](const TrainerImage&) { cut.set_value(); });
    cut.get_future().wait();
    ASSERT_TRUE(t.apply(0, 1.0F));
    t.trainer->nudge();
    t.replica.thaw();
    ASSERT_TRUE(eventually(
        [&] { return t.trainer->stats().merged_values == static_cast<std::uint64_t>(4 * round); }));
  }
  t.trainer->stop();
}

TEST(TrainerThread, AdoptingReplacesValuesAndForgetsMomentsButKeepsOwnCounters) {
  FakeTrainer t;
  t.trainer->start();
  t.trainer->resume();
  ASSERT_TRUE(eventually([&] { return t.listener.steps >= 5; }));
  t.trainer->hold();
  ASSERT_TRUE(eventually([&] { return t.trainer->holding(); }));
  const auto before = t.trainer->stats();
  std::promise<void> adopted;
  t.trainer->adopt({.values = std::vector<float>(8, 3.0F)}, [&] { adopted.set_value(); });
  adopted.get_future().wait();
  EXPECT_EQ(t.read(0), std::vector<float>(4, 3.0F));
  EXPECT_EQ(t.trainer->stats().steps, before.steps);
  t.trainer->stop();
  EXPECT_EQ(t.model.x, std::vector<float>(8, 3.0F));
  EXPECT_EQ(t.model.moments_reset, 1U);
}

TEST(TrainerThread, ALossThatIsNotFiniteHoldsUntilAStateIsAdopted) {
  FakeTrainer t;
  t.model.inside_step = [&] {
    if (t.listener.steps == 3) t.model.loss = std::numeric_limits<double>::quiet_NaN();
  };
  t.trainer->start();
  t.trainer->resume();
  ASSERT_TRUE(eventually([&] { return t.listener.nonfinite == 1; }));
  EXPECT_TRUE(eventually([&] { return t.trainer->holding(); }));
  EXPECT_FALSE(t.trainer->stats().healthy);
  EXPECT_EQ(t.trainer->stats().nonfinite, 1U);
  EXPECT_EQ(t.trainer->stats().steps, 3U);
  ASSERT_TRUE(t.apply(0, 1.0F));
  t.trainer->nudge();
  std::promise<bool> healthy;
  t.trainer->cut([&](const TrainerImage& image) { healthy.set_value(image.healthy); });
  EXPECT_FALSE(healthy.get_future().get());
  t.replica.thaw();
  EXPECT_EQ(t.trainer->stats().merged_values, 0U) << "a broken trainer merges nothing";
  std::promise<void> adopted;
  t.trainer->adopt({.values = std::vector<float>(8, 3.0F)}, [&] {
    t.model.loss = 1.0;
    t.model.inside_step = [] {};
    adopted.set_value();
  });
  adopted.get_future().wait();
  EXPECT_TRUE(t.trainer->stats().healthy);
  ASSERT_TRUE(eventually([&] { return t.listener.steps >= 6; })) << "goes on by itself";
  EXPECT_EQ(t.listener.nonfinite, 1);
  t.trainer->stop();
}

TEST(TrainerThread, ParametersThatAreNotFiniteAreNeverPublished) {
  FakeTrainer t;
  t.model.inside_step = [&] {
    if (t.listener.steps == 3) t.model.x[5] = std::numeric_limits<float>::infinity();
  };
  t.listener.at_step = [&](Step) { t.replica.want(1); };
  t.trainer->start();
  t.trainer->resume();
  ASSERT_TRUE(eventually([&] { return t.listener.nonfinite == 1; }));
  EXPECT_EQ(t.listener.why(), "parameters are not finite");
  EXPECT_EQ(t.read(1), std::vector<float>(4, 0.0F));
  std::vector<std::byte> out(16);
  EXPECT_TRUE(t.replica.snapshot(1, CodecId::kFp32, out));
  t.trainer->stop();
}

TEST(TrainerThread, AModelThatThrowsIsReportedAndDoesNotEndTheProcess) {
  FakeTrainer t;
  t.model.inside_step = [&] {
    if (t.listener.steps == 2) throw std::runtime_error("device lost");
  };
  t.trainer->start();
  t.trainer->resume();
  ASSERT_TRUE(eventually([&] { return t.listener.nonfinite == 1; }));
  EXPECT_NE(t.listener.why().find("device lost"), std::string::npos);
  EXPECT_TRUE(t.log.contains("device lost"));
  t.trainer->stop();
}

TEST(TrainerThread, EvaluatesTheWholeTestSetInBatches) {
  FakeTrainer t({.batch_size = 4, .eval_batch = 4});
  t.trainer->start();
  t.trainer->evaluate();
  ASSERT_TRUE(eventually([&] { return t.listener.evaluations == 1; }));
  EXPECT_EQ(t.listener.last_count, 6U);
  EXPECT_NEAR(t.trainer->stats().eval_accuracy, 0.25, 1e-12);
  EXPECT_NEAR(t.trainer->stats().eval_loss, 0.5, 1e-12);
  t.trainer->stop();
}

TEST(TrainerThread, ExchangesGoOnDuringALongStep) {
  FakeTrainer t;
  std::promise<void> inside, go_on;
  t.model.inside_step = [&, first = true]() mutable {
    if (!std::exchange(first, false)) return;
    inside.set_value();
    go_on.get_future().wait();
  };
  t.trainer->start();
  t.trainer->resume();
  inside.get_future().wait();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(t.apply(0, 1.0F));
  EXPECT_EQ(t.read(0)[0], 100.0F);
  go_on.set_value();
  ASSERT_TRUE(eventually([&] { return t.trainer->stats().merged_values >= 4; }));
  t.trainer->stop();
  EXPECT_EQ(t.model.x[0], 100.0F);
}

TEST(TrainerThread, RequestsMadeBeforeStopAreServed) {
  FakeTrainer t;
  bool served = false;
  t.trainer->start();
  t.trainer->cut([&](const TrainerImage&) { served = true; });
  t.trainer->stop();
  EXPECT_TRUE(served);
}

TEST(TrainerThread, ScalingTheLearningRateIsInTheImage) {
  FakeTrainer t;
  t.trainer->start();
  t.trainer->scale_learning_rate(0.5);
  t.trainer->scale_learning_rate(0.5);
  std::promise<double> scale;
  t.trainer->image([&](const TrainerImage& image) { scale.set_value(image.lr_scale); });
  EXPECT_EQ(scale.get_future().get(), 0.25);
  t.trainer->stop();
}

// The odd samples of FakeTrainer's data are those with label 1.
constexpr std::size_t kFakeSamples = 10;
SampleMask odd_samples() {
  SampleMask mask(kFakeSamples);
  for (std::size_t i = 1; i < kFakeSamples; i += 2) mask[i] = 1;
  return mask;
}

TEST(TrainerThread, AShareIsReplacedBetweenTwoStepsWithoutLosingCount) {
  FakeTrainer t;
  std::atomic<Samples> drawn{0}, even_drawn{0};
  t.model.at_batch = [&](const Batch& batch) {
    drawn += batch.count;
    for (const auto label : batch.labels) even_drawn += label == 0 ? 1 : 0;
  };
  t.trainer->start();
  t.trainer->resume();
  ASSERT_TRUE(eventually([&] { return t.listener.steps >= 50; }));
  t.trainer->share(odd_samples());
  Samples even_before = 0;
  std::promise<Step> shared;
  t.trainer->image([&](const TrainerImage& image) {
    even_before = even_drawn;
    shared.set_value(image.step);
  });
  const Step since = shared.get_future().get();
  EXPECT_GE(since, 50U);
  EXPECT_GT(even_before, 0U);
  ASSERT_TRUE(eventually([&] { return t.listener.steps >= since + 50; }));
  t.trainer->stop();
  EXPECT_EQ(even_drawn, even_before) << "only its own share from then on";
  EXPECT_EQ(t.trainer->stats().samples, drawn);
}

TEST(TrainerThread, AShareOutlivesAnAdoptedStateAndStartsWhereItIsTold) {
  FakeTrainer t;
  std::atomic<Samples> even_drawn{0};
  t.model.at_batch = [&](const Batch& batch) {
    for (const auto label : batch.labels) even_drawn += label == 0 ? 1 : 0;
  };
  t.trainer->start();
  t.trainer->share(odd_samples(), BatchCursor::Position{3, 0});
  TrainerState state;
  state.values.assign(8, 1.0F);
  state.own = TrainerImage{};
  state.own->seed = 77;
  state.own->cursor = {4, 2};
  std::promise<BatchCursor::Position> told, restored;
  t.trainer->image([&](const TrainerImage& image) { told.set_value(image.cursor); });
  t.trainer->adopt(state, [] {});
  t.trainer->image([&](const TrainerImage& image) { restored.set_value(image.cursor); });
  EXPECT_EQ(told.get_future().get(), (BatchCursor::Position{3, 0}));
  const auto position = restored.get_future().get();
  EXPECT_EQ(position, (BatchCursor::Position{4, 2}));
  t.trainer->resume();
  ASSERT_TRUE(eventually([&] { return t.listener.steps >= 20; }));
  t.trainer->stop();
  EXPECT_EQ(even_drawn, 0U);
}

}  // namespace
}  // namespace kith::compute
