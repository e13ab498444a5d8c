// The properties of membership, fed by hand: each must be able to fail, and must not fail without
// cause.
#include "gossip/sim/membership_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gossip/sim/membership_oracle.h"
#include "gossip/sim/node_ids.h"
#include "gossip/sim/sim_authority.h"

namespace kith::sim {
namespace {

using schema::MemberState;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint32_t kNodes = 32;

TimePoint at(double s) { return TimePoint{from_seconds(s)}; }

// Suspicion 6 s to 12 s, ticks of 0.2 s: removal within 15 s, dissemination within 10 ticks.
MembershipBounds bounds() {
  MembershipBounds b;
  b.tick = milliseconds(200);
  b.suspicion_min = seconds(6);
  b.suspicion_max = seconds(12);
  b.pause_survived = seconds(3);
  b.pause_noticed = seconds(1);
  b.log2_nodes = 5.0;
  b.log10_nodes = 1.5;
  return b;
}

class MembershipProperties : public testing::Test {
 protected:
  MembershipProperties() : oracle(settings()) {
    for (NodeIndex i = 0; i < kNodes; ++i) oracle.came_up(TimePoint{}, i, 1);
    for (NodeIndex i = 0; i < kNodes; ++i) {
      for (NodeIndex j = 0; j < kNodes; ++j) {
        if (i != j) sees(0.0, i, j, MemberState::kAlive);
      }
    }
  }
  static MembershipOracle::Settings settings() {
    MembershipOracle::Settings s;
    s.nodes = kNodes;
    s.bounds = bounds();
    s.judge_dissemination = true;
    return s;
  }
  void sees(double s, NodeIndex observer, NodeIndex subject, MemberState state,
            std::uint32_t life = 1, std::uint32_t refutations = 0) {
    oracle.saw(at(s), observer, subject, Belief{incarnation_of(life) + refutations, state});
  }
  void all_see(double s, NodeIndex subject, MemberState state, std::uint32_t life = 1) {
    for (NodeIndex i = 0; i < kNodes; ++i) {
      if (i != subject) sees(s, i, subject, state, life);
    }
  }
  std::string violation() { return oracle.violation() ? oracle.violation()->invariant : "none"; }

  MembershipOracle oracle;
};

// ---- 11

TEST_F(MembershipProperties, AnIncarnationThatFallsIsSeen) {
  sees(1, 2, 3, MemberState::kAlive, 1, 7);
  EXPECT_EQ(violation(), "none");
  sees(2, 2, 3, MemberState::kAlive, 1, 6);
  EXPECT_EQ(violation(), "incarnation monotone");
}

TEST_F(MembershipProperties, WhoForgotOrStartsAnewMayBeginAgain) {
  sees(1, 2, 3, MemberState::kDead, 1, 7);
  oracle.saw(at(2), 2, 3, std::nullopt);
  sees(3, 2, 3, MemberState::kAlive, 1, 0);
  oracle.went_down(at(4), 5, true);
  oracle.came_up(at(5), 5, 2);
  sees(6, 5, 3, MemberState::kAlive, 1, 0);
  EXPECT_EQ(violation(), "none");
}

TEST_F(MembershipProperties, WhoLeftComesBackOnlyInANewLife) {
  oracle.went_down(at(1), 3, true);
  sees(1, 2, 3, MemberState::kLeft);
  oracle.came_up(at(2), 3, 2);
  sees(3, 2, 3, MemberState::kAlive, 2);
  EXPECT_EQ(violation(), "none");
  sees(3, 4, 3, MemberState::kLeft);
  sees(4, 4, 3, MemberState::kAlive, 1, 9);
  EXPECT_EQ(violation(), "left stays left");
}

// ---- 4

TEST_F(MembershipProperties, ADeathThatEverybodySeesInTimeIsFine) {
  oracle.went_down(at(20), 3, false);
  all_see(28, 3, MemberState::kDead);
  oracle.poll(at(36));
  EXPECT_EQ(violation(), "none");
  EXPECT_EQ(oracle.completeness().deaths(), 1U);
  EXPECT_DOUBLE_EQ(quantile(oracle.completeness().delays(), 0.5), 8.0);
}

TEST_F(MembershipProperties, ADeathThatOneNodeMissesIsSeen) {
  oracle.went_down(at(20), 3, false);
  for (NodeIndex i = 4; i < kNodes; ++i) sees(28, i, 3, MemberState::kDead);
  oracle.poll(at(34.9));
  EXPECT_EQ(violation(), "none") << "not before the bound";
  oracle.poll(at(35.1));
  EXPECT_EQ(violation(), "completeness");
}

TEST_F(MembershipProperties, WhoStoodStillOrWasCutOffMayBeLate) {
  oracle.went_down(at(20), 3, false);
  for (NodeIndex i = 1; i < kNodes; ++i) {
    if (i != 3) sees(28, i, 3, MemberState::kDead);
  }
  oracle.paused(at(25), 0, seconds(5));
  oracle.poll(at(36));
  EXPECT_EQ(violation(), "none");
  oracle.cut(at(40));
  oracle.went_down(at(41), 4, false);
  oracle.healed(at(45));
  oracle.poll(at(57));
  EXPECT_EQ(violation(), "none");
}

TEST_F(MembershipProperties, AShortPauseAfterALongOneDoesNotHideIt) {
  oracle.went_down(at(20), 3, false);
  for (NodeIndex i = 1; i < kNodes; ++i) {
    if (i != 3) sees(28, i, 3, MemberState::kDead);
  }
  oracle.paused(at(21), 0, seconds(5));
  oracle.paused(at(27), 0, std::chrono::milliseconds(10));
  oracle.poll(at(36));
  EXPECT_EQ(violation(), "none");
}

// ---- 5

TEST_F(MembershipProperties, AFalseDeathIsOneTooManyForFewNodeHours) {
  sees(20, 2, 3, MemberState::kDead);
  sees(20, 4, 3, MemberState::kDead);
  EXPECT_EQ(oracle.accuracy().false_deaths(), 1U);
  EXPECT_EQ(oracle.accuracy().views(), 2U);
  oracle.end_of_faults(at(60));
  EXPECT_EQ(violation(), "accuracy");
}

TEST_F(MembershipProperties, OneFalseDeathInThousandsOfNodeHoursIsNot) {
  sees(20, 2, 3, MemberState::kDead);
  oracle.end_of_faults(at(1e6));
  EXPECT_EQ(violation(), "none");
}

TEST_F(MembershipProperties, TheFrozenTheCutOffAndTheRestartedAreNoFalseDeaths) {
  oracle.paused(at(10), 3, seconds(20));
  sees(20, 2, 3, MemberState::kDead);
  oracle.cut(at(50));
  sees(58, 2, 4, MemberState::kDead);
  oracle.healed(at(60));
  oracle.went_down(at(80), 5, false);
  oracle.came_up(at(81), 5, 2);
  sees(90, 2, 5, MemberState::kDead, 1);
  EXPECT_EQ(oracle.accuracy().false_deaths(), 0U);
  oracle.paused(at(100), 6, seconds(2));
  sees(103, 2, 6, MemberState::kDead);
  EXPECT_EQ(oracle.accuracy().false_deaths(), 1U) << "two seconds are survived";
}

TEST(MembershipTruthPauses, AllOfThisLifeCountEachAtItsLength) {
  MembershipTruth truth(1);
  truth.came_up(at(0), 0, 1);
  truth.paused(at(10), 0, seconds(5));
  truth.paused(at(20), 0, seconds(1));
  EXPECT_FALSE(truth.ran_since(0, at(14), seconds(2)));
  EXPECT_TRUE(truth.ran_since(0, at(16), seconds(2)));
  EXPECT_FALSE(truth.ran_since(0, at(16), Duration{0}));
  EXPECT_TRUE(truth.ran_since(0, at(22), Duration{0}));
  // Two that overlap are one.
  truth.paused(at(30), 0, seconds(2));
  truth.paused(at(31), 0, seconds(2));
  EXPECT_FALSE(truth.ran_since(0, at(30), std::chrono::milliseconds(2500)));
  EXPECT_TRUE(truth.stands_still(0, at(32.5)));
  EXPECT_FALSE(truth.stands_still(0, at(33)));
  truth.went_down(at(40), 0);
  truth.came_up(at(41), 0, 2);
  EXPECT_TRUE(truth.ran_since(0, at(41), Duration{0}));
}

TEST(MembershipPropertiesLiar, ADeathByLiesIsSeenAtOnce) {
  MembershipTruth truth(4);
  for (NodeIndex i = 0; i < 4; ++i) truth.came_up(TimePoint{}, i, 1);
  AccuracyCheck check(bounds(), truth, true);
  const auto found =
      check.saw({at(20), 1, 2, std::nullopt, Belief{incarnation_of(1), MemberState::kDead}});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->invariant, "a liar removes nobody");
}

// ---- 6

TEST_F(MembershipProperties, NewsThatSpreadsInTimeIsFineAndSlowNewsIsSeen) {
  for (const double delay : {1.0, 3.0}) {
    MembershipOracle fresh(settings());
    for (NodeIndex i = 0; i < kNodes; ++i) fresh.came_up(TimePoint{}, i, 1);
    for (int round = 0; round < 10; ++round) {
      const double now = 20.0 + 40.0 * round;
      const auto life = static_cast<std::uint32_t>(2 + round);
      fresh.went_down(at(now), 3, true);
      fresh.came_up(at(now + 1), 3, life);
      for (NodeIndex i = 4; i < kNodes; ++i) {
        const double late = i == 4 ? 0.0 : delay;
        fresh.saw(at(now + 2 + late), i, 3, Belief{incarnation_of(life), MemberState::kAlive});
      }
    }
    fresh.end_of_faults(at(500));
    EXPECT_EQ(fresh.violation().has_value(), delay > 2.0) << delay;
    EXPECT_NEAR(fresh.dissemination().p99_ticks(), delay / 0.2, 1.01);
  }
}

TEST(MembershipBoundsTest, DisseminationIsTwiceThePublishedTicks) {
  MembershipBounds b;
  for (const auto& [nodes, ticks] :
       {std::pair(10.0, 3.0), {100.0, 5.0}, {1000.0, 7.0}, {10000.0, 9.0}}) {
    b.log10_nodes = std::log10(nodes);
    EXPECT_DOUBLE_EQ(b.dissemination_ticks(), 2 * ticks) << nodes;
  }
}

TEST(Beliefs, AreTheSameInATableAndInMaps) {
  Beliefs table(4, true), maps(4, false);
  for (Beliefs* beliefs : {&table, &maps}) {
    EXPECT_FALSE(beliefs->find(1, 2).has_value());
    beliefs->set(1, 2, {incarnation_of(3) + 5, MemberState::kLeft});
    beliefs->set(2, 1, {0, MemberState::kAlive});
    EXPECT_EQ(beliefs->find(1, 2)->incarnation, incarnation_of(3) + 5);
    EXPECT_EQ(beliefs->find(1, 2)->state, MemberState::kLeft);
    EXPECT_TRUE(beliefs->find(2, 1).has_value());
    beliefs->forget_all(1);
    EXPECT_FALSE(beliefs->find(1, 2).has_value());
    beliefs->forget(2, 1);
    EXPECT_FALSE(beliefs->find(2, 1).has_value());
  }
}

// ---- the simulated signatures

TEST(SimAuthority, RefusesWhatItsOwnerDidNotSign) {
  SimAuthority authority(1);
  schema::MemberRecord record;
  record.id = node_id(3);
  record.version = 4;
  authority.sign(record);
  EXPECT_TRUE(authority.verify(record));
  record.state = MemberState::kDead;  // not signed
  EXPECT_TRUE(authority.verify(record));
  record.version = 5;
  EXPECT_FALSE(authority.verify(record));
  schema::Accusation accusation{node_id(1), incarnation_of(1), node_id(2), {}};
  EXPECT_FALSE(authority.verify(accusation));
  authority.sign(accusation);
  EXPECT_TRUE(authority.verify(accusation));
  accusation.accuser = node_id(4);
  EXPECT_FALSE(authority.verify(accusation));
}

TEST(SimAuthority, KeepsOneCopyOfEachRecord) {
  SimAuthority authority(1);
  schema::MemberRecord record;
  record.id = node_id(3);
  const auto first = authority.keep(record);
  EXPECT_EQ(authority.keep(record), first);
  record.state = MemberState::kSuspect;
  const auto other = authority.keep(record);
  EXPECT_NE(other, first);
  for (std::uint64_t version = 1; version < 1000; ++version) {
    record.version = version;
    EXPECT_EQ(authority.keep(record).use_count(), 1);
  }
  record.version = 0;
  EXPECT_EQ(authority.keep(record), other);
}

}  // namespace
}  // namespace kith::sim
