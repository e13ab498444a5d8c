// What membership costs: bytes per node do not depend on their number, and nothing grows with time.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <set>

#include "tests/membership/swim_network.h"

namespace kith::gossip::testing {
namespace {

using schema::MemberRecord;
using schema::MemberState;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const SwimSettings kLocal = SwimSettings::preset(milliseconds(200));

// Bytes per node and second while every node trains: its figures change twice a second.
double bytes_per_node_second(std::size_t nodes) {
  SwimNetwork network(nodes, kLocal, 1);
  network.introduce_all();
  network.each_tick = [&](TestNode& node) {
    MemberRecord own = node.swim->own();
    own.step = static_cast<Step>(network.now().since_start / milliseconds(500));
    node.swim->set_own(network.now(), own);
  };
  network.run(seconds(40));  // who is new has been told to all
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < nodes; ++i) before += network.node(i).bytes_out;
  network.run(seconds(8));
  std::uint64_t after = 0;
  for (std::size_t i = 0; i < nodes; ++i) after += network.node(i).bytes_out;
  return static_cast<double>(after - before) / static_cast<double>(nodes) / 8.0;
}

TEST(Bytes, PerNodeDoNotDependOnTheNumberOfNodes) {
  const double few = bytes_per_node_second(16);
  const double many = bytes_per_node_second(256);
  RecordProperty("bytes_16", static_cast<int>(few));
  RecordProperty("bytes_256", static_cast<int>(many));
  EXPECT_LT(many, few * 1.2);
  EXPECT_GT(many, few * 0.8);
  EXPECT_LT(many, 14e3) << "about ten kilobytes while nothing happens";
}

TEST(Hurry, TellsASmallClusterAtOnceAndALargeOneNoMoreThanItsFanout) {
  for (const std::size_t nodes : {8U, 64U}) {
    SwimNetwork network(nodes, kLocal, 2);
    network.introduce_all();
    network.run(seconds(3));
    MemberRecord own = network.swim(3).own();
    own.run_state = schema::RunState::kFinishing;
    network.swim(3).set_own(network.now(), own);
    network.swim(3).hurry();
    const auto sent = network.swim(3).take_outgoing();
    EXPECT_EQ(sent.size(), std::min<std::size_t>(nodes - 1, kLocal.hurry_fanout));
    std::set<NodeId> told;
    for (const auto& out : sent) {
      told.insert(out.to);
      EXPECT_EQ(std::get<schema::Gossip>(out.message).news.records.at(0).run_state,
                schema::RunState::kFinishing);
    }
    EXPECT_EQ(told.size(), sent.size()) << "nobody is told twice";
  }
}

TEST(Figures, ReachEverybodyWithinSeconds) {
  SwimNetwork network(64, kLocal, 2);
  network.introduce_all();
  network.run(seconds(3));
  MemberRecord own = network.swim(9).own();
  own.samples = 12345;
  own.run_state = schema::RunState::kFinishing;
  network.swim(9).set_own(network.now(), own);
  const auto known = [&] {
    for (std::size_t i = 0; i < 64; ++i)
      if (i != 9 && network.swim(i).find(own.id)->record().samples != 12345) return false;
    return true;
  };
  EXPECT_TRUE(network.run_until(known, milliseconds(200 * 9 * 2)));
}

TEST(Rotation, TellsEveryRecordInTheEnd) {
  // Nothing changes and nothing is news any more: a newcomer would still hear of everybody.
  SwimSettings settings = kLocal;
  settings.forget_after = std::chrono::hours(100);
  ToyAuthority authority;
  MemberRecord own;
  own.id = test_id(1);
  own.incarnation = 1ULL << 32;
  TimePoint now{std::chrono::hours(1)};
  Swim swim(settings, own, authority, Random(1), now);
  for (std::size_t i = 0; i < 60; ++i) {
    MemberRecord record;
    record.id = test_id(100 + i);
    record.incarnation = 1ULL << 32;
    authority.sign(record);
    swim.on_record(now, record, false);
  }
  std::set<NodeId> heard;
  const auto listen = [&](const schema::News& news) {
    for (const MemberRecord& record : news.records) heard.insert(record.id);
  };
  for (int second = 0; second < 60; ++second) {
    if (second == 40) heard.clear();
    const TimePoint end = now + seconds(1);
    while (now < end) {
      now = std::max(now + Duration(1), swim.next_deadline());
      swim.tick(now);
      for (const SwimOutgoing& out : swim.take_outgoing())
        if (const auto* gossip = std::get_if<schema::Gossip>(&out.message)) listen(gossip->news);
    }
  }
  EXPECT_EQ(heard.size(), 60U) << "our own record rides on probes";
}

TEST(Links, OfANodeThatStartsHurryNothing) {
  ToyAuthority authority;
  MemberRecord own;
  own.id = test_id(1);
  own.incarnation = 1ULL << 32;
  TimePoint now{std::chrono::hours(1)};
  Swim swim(kLocal, own, authority, Random(1), now);
  for (std::size_t i = 0; i < 300; ++i) {
    MemberRecord record;
    record.id = test_id(100 + i);
    record.incarnation = 1ULL << 32;
    authority.sign(record);
    swim.on_record(now, record, true);
    swim.on_link(now, record.id, true);
  }
  std::size_t pings = 0;
  const TimePoint end = now + kLocal.probe_interval * 2;  // before local health changes the pace
  while (swim.next_deadline() <= end) {
    now = std::max(now + Duration(1), swim.next_deadline());
    swim.tick(now);
    for (const SwimOutgoing& out : swim.take_outgoing())
      if (std::holds_alternative<schema::Ping>(out.message)) ++pings;
  }
  EXPECT_LE(pings, 3U);
}

TEST(UnansweredProbes, LeaveNothingBehind) {
  if (mallinfo2().uordblks == 0) GTEST_SKIP() << "a sanitizer's allocator does not count";
  // One machine, 40 members that never answer, brought back each time they are dead: 10^5 probes.
  SwimSettings settings = kLocal;
  settings.suspicion_mult = 2;
  ToyAuthority authority;
  MemberRecord own;
  own.id = test_id(1);
  own.incarnation = 1ULL << 32;
  TimePoint now{std::chrono::hours(1)};
  Swim swim(settings, own, authority, Random(1), now);
  std::vector<MemberRecord> members(40);
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i].id = test_id(100 + i);
    members[i].incarnation = 1ULL << 32;
    members[i].name = "member with a long enough name to be on the heap";
  }
  std::size_t settled = 0;
  while (swim.counters().probes < 100000) {
    now = std::max(now + Duration(1), swim.next_deadline());
    swim.tick(now);
    swim.take_outgoing();
    swim.take_events();
    for (MemberRecord& member : members) {
      const SwimMember* held = swim.find(member.id);
      if (held != nullptr && held->state() != MemberState::kDead) continue;
      ++member.incarnation;
      authority.sign(member);
      swim.on_record(now, member, true);
    }
    if (settled == 0 && swim.counters().probes >= 10000) settled = mallinfo2().uordblks;
  }
  EXPECT_GT(swim.counters().convictions, 1000U);
  EXPECT_GT(settled, 0U);
  EXPECT_LT(mallinfo2().uordblks, settled + (64U << 10));
}

TEST(Tick, DoesNotWalkTheMembers) {
  // The same number of ticks with 100 and with 10,000 members: probes and gossip are counted in
  // messages, not members.
  const auto messages = [](std::size_t members) {
    ToyAuthority authority;
    MemberRecord own;
    own.id = test_id(1);
    own.incarnation = 1ULL << 32;
    TimePoint now{std::chrono::hours(1)};
    Swim swim(kLocal, own, authority, Random(1), now);
    for (std::size_t i = 0; i < members; ++i) {
      MemberRecord record;
      record.id = test_id(100 + i);
      record.incarnation = 1ULL << 32;
      authority.sign(record);
      swim.on_record(now, record, false);
    }
    std::size_t bytes = 0;
    TimePoint from = now + seconds(4);  // it has told all that it is new
    const TimePoint end = from + seconds(2);
    while (now < end) {
      now = std::max(now + Duration(1), swim.next_deadline());
      swim.tick(now);
      for (const SwimOutgoing& out : swim.take_outgoing())
        if (now >= from && !std::holds_alternative<schema::PingRequest>(out.message))
          bytes += bytes_of(out.message);
    }
    return bytes;
  };
  EXPECT_NEAR(static_cast<double>(messages(10000)), static_cast<double>(messages(100)),
              0.2 * static_cast<double>(messages(100)));
}

}  // namespace
}  // namespace kith::gossip::testing
