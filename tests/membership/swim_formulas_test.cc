// The arithmetic of Swim in tables: a wrong constant, logarithm or rounding shows here, not in a
// cluster.
#include <gtest/gtest.h>

#include "gossip/membership/swim_limits.h"
#include "gossip/membership/swim_suspicion.h"

namespace kith::gossip {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

const SwimSettings kLocal = SwimSettings::preset(milliseconds(200));
const SwimSettings kLan = SwimSettings::preset(seconds(1));
const SwimSettings kWan = SwimSettings::preset(seconds(5));

TEST(SwimPreset, DerivesEverythingFromTheProbeInterval) {
  struct Row {
    SwimSettings settings;
    Duration probe, timeout, gossip, sync, min, max;
  };
  const Row rows[] = {
      {kLocal, milliseconds(200), milliseconds(100), milliseconds(200), seconds(2), seconds(4),
       seconds(8)},
      {kLan, seconds(1), milliseconds(500), milliseconds(200), seconds(10), seconds(5),
       seconds(30)},
      {kWan, seconds(5), milliseconds(2500), seconds(1), seconds(50), seconds(30), seconds(180)},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(row.settings.probe_interval, row.probe);
    EXPECT_EQ(row.settings.probe_timeout, row.timeout);
    EXPECT_EQ(row.settings.gossip_interval, row.gossip);
    EXPECT_EQ(row.settings.sync_interval, row.sync);
    EXPECT_EQ(suspicion::shortest(row.settings, 10), row.min);
    EXPECT_EQ(suspicion::longest(row.settings, 10), row.max);
  }
}

TEST(SwimPreset, ScalesByTheIntervalBetweenTheNamedOnes) {
  EXPECT_EQ(SwimSettings::preset(milliseconds(500)).suspicion_max_factor, 2U);
  EXPECT_EQ(SwimSettings::preset(milliseconds(501)).suspicion_max_factor, 6U);
  EXPECT_EQ(SwimSettings::preset(milliseconds(2500)).suspicion_mult, 5U);
  EXPECT_EQ(SwimSettings::preset(milliseconds(2501)).suspicion_mult, 6U);
}

TEST(SuspicionTimeout, GrowsWithTheLogarithmOfTheSize) {
  const std::pair<std::size_t, Duration> rows[] = {{1, seconds(5)},     {2, seconds(5)},
                                                   {10, seconds(5)},    {100, seconds(10)},
                                                   {1000, seconds(15)}, {10000, seconds(20)}};
  for (const auto& [members, expected] : rows)
    EXPECT_EQ(suspicion::shortest(kLan, members), expected) << members;
}

TEST(SuspicionTimeout, ShrinksWithIndependentConfirmations) {
  const Duration min = seconds(5);
  const Duration max = seconds(30);
  EXPECT_EQ(suspicion::length(min, max, 0, 3), max);
  EXPECT_EQ(suspicion::length(min, max, 1, 3), milliseconds(17500));  // log 2 / log 4 = 1/2
  EXPECT_NEAR(to_seconds(suspicion::length(min, max, 2, 3)), 30 - 25 * 0.79248, 1e-3);
  EXPECT_EQ(suspicion::length(min, max, 3, 3), min);
  EXPECT_EQ(suspicion::length(min, max, 7, 3), min);
  EXPECT_EQ(suspicion::length(min, max, 0, 1), max);
  EXPECT_EQ(suspicion::length(min, max, 0, 0), min) << "nobody could confirm it";
}

TEST(SuspicionTimeout, ExpectsOnlyThoseToConfirmWhoAreThere) {
  const std::pair<std::size_t, unsigned> rows[] = {{0, 0}, {1, 0}, {2, 1},   {3, 2},
                                                   {4, 3}, {5, 3}, {1000, 3}};
  for (const auto& [voters, expected] : rows)
    EXPECT_EQ(suspicion::expected_confirmations(voters), expected) << voters;
}

TEST(Conviction, NeedsTwoAccusersUnlessFewerAreLeft) {
  EXPECT_EQ(suspicion::accusers_needed(kLan, 1), 1U);
  EXPECT_EQ(suspicion::accusers_needed(kLan, 2), 2U);
  EXPECT_EQ(suspicion::accusers_needed(kLan, 50), 2U);
}

TEST(Retransmission, IsLimitedByTheLogarithmOfTheSize) {
  const std::pair<std::size_t, unsigned> rows[] = {{1, 4},  {9, 4},    {10, 8},
                                                   {99, 8}, {100, 12}, {9999, 16}};
  for (const auto& [members, expected] : rows)
    EXPECT_EQ(suspicion::retransmit_limit(4, members), expected) << members;
}

TEST(ProbeTimeout, FollowsTheMeasuredRoundTripAndLocalHealth) {
  EXPECT_EQ(suspicion::probe_timeout(kLan, -1, 0), milliseconds(500));
  EXPECT_EQ(suspicion::probe_timeout(kLan, 0.1, 0), milliseconds(500));
  EXPECT_EQ(suspicion::probe_timeout(kLan, 0.5, 0), milliseconds(1500));
  EXPECT_EQ(suspicion::probe_timeout(kLan, 1e30, 0), seconds(5)) << "ten times the setting at most";
  EXPECT_EQ(suspicion::probe_timeout(kLan, -1, 7), seconds(4));
  EXPECT_EQ(suspicion::probe_length(kLan, -1, 0), seconds(1));
  EXPECT_EQ(suspicion::probe_length(kLan, 0.5, 0), seconds(3));
  EXPECT_EQ(suspicion::probe_length(kLan, -1, 3), seconds(4));
}

TEST(DeadRetry, DoublesToTenTimes) {
  const std::pair<unsigned, int> rows[] = {{0, 1},  {1, 2},  {2, 4},       {3, 8},
                                           {4, 10}, {5, 10}, {1000000, 10}};
  for (const auto& [tries, times] : rows)
    EXPECT_EQ(suspicion::dead_retry(kLan, tries), seconds(30) * times) << tries;
}

TEST(Limiter, GivesABurstAndThenTheRate) {
  RateLimiter limiter(seconds(1), 3.0, 8);
  const NodeId a{{1}};
  TimePoint now{hours(1)};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limiter.take(now, a)) << i;
  EXPECT_FALSE(limiter.take(now, a));
  now = now + milliseconds(900);
  EXPECT_FALSE(limiter.take(now, a));
  now = now + milliseconds(200);
  EXPECT_TRUE(limiter.take(now, a));
  EXPECT_FALSE(limiter.take(now, a));
  now = now + hours(1);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(limiter.take(now, a)) << "not more than the burst is saved";
  EXPECT_FALSE(limiter.take(now, a));
}

TEST(Limiter, IsBoundedAndForgetsWhoRested) {
  RateLimiter limiter(seconds(1), 2.0, 4);
  TimePoint now{hours(1)};
  for (std::uint8_t i = 0; i < 100; ++i) limiter.take(now, NodeId{{i}});
  EXPECT_EQ(limiter.size(), 4U);
  EXPECT_FALSE(limiter.take(now, NodeId{{200}}));
  now = now + seconds(2);
  EXPECT_TRUE(limiter.take(now, NodeId{{200}}));
  EXPECT_LE(limiter.size(), 4U);
}

}  // namespace
}  // namespace kith::gossip
