#include "node/daemon/join.h"

#include <gtest/gtest.h>

namespace kith::node {
namespace {

using schema::RejectCode;
using std::chrono::seconds;

TimePoint at(int s) { return {seconds(s)}; }

JoinSettings settings(std::vector<std::string> seeds) {
  JoinSettings s;
  s.seeds = std::move(seeds);
  s.grace = seconds(2);
  return s;
}

schema::Reject reject(RejectCode code, std::string detail = "why") {
  schema::Reject r;
  r.code = code;
  r.detail = std::move(detail);
  return r;
}

TEST(Join, WithoutSeedsANodeIsTheFirst) {
  EXPECT_EQ(JoinMachine(settings({}), at(0)).state(), JoinState::kAlone);
}

TEST(Join, WithSeedsItWaitsForEverAndNeverStartsAloneSilently) {
  JoinMachine m(settings({"a:1"}), at(0));
  m.tick(at(1000000));
  EXPECT_EQ(m.state(), JoinState::kSeeking);
  EXPECT_EQ(m.next_deadline(), TimePoint::max());
}

TEST(Join, BootstrapStartsAloneAfterTheGrace) {
  JoinSettings s = settings({"a:1"});
  s.bootstrap = true;
  JoinMachine m(s, at(0));
  m.tick(at(1));
  EXPECT_EQ(m.state(), JoinState::kSeeking);
  m.tick(at(2));
  EXPECT_EQ(m.state(), JoinState::kAlone);
}

TEST(Join, ItsOwnAddressAmongTheSeedsAllowsStartingAlone) {
  JoinMachine m(settings({"self:1", "self:1"}), at(0));
  m.on_refused("self:1", reject(RejectCode::kSelf));
  m.tick(at(3));
  EXPECT_EQ(m.state(), JoinState::kAlone);
  m.on_peer(at(9));  // the other one comes up later: islands merge
  EXPECT_EQ(m.state(), JoinState::kJoined);
}

TEST(Join, RefusedByEverySeedEndsButByOneDoesNot) {
  JoinMachine m(settings({"a:1", "b:2"}), at(0));
  m.on_refused("a:1", reject(RejectCode::kSchema, "schema: x here, y there"));
  EXPECT_EQ(m.state(), JoinState::kSeeking);
  m.on_refused("b:2", reject(RejectCode::kRun));
  EXPECT_EQ(m.state(), JoinState::kRefused);
  EXPECT_NE(m.explain().find("a:1: refused: schema: x here, y there"), std::string::npos);
}

TEST(Join, ANameRefusesOnlyWhenAllItsAddressesDo) {
  JoinMachine m(settings({"seeds:1"}), at(0));
  m.on_refused("seeds:1", reject(RejectCode::kRun), false);
  EXPECT_EQ(m.state(), JoinState::kSeeking);
  m.on_unreachable("seeds:1", "10.0.0.2:1: connection refused");
  m.on_refused("seeds:1", reject(RejectCode::kRun), false);
  EXPECT_EQ(m.state(), JoinState::kSeeking);
  m.on_refused("seeds:1", reject(RejectCode::kRun), true);
  EXPECT_EQ(m.state(), JoinState::kRefused);
}

TEST(Join, ASeedThatStoppedRefusingIsOnlyUnreachable) {
  JoinMachine m(settings({"a:1", "b:2"}), at(0));
  m.on_refused("a:1", reject(RejectCode::kRun));
  m.on_unreachable("a:1", "connection refused");
  m.on_refused("b:2", reject(RejectCode::kRun));
  EXPECT_EQ(m.state(), JoinState::kSeeking);
}

TEST(Join, OnceJoinedARefusalChangesNothing) {
  JoinMachine m(settings({"a:1"}), at(0));
  m.on_peer(at(1));
  m.on_refused("a:1", reject(RejectCode::kFacts));
  EXPECT_EQ(m.state(), JoinState::kJoined);
}

TEST(Join, TheExplanationNamesEachAddressOnce) {
  JoinMachine m(settings({"127.0.0.1:7400", "seed:7400", "127.0.0.1:740"}), at(0));
  m.on_unreachable("127.0.0.1:7400", "127.0.0.1:7400: does not answer");
  m.on_unreachable("seed:7400", "10.0.0.5:7400: does not answer");
  m.on_unreachable("127.0.0.1:740", "127.0.0.1:7400: does not answer");
  EXPECT_EQ(m.explain(),
            "127.0.0.1:7400: does not answer; seed:7400: 10.0.0.5:7400: does not answer; "
            "127.0.0.1:740: 127.0.0.1:7400: does not answer");
}

TEST(Join, TheTimeoutEndsTheWait) {
  JoinSettings s = settings({"a:1"});
  s.join_timeout = seconds(5);
  JoinMachine m(s, at(0));
  EXPECT_EQ(m.next_deadline(), at(5));
  m.tick(at(5));
  EXPECT_EQ(m.state(), JoinState::kTimedOut);
  EXPECT_EQ(m.explain(), "a:1: no answer");
}

}  // namespace
}  // namespace kith::node
