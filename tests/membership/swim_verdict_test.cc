// When a suspicion becomes a death: one machine alone with puppets, who answer every PING with a
// record that never refutes. So only the verdict itself decides, not a refutation that comes in
// time.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/membership/swim_network.h"

namespace kith::gossip::testing {
namespace {

using schema::Accusation;
using schema::MemberRecord;
using schema::MemberState;
using std::chrono::milliseconds;
using std::chrono::seconds;

class Verdict : public ::testing::Test {
 protected:
  Verdict()
      : swim_(SwimSettings::preset(milliseconds(200)), record_of(0), authority_, Random(3), now_) {}

  static MemberRecord record_of(std::size_t number) {
    MemberRecord out;
    out.id = test_id(number);
    out.incarnation = 1ULL << 32;
    out.name = "puppet-" + std::to_string(number);
    return out;
  }
  void meet(std::size_t number) {
    MemberRecord& record = puppets_[test_id(number)] = record_of(number);
    authority_.sign(record);
    swim_.on_record(now_, record, true);
  }
  void accuse(std::size_t accuser, std::size_t subject) {
    schema::Gossip news;
    Accusation accusation{test_id(subject), 1ULL << 32, test_id(accuser), {}};
    authority_.sign(accusation);
    news.news.accusations.push_back(accusation);
    swim_.on_message(now_, test_id(accuser), news);
  }
  void silence(std::size_t number) { silent_.insert(test_id(number)); }
  void run(Duration duration) {
    const TimePoint end = now_ + duration;
    while (swim_.next_deadline() <= end) {
      now_ = std::max(now_, swim_.next_deadline());
      swim_.tick(now_);
      for (const SwimOutgoing& out : swim_.take_outgoing()) answer(out);
    }
    now_ = end;
  }
  void answer(const SwimOutgoing& out) {
    for_each_accusation(out.message);
    const auto* ping = std::get_if<schema::Ping>(&out.message);
    if (ping == nullptr || silent_.contains(out.to)) return;
    schema::Pong pong{ping->sequence, out.to, {}};
    pong.news.records.push_back(puppets_.at(out.to));
    swim_.on_message(now_, out.to, pong);
  }
  void for_each_accusation(const schema::Message& message) {
    if (const auto* gossip = std::get_if<schema::Gossip>(&message))
      for (const Accusation& accusation : gossip->news.accusations)
        if (accusation.accuser == test_id(0)) ++own_accusations_told_;
  }
  [[nodiscard]] MemberState state(std::size_t number) {
    return swim_.find(test_id(number))->state();
  }

  ToyAuthority authority_;
  TimePoint now_{std::chrono::hours(1)};
  std::map<NodeId, MemberRecord> puppets_;
  std::set<NodeId> silent_;
  std::size_t own_accusations_told_ = 0;
  Swim swim_;
};

TEST_F(Verdict, OneAccuserConvictsNobody) {
  for (std::size_t i = 1; i <= 5; ++i) meet(i);
  accuse(1, 5);
  EXPECT_EQ(state(5), MemberState::kSuspect);
  run(swim_.suspicion_max() * 10);
  EXPECT_EQ(state(5), MemberState::kSuspect);
  EXPECT_EQ(swim_.counters().convictions, 0U);
}

TEST_F(Verdict, OneAccuserWhoRepeatsItselfIsStillOne) {
  for (std::size_t i = 1; i <= 5; ++i) meet(i);
  for (int i = 0; i < 200; ++i) {
    accuse(1, 5);
    run(milliseconds(200));
  }
  EXPECT_EQ(state(5), MemberState::kSuspect);
  EXPECT_EQ(swim_.accusations(test_id(5)).size(), 1U);
}

TEST_F(Verdict, TwoAccusersConvict) {
  for (std::size_t i = 1; i <= 5; ++i) meet(i);
  accuse(1, 5);
  accuse(2, 5);
  const Duration with_two =
      swim_.suspicion_max() - (swim_.suspicion_max() - swim_.suspicion_min()) / 2;
  run(with_two - milliseconds(10));
  EXPECT_EQ(state(5), MemberState::kSuspect);
  run(milliseconds(20));
  EXPECT_EQ(state(5), MemberState::kDead);
}

TEST_F(Verdict, FourAccusersShortenItToTheMinimum) {
  for (std::size_t i = 1; i <= 6; ++i) meet(i);
  for (std::size_t i = 1; i <= 4; ++i) accuse(i, 6);
  run(swim_.suspicion_min() - milliseconds(10));
  EXPECT_EQ(state(6), MemberState::kSuspect);
  run(milliseconds(20));
  EXPECT_EQ(state(6), MemberState::kDead);
}

TEST_F(Verdict, ASecondAccuserMayComeLate) {
  for (std::size_t i = 1; i <= 5; ++i) meet(i);
  accuse(1, 5);
  run(swim_.suspicion_max() * 3);
  accuse(2, 5);
  run(seconds(1));
  EXPECT_EQ(state(5), MemberState::kDead);
}

TEST_F(Verdict, OfTheOnlyVoterLeftNeedsItsOwnEyes) {
  // 1 accuses 2 and falls silent itself: we are the only voter, but 2 answers us.
  meet(1);
  meet(2);
  accuse(1, 2);
  run(swim_.suspicion_max() - seconds(1));
  silence(1);
  run(milliseconds(800));
  ASSERT_EQ(state(1), MemberState::kSuspect);
  run(seconds(1));  // the suspicion of 2 ends while its accuser is suspect and still counts
  EXPECT_EQ(state(2), MemberState::kSuspect);
  run(seconds(20));
  EXPECT_EQ(state(1), MemberState::kDead);
  EXPECT_EQ(state(2), MemberState::kSuspect);
  silence(2);
  run(seconds(2));
  EXPECT_EQ(state(2), MemberState::kDead);
}

TEST_F(Verdict, IsHeldForAWholeSuspicionAfterAPause) {
  for (std::size_t i = 1; i <= 5; ++i) meet(i);
  accuse(1, 5);
  accuse(2, 5);
  now_ = now_ + seconds(120);
  swim_.on_own_pause(now_);
  run(swim_.suspicion_max() - milliseconds(10));
  EXPECT_EQ(state(5), MemberState::kSuspect);
  run(seconds(2));
  EXPECT_EQ(state(5), MemberState::kDead);
}

TEST_F(Verdict, NobodyIsAccusedInTheWindowAfterAPause) {
  for (std::size_t i = 1; i <= 5; ++i) meet(i);
  run(seconds(2));
  now_ = now_ + seconds(120);
  for (std::size_t i = 1; i <= 5; ++i) silence(i);  // links are down after so long
  swim_.on_own_pause(now_);
  run(swim_.suspicion_max() - seconds(1));
  EXPECT_EQ(swim_.count(MemberState::kSuspect), 0U);
  EXPECT_EQ(own_accusations_told_, 0U);
  run(seconds(5));
  EXPECT_GT(swim_.count(MemberState::kSuspect), 0U);
}

TEST_F(Verdict, TheDeadDoNotAccuse) {
  for (std::size_t i = 1; i <= 5; ++i) meet(i);
  silence(1);
  accuse(2, 1);
  run(seconds(12));
  ASSERT_EQ(state(1), MemberState::kDead);
  accuse(1, 5);
  EXPECT_EQ(state(5), MemberState::kAlive);
}

TEST_F(Verdict, OfOneWhoDiedMeanwhileDoesNotCount) {
  for (std::size_t i = 1; i <= 5; ++i) meet(i);
  accuse(1, 5);
  silence(1);
  accuse(2, 1);
  run(seconds(12));
  ASSERT_EQ(state(1), MemberState::kDead);
  accuse(3, 5);
  run(seconds(12));
  EXPECT_EQ(state(5), MemberState::kSuspect);
  accuse(4, 5);
  run(seconds(1));
  EXPECT_EQ(state(5), MemberState::kDead);
}

TEST_F(Verdict, TheWordOfTheDeadIsToldToTheAccusedAllTheSame) {
  for (std::size_t i = 1; i <= 5; ++i) meet(i);
  silence(1);
  accuse(2, 1);
  run(seconds(12));
  ASSERT_EQ(state(1), MemberState::kDead);
  accuse(1, 5);
  EXPECT_EQ(state(5), MemberState::kAlive);
  swim_.take_outgoing();
  swim_.on_message(now_, test_id(5), schema::Ping{1, {}});
  const auto out = swim_.take_outgoing();
  ASSERT_EQ(out.size(), 1U);
  const auto& told = std::get<schema::Pong>(out[0].message).news.accusations;
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].accuser, test_id(1));
}

TEST_F(Verdict, IncarnationNeverFallsWhateverIsTold) {
  meet(1);
  meet(2);
  MemberRecord higher = puppets_[test_id(2)];
  higher.incarnation += 7;
  authority_.sign(higher);
  swim_.on_record(now_, higher, false);
  MemberRecord older = puppets_[test_id(2)];
  older.version += 100;
  authority_.sign(older);
  swim_.on_record(now_, older, false);
  swim_.on_record(now_, older, true);
  EXPECT_EQ(swim_.find(test_id(2))->record().incarnation, higher.incarnation);
}

TEST_F(Verdict, DeadRisesOnlyWithAHigherIncarnation) {
  for (std::size_t i = 1; i <= 3; ++i) meet(i);
  silence(3);
  accuse(1, 3);
  run(seconds(12));
  ASSERT_EQ(state(3), MemberState::kDead);
  MemberRecord same = puppets_[test_id(3)];
  same.version += 5;
  authority_.sign(same);
  swim_.on_record(now_, same, true);
  EXPECT_EQ(state(3), MemberState::kDead);
  same.incarnation += 1;
  authority_.sign(same);
  swim_.on_record(now_, same, false);
  EXPECT_EQ(state(3), MemberState::kAlive);
}

}  // namespace
}  // namespace kith::gossip::testing
