// Swarms of Swim machines under faults, and under planted defects that the properties must find.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gossip/sim/aggregates.h"
#include "gossip/sim/simulate.h"

namespace kith::sim {
namespace {

using testing::HasSubstr;

// Membership alone.
SimulationSettings swarm_of(std::uint32_t nodes, double seconds, std::uint64_t seed = 1) {
  SimulationSettings settings;
  settings.nodes = nodes;
  settings.seconds = seconds;
  settings.seed = seed;
  settings.method = "local";
  return settings;
}

TEST(Membership, ACrashIsKnownEverywhereInTimeAndNewsSpreads) {
  SimulationSettings settings = swarm_of(60, 100);
  settings.churn = 0.3;
  const SimulationReport report = run_simulation(settings);
  EXPECT_TRUE(report.ok) << report.text;
  EXPECT_GT(report.deaths, 5U);
  EXPECT_GT(report.leaves, 3U);
  EXPECT_GT(report.joins, 10U);
  EXPECT_GT(report.detection_median_seconds, 1.0);
  EXPECT_LT(report.detection_p99_seconds, report.removal_bound_seconds);
  EXPECT_EQ(report.messages, 0U) << "nothing is averaged";
}

// Without links of everybody to everybody.
TEST(Membership, GossipAloneCarriesNewsInTwiceThePublishedTicks) {
  SimulationSettings settings = swarm_of(120, 30);
  settings.partial_view_above = 100;
  settings.churn = 0.2;
  const SimulationReport report = run_simulation(settings);
  EXPECT_TRUE(report.ok) << report.text;
  EXPECT_GT(report.dissemination_samples, 300U);
  EXPECT_LE(report.dissemination_p99_ticks, report.dissemination_bound_ticks) << report.text;
}

TEST(Membership, NobodyWhoIsWellIsDeclaredDeadAtFivePerCentLossWithSlowNodes) {
  SimulationSettings settings = swarm_of(40, 600);
  settings.loss = 0.05;
  settings.slow = 0.1;
  const SimulationReport report = run_simulation(settings);
  EXPECT_TRUE(report.ok) << report.text;
  EXPECT_GT(report.node_hours, 6.6);
  EXPECT_GT(report.suspicions, 1000U) << "slow nodes must give cause for suspicion";
  EXPECT_EQ(report.false_deaths, 0U) << report.text;
}

TEST(Membership, ALiarOfThirtyTwoRemovesNobody) {
  SimulationSettings settings = swarm_of(32, 120);
  settings.liars = 1;
  const SimulationReport report = run_simulation(settings);
  EXPECT_TRUE(report.ok) << report.text;
  EXPECT_GT(report.refutations, 100U) << "the accused must have heard of it";
  EXPECT_EQ(report.false_deaths, 0U);
}

TEST(Membership, ViewsHealAfterPartitionsPausesAndLoss) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SimulationSettings settings = swarm_of(24, 60, seed);
    settings.loss = 0.1;
    settings.partitions = 3;
    settings.pauses = 0.5;
    settings.churn = 0.3;
    const SimulationReport report = run_simulation(settings);
    EXPECT_TRUE(report.ok) << report.text;
    EXPECT_EQ(report.partitions, 3U);
  }
}

// With links to everybody, and with partial views, whose upkeep comes on top.
TEST(Membership, ControlTrafficDoesNotGrowWithTheSwarm) {
  for (const std::uint32_t partial_view_above : {20000U, 0U}) {
    std::vector<double> bytes;
    for (const auto& [nodes, seconds] : {std::pair(100U, 20.0), {400U, 6.0}}) {
      SimulationSettings settings = swarm_of(nodes, seconds);
      settings.partial_view_above = partial_view_above;
      const SimulationReport report = run_simulation(settings);
      EXPECT_TRUE(report.ok) << report.text;
      bytes.push_back(report.control_bytes_per_node_second);
    }
    EXPECT_GT(bytes[0], 1000.0);
    const auto found = check_flat(bytes);
    EXPECT_FALSE(found.has_value()) << found->text;
  }
}

TEST(Membership, PartialViewsAreSymmetricConnectedAndCloseToUniform) {
  SimulationSettings settings = swarm_of(120, 60);
  settings.partial_view_above = 100;
  settings.churn = 0.05;
  const SimulationReport report = run_simulation(settings);
  EXPECT_TRUE(report.ok) << report.text;
  EXPECT_TRUE(report.partial_views);
  EXPECT_EQ(report.view_violation, "");
  EXPECT_GT(report.view_chi_square, 0.0);
  EXPECT_LT(report.view_chi_square, 1.5) << report.text;
}

// Who is known dead where is another matter: neighbours watch each other, and here whole
// neighbourhoods die.
TEST(Membership, PartialViewsHangTogetherAfterFourFifthsFail) {
  SimulationSettings settings = swarm_of(200, 40);
  settings.partial_view_above = 100;
  settings.fail = 0.8;
  const SimulationReport report = run_simulation(settings);
  EXPECT_GT(report.crashes_for_good, 140U);
  EXPECT_EQ(report.view_violation, "");
}

TEST(Membership, HalfTheNodesDieAtOnceAndAllOthersKnow) {
  SimulationSettings settings = swarm_of(64, 60);
  settings.fail = 0.5;
  const SimulationReport report = run_simulation(settings);
  EXPECT_TRUE(report.ok) << report.text;
  EXPECT_GT(report.deaths, 20U);
  EXPECT_LT(report.detection_p99_seconds, report.removal_bound_seconds);
}

// Some die with all who watched them: who hears of so many deaths looks for them.
TEST(Membership, WithPartialViewsHalfTheNodesDieAtOnceAndAllOthersKnow) {
  SimulationSettings settings = swarm_of(200, 60);
  settings.partial_view_above = 100;
  settings.fail = 0.5;
  const SimulationReport report = run_simulation(settings);
  EXPECT_TRUE(report.ok) << report.text;
  EXPECT_GT(report.deaths, 80U);
  EXPECT_LT(report.detection_p99_seconds, report.removal_bound_seconds);
}

TEST(Membership, TheSameSeedGivesTheSameHash) {
  SimulationSettings settings = swarm_of(40, 30, 5);
  settings.loss = settings.reorder = settings.duplicate = 0.1;
  settings.churn = settings.pauses = 0.5;
  settings.partitions = 2;
  settings.slow = 0.1;
  settings.liars = 1;
  const SimulationReport first = run_simulation(settings);
  EXPECT_EQ(first.text, run_simulation(settings).text);
  settings.seed = 6;
  EXPECT_NE(first.hash, run_simulation(settings).hash);
}

// ---- exchanges whose partners come from each node's own machine

TEST(MembershipWithExchanges, LosesNothingUnderAllFaults) {
  SimulationSettings settings;
  settings.membership = "swim";
  settings.nodes = 48;
  settings.seconds = 40;
  settings.loss = settings.duplicate = settings.reorder = 0.05;
  settings.churn = 1.0;
  settings.pauses = 0.5;
  settings.partitions = 2;
  settings.slow = 0.1;
  settings.liars = 1;
  const SimulationReport report = run_simulation(settings);
  EXPECT_TRUE(report.ok) << report.text;
  EXPECT_TRUE(report.swim);
  EXPECT_GT(report.completed, 10000U);
  EXPECT_GT(report.crashes, 10U);
}

double variance_factor(SimulationSettings settings) {
  settings.seconds = 5;
  settings.training = false;
  const SimulationReport report = run_simulation(settings);
  EXPECT_TRUE(report.ok) << report.text;
  return report.variance_factor_per_step;
}

TEST(MembershipWithExchanges, PairsMixAsFastAsUniformOnes) {
  SimulationSettings settings;
  settings.nodes = 64;
  settings.membership = "oracle";
  const double uniform = variance_factor(settings);
  settings.membership = "swim";
  const auto found = check_mixing(variance_factor(settings), uniform);
  EXPECT_FALSE(found.has_value()) << found->text;
  settings.membership = "oracle";
  settings.view_max = 2;
  EXPECT_TRUE(check_mixing(variance_factor(settings), uniform).has_value())
      << "a cycle must be seen to mix slowly";
}

// Metamorphic: nodes swap their fates, start values, speeds and places in cuts.
TEST(MembershipWithExchanges, NamesDoNotMatter) {
  SimulationSettings settings;
  settings.nodes = 64;
  settings.seconds = 40;
  settings.churn = 0.5;
  settings.slow = 0.1;
  settings.loss = 0.02;
  const SimulationReport base = run_simulation(settings);
  EXPECT_TRUE(base.ok) << base.text;
  for (const std::uint64_t permute : {1ULL, 2ULL}) {
    settings.permute = permute;
    const SimulationReport other = run_simulation(settings);
    EXPECT_TRUE(other.ok) << other.text;
    EXPECT_NE(other.hash, base.hash);
    const auto found = check_same_aggregates(base, other);
    EXPECT_FALSE(found.has_value()) << found->text;
  }
  settings.permute = 0;
  settings.every_steps = 2;
  EXPECT_TRUE(check_same_aggregates(base, run_simulation(settings)).has_value());
}

// ---- planted defects: each must be found by the property that is there for it

std::string violation_of(SimulationSettings settings, MembershipFault fault) {
  const SimulationReport sound = run_simulation(settings);
  EXPECT_TRUE(sound.ok) << sound.text;
  settings.membership_fault = fault;
  const SimulationReport report = run_simulation(settings);
  EXPECT_EQ(report.violations, 1U) << report.text;
  return report.violation;
}

TEST(PlantedMembershipFault, OneAccuserLetsALiarRemoveWhomItLikes) {
  SimulationSettings settings = swarm_of(32, 20);
  settings.liars = 1;
  EXPECT_THAT(violation_of(settings, MembershipFault::kOneAccuser),
              testing::AllOf(HasSubstr("a liar removes nobody"), HasSubstr("--plant one-accuser"),
                             HasSubstr("--liars 1")));
}

TEST(PlantedMembershipFault, TooShortASuspicionKillsTheSlow) {
  SimulationSettings settings = swarm_of(40, 60);
  settings.loss = 0.05;
  settings.slow = 0.1;
  EXPECT_THAT(violation_of(settings, MembershipFault::kShortSuspicion), HasSubstr("accuracy"));
}

TEST(PlantedMembershipFault, TooLongASuspicionKeepsTheDead) {
  SimulationSettings settings = swarm_of(32, 60);
  settings.churn = 0.3;
  EXPECT_THAT(violation_of(settings, MembershipFault::kLongSuspicion), HasSubstr("completeness"));
}

TEST(PlantedMembershipFault, WhoTellsOnlyOfItselfSpreadsNoNews) {
  SimulationSettings settings = swarm_of(120, 40);
  settings.partial_view_above = 100;
  settings.churn = 0.2;
  EXPECT_THAT(violation_of(settings, MembershipFault::kMuteGossip), HasSubstr("completeness"));
}

TEST(PlantedMembershipFault, WhoNeverLooksForTheDeadNeverHeals) {
  SimulationSettings settings = swarm_of(16, 60, 2);
  settings.partitions = 2;
  EXPECT_THAT(violation_of(settings, MembershipFault::kNoReturn), HasSubstr("views agree"));
}

// ---- swarm: each seed draws its own faults; half of them see real membership without exchanges

class MembershipSwarm : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, MembershipSwarm, testing::Range<std::uint64_t>(1, 41));

TEST_P(MembershipSwarm, HoldsAllProperties) {
  SimulationSettings settings;
  settings.nodes = 3 + static_cast<std::uint32_t>(GetParam() % 30);
  settings.seconds = 40;
  settings.seed = GetParam();
  settings.swarm = true;
  if (GetParam() % 2 == 0) settings.method = "local";
  const SimulationReport report = run_simulation(settings);
  EXPECT_TRUE(report.ok) << report.text;
}

// ---- the front

TEST(Membership, SaysWhatAPersonChoosesBy) {
  SimulationSettings settings = swarm_of(32, 60);
  settings.churn = 0.3;
  const SimulationReport report = run_simulation(settings);
  for (const char* word : {"detection", "false deaths", "control", "membership SWIM"})
    EXPECT_THAT(report.text, HasSubstr(word));
  settings.membership = "oracle";
  settings.method = "ad-psgd";
  settings.seconds = 2;
  EXPECT_THAT(run_simulation(settings).text, HasSubstr("the truth, seen late"));
}

TEST(Membership, RefusesLiarsWhereNobodyListens) {
  SimulationSettings settings = swarm_of(8, 5);
  settings.liars = 8;
  EXPECT_THAT(try_simulation(settings).error().message, HasSubstr("honest"));
  settings.liars = 1;
  settings.membership = "oracle";
  EXPECT_THAT(try_simulation(settings).error().message, HasSubstr("--membership swim"));
  settings = swarm_of(3000, 5);
  settings.fail = 0.5;
  EXPECT_THAT(try_simulation(settings).error().message, HasSubstr("--table-max 3000"));
}

}  // namespace
}  // namespace kith::sim
