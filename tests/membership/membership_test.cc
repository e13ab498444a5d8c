#include "gossip/membership.h"

#include <gtest/gtest.h>

namespace kith::gossip {
namespace {

using schema::Heartbeat;
using schema::MemberRecord;
using schema::MemberState;
using Kind = MemberEvent::Kind;
using std::chrono::milliseconds;

NodeId id(std::uint8_t n) {
  NodeId node;
  node.bytes[0] = n;
  return node;
}

TimePoint at(int ms) { return {milliseconds(ms)}; }

MemberRecord record(std::uint8_t n, Incarnation incarnation = 1, std::uint64_t version = 1) {
  MemberRecord r;
  r.id = id(n);
  r.name = std::string(1, static_cast<char>('a' + n));
  r.incarnation = incarnation;
  r.version = version;
  return r;
}

Heartbeat heartbeat(const MemberRecord& r, std::uint64_t echo = 0, std::uint64_t reply = 0, std::uint64_t hold = 0) {
  Heartbeat h;
  h.record = r;
  h.echo = echo;
  h.echo_reply = reply;
  h.echo_hold = hold;
  return h;
}

std::vector<Kind> kinds(Membership& m) {
  std::vector<Kind> out;
  for (const auto& event : m.take_events()) out.push_back(event.kind);
  return out;
}

MemberState state_of(const Membership& m, std::uint8_t n) { return m.find(id(n))->record.state; }

TEST(Membership, SilenceMakesSuspectAfterOneSecondAndDeadAfterFive) {
  Membership m({}, id(0), at(0));
  m.on_record(at(0), record(1), true);
  m.tick(at(1000));
  EXPECT_EQ(state_of(m, 1), MemberState::kAlive);
  m.tick(at(1001));
  EXPECT_EQ(state_of(m, 1), MemberState::kSuspect);
  m.tick(at(5000));
  EXPECT_EQ(state_of(m, 1), MemberState::kSuspect);
  m.tick(at(5001));
  EXPECT_EQ(state_of(m, 1), MemberState::kDead);
  EXPECT_EQ(kinds(m), (std::vector{Kind::kJoined, Kind::kSuspect, Kind::kDead}));
}

TEST(Membership, AStopOfThreeSecondsKillsNobody) {
  Membership m({}, id(0), at(0));
  m.on_record(at(0), record(1), true);
  m.tick(at(3000));
  m.on_heartbeat(at(3001), id(1), heartbeat(record(1, 1, 2)));
  m.tick(at(3002));
  EXPECT_EQ(state_of(m, 1), MemberState::kAlive);
}

TEST(Membership, RelayedNewsDoesNotCountAsHearingFromTheMember) {
  Membership m({}, id(0), at(0));
  m.on_record(at(0), record(1), true);
  for (int i = 1; i <= 60; ++i) {
    m.on_record(at(i * 100), record(1, 1, 1 + static_cast<std::uint64_t>(i)), false);
    m.tick(at(i * 100));
  }
  EXPECT_EQ(state_of(m, 1), MemberState::kDead);
  EXPECT_EQ(m.find(id(1))->record.version, 61U);
}

TEST(Membership, WhomOthersCallDeadIsNotAliveBecauseItIsNewToUs) {
  Membership m({}, id(0), at(0));
  MemberRecord dead = record(1);
  dead.state = MemberState::kDead;
  m.on_record(at(0), dead, false);
  EXPECT_EQ(state_of(m, 1), MemberState::kDead);
  m.on_record(at(1), dead, true);  // it speaks itself
  EXPECT_EQ(state_of(m, 1), MemberState::kAlive);
}

TEST(Membership, TheDeadReturnWhenTheySpeak) {
  Membership m({}, id(0), at(0));
  m.on_record(at(0), record(1), true);
  m.tick(at(6000));
  kinds(m);
  m.on_heartbeat(at(6100), id(1), heartbeat(record(1, 1, 9)));
  EXPECT_EQ(state_of(m, 1), MemberState::kAlive);
  EXPECT_EQ(kinds(m), std::vector{Kind::kReturned});
}

TEST(Membership, OlderRecordsNeverReplaceNewerOnes) {
  Membership m({}, id(0), at(0));
  m.on_record(at(0), record(1, 5, 7), true);
  EXPECT_FALSE(m.is_news(record(1, 5, 7)));
  EXPECT_FALSE(m.is_news(record(1, 4, 99)));
  EXPECT_TRUE(m.is_news(record(1, 5, 8)));
  EXPECT_TRUE(m.is_news(record(1, 6, 1)));
  m.on_record(at(1), record(1, 4, 99), true);
  EXPECT_EQ(m.find(id(1))->record.incarnation, 5U);
}

TEST(Membership, WhoLeftStaysLeftUntilAHigherIncarnation) {
  Membership m({}, id(0), at(0));
  m.on_record(at(0), record(1, 3), true);
  m.on_leave(at(10), id(1));
  m.on_heartbeat(at(20), id(1), heartbeat(record(1, 3, 2)));
  EXPECT_EQ(state_of(m, 1), MemberState::kLeft);
  m.tick(at(60000));
  EXPECT_EQ(state_of(m, 1), MemberState::kLeft);
  m.on_record(at(60001), record(1, 4), false);
  EXPECT_EQ(state_of(m, 1), MemberState::kAlive);
}

TEST(Membership, AMemberThatSaidItIsLeavingIsNotCalledDead) {
  Membership m({}, id(0), at(0));
  MemberRecord leaving = record(1);
  leaving.run_state = schema::RunState::kLeaving;
  m.on_record(at(0), leaving, true);
  m.tick(at(6000));
  EXPECT_EQ(state_of(m, 1), MemberState::kLeft);
}

TEST(Membership, NobodyIsConvictedForOurOwnPause) {
  Membership m({}, id(0), at(0));
  m.on_record(at(0), record(1), true);
  m.on_own_pause(at(120000));
  m.tick(at(120500));
  EXPECT_EQ(state_of(m, 1), MemberState::kAlive);
}

TEST(Membership, RoundTripExcludesTheTimeThePeerHeldTheEcho) {
  Membership m({}, id(0), at(0));
  m.on_record(at(0), record(1), true);
  const auto sent = static_cast<std::uint64_t>(at(1000).since_start.count());
  const auto hold = static_cast<std::uint64_t>(Duration(milliseconds(150)).count());
  m.on_heartbeat(at(1160), id(1), heartbeat(record(1, 1, 2), 0, sent, hold));
  EXPECT_NEAR(m.find(id(1))->rtt_seconds, 0.010, 1e-9);
  // A lie (held longer than away, or from the future) is ignored.
  m.on_heartbeat(at(1170), id(1), heartbeat(record(1, 1, 3), 0, sent, hold * 10));
  m.on_heartbeat(at(1170), id(1), heartbeat(record(1, 1, 4), 0, sent * 10, 0));
  EXPECT_NEAR(m.find(id(1))->rtt_seconds, 0.010, 1e-9);
}

TEST(Membership, ChangesAreRelayedAndEveryRecordComesRoundByRotation) {
  Membership m({}, id(0), at(0));
  for (std::uint8_t n = 1; n <= 40; ++n) m.on_record(at(0), record(n), false);
  std::map<NodeId, int> seen;
  for (int beat = 0; beat < 400; ++beat) {
    const Heartbeat h = m.heartbeat_for(at(beat), id(1), record(0), 0);
    ASSERT_LE(h.records.size(), 32U);
    for (const auto& r : h.records) ++seen[r.id];
  }
  EXPECT_EQ(seen.size(), 40U);  // its own too: that is how a copied identity comes to light
  // Once the news is spent, one record a heartbeat goes round.
  for (int beat = 0; beat < 400; ++beat) m.heartbeat_for(at(400 + beat), id(2), record(0), 0);
  EXPECT_EQ(m.heartbeat_for(at(1000), id(3), record(0), 0).records.size(), 1U);
}

TEST(Membership, OneProbePerIntervalAndNoCatchingUpAfterAPause) {
  Membership m({}, id(0), at(0));
  EXPECT_TRUE(m.probe_due(at(0)));
  EXPECT_FALSE(m.probe_due(at(199)));
  EXPECT_TRUE(m.probe_due(at(200)));
  EXPECT_TRUE(m.probe_due(at(10000)));
  EXPECT_FALSE(m.probe_due(at(10000)));
  EXPECT_TRUE(m.probe_due(at(10200)));
}

}  // namespace
}  // namespace kith::gossip
