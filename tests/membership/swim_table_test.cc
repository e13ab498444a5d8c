// The indexes under Swim against a naive count: what they keep ready must be what a walk over
// everybody would find.
#include "gossip/membership/swim_table.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "gossip/membership/swim_queues.h"
#include "tests/membership/swim_network.h"

namespace kith::gossip::testing {
namespace {

using schema::MemberRecord;
using schema::MemberState;
using std::chrono::seconds;

std::shared_ptr<MemberRecord> record_of(std::size_t number,
                                        MemberState state = MemberState::kAlive) {
  auto out = std::make_shared<MemberRecord>();
  out->id = test_id(number);
  out->incarnation = 1ULL << 32;
  out->state = state;
  return out;
}

TEST(SwimTable, CountsAndDigestsAreThoseOfAWalkOverAll) {
  Random random(1);
  SwimTable table(test_id(0), 1000);
  std::map<std::size_t, std::pair<MemberState, Incarnation>> naive;
  for (int turn = 0; turn < 5000; ++turn) {
    const std::size_t number = 1 + random.below(40);
    const auto state = static_cast<MemberState>(random.below(4));
    auto record = record_of(number, state);
    record->incarnation += random.below(3);
    SwimMember* member = table.find(record->id);
    if (member == nullptr) {
      table.add(TimePoint{}, record);
      naive[number] = {state, record->incarnation};
    } else if (!is_living(member->state()) && random.chance(0.3)) {
      table.erase(record->id);
      naive.erase(number);
    } else {
      table.replace(TimePoint{}, *member, record);
      naive[number] = {state, record->incarnation};
    }
    if (random.chance(0.3)) table.next_in_round(random);
  }
  SwimTable fresh(test_id(0), 1000);  // entered in another order, from nothing
  std::map<MemberState, std::size_t> counts;
  for (auto it = naive.rbegin(); it != naive.rend(); ++it) {
    auto record = record_of(it->first, it->second.first);
    record->incarnation = it->second.second;
    fresh.add(TimePoint{}, record);
    ++counts[it->second.first];
  }
  EXPECT_EQ(table.buckets(), fresh.buckets());
  for (const auto& [state, count] : counts) EXPECT_EQ(table.count(state), count);
  EXPECT_EQ(table.living(), counts[MemberState::kAlive] + counts[MemberState::kSuspect]);
}

TEST(SwimTable, ARoundProbesEverybodyOnceWhileOthersGo) {
  Random random(2);
  SwimTable table(test_id(0), 1000);
  for (std::size_t i = 1; i <= 40; ++i) table.add(TimePoint{}, record_of(i));
  std::set<NodeId> probed;
  std::set<NodeId> gone;
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(probed.insert(table.next_in_round(random)->record().id).second);
  for (std::size_t i = 1; i <= 15; ++i) {
    table.replace(TimePoint{}, *table.find(test_id(i)), record_of(i, MemberState::kDead));
    gone.insert(test_id(i));
  }
  std::size_t left = 0;
  for (std::size_t i = 16; i <= 40; ++i) left += probed.contains(test_id(i)) ? 0 : 1;
  for (std::size_t i = 0; i < left; ++i) {
    const NodeId id = table.next_in_round(random)->record().id;
    EXPECT_TRUE(probed.insert(id).second) << "twice in a round";
    EXPECT_FALSE(gone.contains(id));
  }
}

TEST(SwimTable, SuspicionDoesNotShowInTheDigestButDeathDoes) {
  SwimTable table(test_id(0), 10);
  SwimMember& member = table.add(TimePoint{}, record_of(1));
  const auto alive = table.buckets();
  table.replace(TimePoint{}, member, record_of(1, MemberState::kSuspect));
  EXPECT_EQ(table.buckets(), alive);
  table.replace(TimePoint{}, member, record_of(1, MemberState::kDead));
  EXPECT_NE(table.buckets(), alive);
  EXPECT_EQ(table.buckets(), SwimTable::Buckets{});
}

TEST(SwimTable, OurOwnRecordIsInTheDigestAsInTheirs) {
  SwimTable mine(test_id(0), 10);
  SwimTable theirs(test_id(1), 10);
  mine.set_self(1ULL << 32);
  theirs.set_self(1ULL << 32);
  mine.add(TimePoint{}, record_of(1));
  theirs.add(TimePoint{}, record_of(0));
  EXPECT_EQ(mine.buckets(), theirs.buckets());
  mine.set_self((1ULL << 32) + 1);
  EXPECT_NE(mine.buckets(), theirs.buckets());
}

TEST(Rumours, AreToldLeastToldFirstAndSoOften) {
  RumourQueue queue(10);
  const Rumour a{test_id(1), {}};
  const Rumour b{test_id(2), {}};
  queue.add(a);
  queue.told(*queue.next(std::nullopt), 3);
  queue.add(b);
  EXPECT_EQ(queue.next(std::nullopt)->rumour, b);
  queue.told(*queue.next(std::nullopt), 3);
  EXPECT_EQ(queue.next(std::nullopt)->rumour, b) << "of two told as often the newer";
  for (int i = 0; i < 4; ++i) queue.told(*queue.next(std::nullopt), 3);
  EXPECT_EQ(queue.size(), 0U);
}

TEST(Rumours, AreBoundedAndTheMostToldGoes) {
  RumourQueue queue(3);
  queue.add({test_id(1), {}});
  queue.told(*queue.next(std::nullopt), 9);
  for (std::size_t i = 2; i <= 4; ++i) queue.add({test_id(i), {}});
  EXPECT_EQ(queue.size(), 3U);
  for (auto place = queue.next(std::nullopt); place; place = queue.next(place))
    EXPECT_NE(place->rumour.subject, test_id(1));
}

TEST(Timers, RunOutInOrderAndCanBeMoved) {
  MemberTimers timers;
  const TimePoint t{seconds(100)};
  timers.set(test_id(1), t + seconds(3));
  timers.set(test_id(2), t + seconds(1));
  timers.set(test_id(1), t);
  EXPECT_EQ(timers.next(), t);
  EXPECT_EQ(timers.take_due(t), test_id(1));
  EXPECT_EQ(timers.take_due(t), std::nullopt);
  timers.clear(test_id(2));
  EXPECT_EQ(timers.next(), TimePoint::max());
  EXPECT_EQ(timers.size(), 0U);
}

}  // namespace
}  // namespace kith::gossip::testing
