#include "node/daemon/data_share.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

namespace kith::node {
namespace {

using schema::MemberState;
using schema::RunState;

struct Held {
  schema::MemberRecord record;
};

NodeId id(std::uint8_t n) {
  NodeId node;
  node.bytes[0] = n;
  return node;
}

// A node with id 1 and its view of the others; time stands where a test puts it.
struct Sharing {
  explicit Sharing(std::size_t samples = 1000, bool shares = true)
      : share(
            {.self = id(1),
             .shares = shares,
             .samples = samples,
             .loaded = samples,
             .seed = 3,
             .probe_interval = std::chrono::milliseconds(200)},
            [this](compute::SampleMask given, std::optional<compute::BatchCursor::Position> at) {
              masks.push_back(std::move(given));
              positions.push_back(at);
            },
            log) {
    share.describe(own);
  }
  void see(std::uint8_t n, RunState run = RunState::kTraining,
           MemberState state = MemberState::kAlive) {
    auto& r = members[id(n)].record;
    r.id = id(n);
    r.shares_data = true;
    r.run_state = run;
    r.state = state;
  }
  void turn(double seconds) {
    share.turn({TimePoint{} + from_seconds(seconds), state, epoch, adoptions}, members, own);
  }

  MemoryLog log;
  std::vector<compute::SampleMask> masks;
  std::vector<std::optional<compute::BatchCursor::Position>> positions;
  DataShare share;
  std::map<NodeId, Held> members;
  schema::MemberRecord own;
  RunState state = RunState::kWaiting;
  double epoch = 0.0;
  std::uint64_t adoptions = 0;
};

TEST(DataShare, AloneNothingIsTouched) {
  Sharing s;
  s.turn(0);
  s.state = RunState::kTraining;
  for (double t = 0; t < 20; t += 0.1) s.turn(t);
  EXPECT_TRUE(s.masks.empty());
  EXPECT_TRUE(s.own.shares_data);
  EXPECT_EQ(s.own.shard_samples, 1000U);
}

TEST(DataShare, BeforeTrainingEveryNewcomerCountsAtOnce) {
  Sharing s;
  s.see(2, RunState::kWaiting);
  s.turn(0);
  ASSERT_EQ(s.masks.size(), 1U);
  EXPECT_NEAR(static_cast<double>(s.own.shard_samples), 500, 16);
  s.see(3, RunState::kWaiting);
  s.turn(0.01);
  ASSERT_EQ(s.masks.size(), 2U);
  EXPECT_NEAR(static_cast<double>(s.own.shard_samples), 333, 40);
}

TEST(DataShare, WhileTrainingAChangeSettlesFirstAndASuspectKeepsItsShare) {
  Sharing s;
  s.see(2);
  s.turn(0);
  s.state = RunState::kTraining;
  s.see(2, RunState::kTraining, MemberState::kSuspect);
  for (double t = 0.1; t < 5; t += 0.1) s.turn(t);
  EXPECT_EQ(s.masks.size(), 1U);
  s.see(2, RunState::kTraining, MemberState::kDead);
  double taken_at = -1.0;
  for (double t = 5; t < 8 && taken_at < 0; t += 0.1) {
    s.turn(t);
    if (s.masks.size() == 2) taken_at = t;
  }
  EXPECT_GE(taken_at, 5.0 + 0.75);
  EXPECT_LE(taken_at, 5.0 + 1.2);
  EXPECT_TRUE(s.masks.back().empty()) << "all the data again";
  EXPECT_EQ(s.own.shard_samples, 1000U);
}

TEST(DataShare, OnceTheRunIsEndingNothingMovesAnyMore) {
  for (const RunState end : {RunState::kFinishing, RunState::kComplete, RunState::kLeaving}) {
    Sharing s;
    s.see(2);
    s.turn(0);
    s.state = end;
    s.see(2, RunState::kTraining, MemberState::kDead);
    s.adoptions = 1;
    for (double t = 0; t < 20; t += 0.1) s.turn(t);
    EXPECT_EQ(s.masks.size(), 1U);
  }
}

TEST(DataShare, AfterAnAdoptionTheNodeStandsWhereTheClusterDoes) {
  Sharing s;
  s.see(2);
  s.turn(0);
  s.adoptions = 1;
  s.epoch = 2.25;
  s.turn(0.1);
  s.turn(0.2);
  ASSERT_EQ(s.positions.size(), 2U) << "once per adoption";
  EXPECT_EQ(s.positions.back(), (compute::BatchCursor::Position{2, 250}));
  EXPECT_EQ(s.masks.back(), s.masks.front()) << "the share stays";
}

TEST(DataShare, ALargeTableIsComputedElsewhereAndIsTheSame) {
  Sharing s(60000);
  for (std::uint8_t n = 2; n <= 40; ++n) s.see(n, RunState::kWaiting);
  s.turn(0);
  EXPECT_TRUE(s.masks.empty()) << "not on the loop";
  s.see(41, RunState::kWaiting);  // meanwhile, or just after the first table was ready
  std::vector<NodeId> sharers;
  for (std::uint8_t n = 1; n <= 41; ++n) sharers.push_back(id(n));
  const auto wanted = gossip::share_of(id(1), sharers, 3, 60000);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (double t = 0.01;
       (s.masks.empty() || s.masks.back() != wanted) && std::chrono::steady_clock::now() < end;
       t += 0.01) {
    s.turn(t);
    std::this_thread::yield();
  }
  ASSERT_FALSE(s.masks.empty());
  EXPECT_TRUE(s.masks.back() == wanted);
}

TEST(DataShare, WhoDoesNotShareIsLeftAlone) {
  Sharing s(1000, false);
  s.see(2);
  s.adoptions = 1;
  s.turn(0);
  EXPECT_TRUE(s.masks.empty());
  EXPECT_FALSE(s.own.shares_data);
  EXPECT_EQ(s.own.shard_samples, 1000U);
}

}  // namespace
}  // namespace kith::node
