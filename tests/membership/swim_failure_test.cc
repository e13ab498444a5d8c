// Who fails is found, who does not is not: bounds of the formulas, helpers, pauses, slow nodes.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/membership/swim_network.h"

namespace kith::gossip::testing {
namespace {

using schema::MemberState;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const SwimSettings kLocal = SwimSettings::preset(milliseconds(200));
const SwimSettings kLan = SwimSettings::preset(seconds(1));

// Suspicion's maximum + 3 log2 n probe intervals.
Duration completeness_bound(SwimNetwork& network, const SwimSettings& settings) {
  const double ticks = 3.0 * std::log2(static_cast<double>(network.size()));
  return network.swim(0).suspicion_max() +
         from_seconds(ticks * to_seconds(settings.probe_interval));
}

class KilledNode : public ::testing::TestWithParam<std::size_t> {};

TEST_P(KilledNode, IsDeadEverywhereWithinTheBound) {
  for (const SwimSettings& settings : {kLocal, kLan}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      SwimNetwork network(GetParam(), settings, seed);
      network.introduce_all();
      network.run(seconds(20));
      const Duration bound = completeness_bound(network, settings);
      const TimePoint killed = network.now();
      network.crash(1);
      EXPECT_TRUE(network.run_until([&] { return network.all_see(1, MemberState::kDead); }, bound))
          << "n " << GetParam() << " seed " << seed;
      EXPECT_GT(network.now() - killed, settings.probe_interval * settings.suspicion_mult / 2);
      EXPECT_EQ(network.events_of(SwimEvent::Kind::kDead), GetParam() - 1) << "nobody else died";
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, KilledNode, ::testing::Values(3, 10, 50));

TEST(KilledHalf, IsDeadEverywhereAndTheOthersAreWell) {
  SwimNetwork network(20, kLocal, 5);
  network.introduce_all();
  network.run(seconds(5));
  for (std::size_t i = 10; i < 20; ++i) network.crash(i);
  const auto all_dead = [&] {
    for (std::size_t i = 10; i < 20; ++i)
      if (!network.all_see(i, MemberState::kDead)) return false;
    return true;
  };
  EXPECT_TRUE(network.run_until(all_dead, seconds(14)));
  EXPECT_EQ(network.events_of(SwimEvent::Kind::kDead), 100U);
  network.run(seconds(10));
  EXPECT_TRUE(network.all_well());
}

TEST(TwoNodes, TheSurvivorConvictsAloneAndSaysThatItIsIsolated) {
  SwimNetwork network(2, kLocal, 1);
  network.introduce_all();
  network.run(seconds(5));
  EXPECT_FALSE(network.swim(0).isolated());
  network.crash(1);
  EXPECT_TRUE(
      network.run_until([&] { return network.view(0, 1) == MemberState::kDead; }, seconds(6)));
  EXPECT_TRUE(network.swim(0).isolated());
}

TEST(Pause, OfThreeSecondsKillsNobody) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SwimNetwork network(8, kLocal, seed);
    network.introduce_all();
    network.run(seconds(5));
    network.pause(3);
    network.run(seconds(3));
    EXPECT_GT(network.events_of(SwimEvent::Kind::kSuspect), 0U) << "it was noticed";
    network.resume(3);
    network.run(seconds(30));
    EXPECT_EQ(network.events_of(SwimEvent::Kind::kDead), 0U) << "seed " << seed;
    EXPECT_TRUE(network.all_well());
  }
}

TEST(Pause, OfTwoMinutesEndsInReturnAndAccusesNobody) {
  SwimNetwork network(8, kLocal, 2);
  network.introduce_all();
  network.run(seconds(5));
  network.pause(3);
  network.run(seconds(120));
  EXPECT_TRUE(network.all_see(3, MemberState::kDead));
  const std::uint64_t suspicions = network.swim(3).counters().suspicions;
  network.resume(3);
  EXPECT_TRUE(network.run_until([&] { return network.all_well(); }, seconds(10)));
  EXPECT_EQ(network.events_of(SwimEvent::Kind::kReturned), 7U);
  network.run(seconds(30));
  EXPECT_TRUE(network.all_well());
  EXPECT_EQ(network.swim(3).counters().suspicions, suspicions);
  EXPECT_EQ(network.events_of(SwimEvent::Kind::kDead), 7U)
      << "only the seven deaths of the paused one";
}

TEST(Pause, WithdrawsTheAccusationsMadeBeforeIt) {
  SwimNetwork network(4, kLocal, 3);
  network.introduce_all();
  network.run(seconds(3));
  network.cut = [](std::size_t from, std::size_t to) { return from == 0 || to == 0; };
  ASSERT_TRUE(network.run_until([&] { return network.swim(0).count(MemberState::kSuspect) == 3; },
                                seconds(5)));
  network.pause(0);
  network.cut = nullptr;
  network.run(seconds(1));
  network.resume(0);
  EXPECT_EQ(network.swim(0).count(MemberState::kSuspect), 0U);
  EXPECT_TRUE(network.swim(0).accusations(network.node(1).id).empty());
}

TEST(OneWayLoss, IsSavedByHelpers) {
  SwimNetwork network(6, kLocal, 4);
  network.introduce_all();
  network.cut = [](std::size_t from, std::size_t to) { return from == 0 && to == 1; };
  network.run(minutes(2));
  EXPECT_EQ(network.events_of(SwimEvent::Kind::kDead), 0U);
  EXPECT_LE(network.events_of(SwimEvent::Kind::kSuspect), 2U);
  EXPECT_GT(network.swim(0).counters().indirect_saved, 20U);
}

TEST(OneNodeThatCannotSend, AccusesButKillsNobody) {
  SwimNetwork network(6, kLocal, 4);
  network.introduce_all();
  network.run(seconds(3));
  network.cut = [](std::size_t from, std::size_t) { return from == 0; };
  network.run(seconds(20));
  EXPECT_TRUE(network.all_see(0, MemberState::kDead));
  for (std::size_t i = 1; i < 6; ++i)
    for (std::size_t j = 1; j < 6; ++j)
      if (i != j) {
        EXPECT_EQ(network.view(i, j), MemberState::kAlive);
      }
  network.cut = nullptr;
  EXPECT_TRUE(network.run_until([&] { return network.all_well(); }, minutes(2)));
}

TEST(LossAndSlowNodes, KillNobodyInAnHour) {
  SwimSettings settings = kLan;
  settings.gossip_interval = seconds(1);
  SwimNetwork network(32, settings, 7);
  network.introduce_all();
  network.loss = 0.05;
  for (std::size_t i = 0; i < 3; ++i) network.node(i * 10).slowness = seconds(2);
  network.run(minutes(60));
  EXPECT_EQ(network.events_of(SwimEvent::Kind::kDead), 0U);
  EXPECT_TRUE(network.run_until([&] { return network.all_well(); }, minutes(1)));
}

TEST(SlowLinks, OfManyProbeTimeoutsAreMeasuredAndKillNobody) {
  SwimNetwork network(8, kLocal, 7);
  network.introduce_all();
  network.latency = milliseconds(50);
  network.jitter = milliseconds(300);  // 0.1 to 0.7 s there and back; the probe timeout is 0.1 s
  network.run(minutes(2));
  EXPECT_EQ(network.events_of(SwimEvent::Kind::kDead), 0U);
  const std::size_t suspicions = network.events_of(SwimEvent::Kind::kSuspect);
  network.run(minutes(5));
  EXPECT_EQ(network.events_of(SwimEvent::Kind::kDead), 0U);
  EXPECT_LE(network.events_of(SwimEvent::Kind::kSuspect), suspicions + 8)
      << "the round trip is known by now";
  EXPECT_GT(network.swim(0).find(network.node(1).id)->rtt_seconds, 0.2F);
}

TEST(LocalHealth, GrowsOnANodeThatHearsNobodyAndRecovers) {
  SwimNetwork network(6, kLocal, 8);
  network.introduce_all();
  network.run(seconds(3));
  EXPECT_EQ(network.swim(0).local_health(), 0U);
  network.cut = [](std::size_t, std::size_t to) { return to == 0; };
  network.run(seconds(3));
  EXPECT_GE(network.swim(0).local_health(), 2U);
  for (std::size_t i = 1; i < 6; ++i) EXPECT_LE(network.swim(i).local_health(), 1U);
  network.cut = nullptr;
  EXPECT_TRUE(network.run_until([&] { return network.swim(0).local_health() == 0; }, minutes(1)));
}

TEST(LocalHealth, StaysWellWhileOthersDie) {
  SwimNetwork network(16, kLocal, 8);
  network.introduce_all();
  network.run(seconds(3));
  network.crash(1);
  unsigned worst = 0;
  network.each_tick = [&](TestNode& node) { worst = std::max(worst, node.swim->local_health()); };
  network.run(seconds(20));
  EXPECT_TRUE(network.all_see(1, MemberState::kDead));
  EXPECT_EQ(worst, 0U) << "the helpers' NACKs say that it is not us";
}

}  // namespace
}  // namespace kith::gossip::testing
