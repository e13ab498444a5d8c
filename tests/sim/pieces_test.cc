// The simulator's parts alone: queue, network, replica in integers, trainer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "gossip/sim/event_queue.h"
#include "gossip/sim/fixed_point_store.h"
#include "gossip/sim/network.h"
#include "gossip/sim/node_ids.h"
#include "gossip/sim/trainer.h"

namespace kith::sim {
namespace {

using std::chrono::milliseconds;

Event at(int ms, NodeIndex node) {
  Event event;
  event.time = TimePoint{milliseconds(ms)};
  event.node = node;
  return event;
}

TEST(EventQueue, GivesEventsByTimeAndThenInTheOrderOfScheduling) {
  EventQueue queue;
  for (const auto& [ms, node] :
       std::vector<std::pair<int, NodeIndex>>{{5, 0}, {3, 1}, {5, 2}, {3, 3}, {1, 4}, {5, 5}}) {
    queue.push(at(ms, node));
  }
  std::vector<NodeIndex> order;
  while (!queue.empty()) order.push_back(queue.pop().node);
  EXPECT_THAT(order, testing::ElementsAre(4, 1, 3, 0, 2, 5));
}

TEST(EventQueue, AgreesWithSortingUnderManyPushesAndPops) {
  EventQueue queue;
  Random random(5);
  std::vector<std::pair<int, NodeIndex>> expected;  // (time, number): numbers rise with scheduling
  NodeIndex next = 0;
  for (int round = 0; round < 2000; ++round) {
    for (std::uint64_t i = random.below(4); i > 0; --i) {
      const int ms = static_cast<int>(random.below(50));
      queue.push(at(ms, next));
      expected.emplace_back(ms, next++);
    }
    if (expected.empty()) continue;
    const auto earliest = std::min_element(expected.begin(), expected.end());
    ASSERT_EQ(queue.pop().node, earliest->second);
    expected.erase(earliest);
  }
  EXPECT_EQ(queue.size(), expected.size());
}

TEST(TraceHash, DependsOnValuesAndOnTheirOrder) {
  TraceHash a, b, c;
  a.add(1), a.add(2);
  b.add(2), b.add(1);
  c.add(1), c.add(2);
  EXPECT_NE(a.value(), b.value());
  EXPECT_EQ(a.value(), c.value());
}

TEST(NodeIds, TellTheirNumberAndLookUnsorted) {
  unsigned rising = 0;
  for (NodeIndex i = 0; i < 1000; ++i) {
    EXPECT_EQ(index_of(node_id(i)), i);
    rising += node_id(i) < node_id(i + 1) ? 1 : 0;
  }
  EXPECT_GT(rising, 400U);
  EXPECT_LT(rising, 600U);
}

TEST(Network, LosesAndDuplicatesAtTheGivenRates) {
  Network network({.loss = 0.1, .duplicate = 0.2, .latency = milliseconds(20)}, 1);
  unsigned copies[3] = {};
  for (int i = 0; i < 100000; ++i) ++copies[network.route(0, 1).copies];
  EXPECT_NEAR(copies[0], 10000, 500);
  EXPECT_NEAR(copies[2], 18000, 700);
}

TEST(Network, KeepsTheOrderOfALinkUnlessReordering) {
  Network steady({.latency = milliseconds(20)}, 1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(steady.route(3, 4).delay[0], steady.link_delay(3, 4));
  EXPECT_NE(steady.link_delay(3, 4), steady.link_delay(4, 3));
  Network shaky(
      {.reorder = 0.5, .latency = milliseconds(20), .reorder_delay_max = milliseconds(50)}, 1);
  unsigned late = 0;
  for (int i = 0; i < 1000; ++i) {
    const Duration delay = shaky.route(3, 4).delay[0];
    EXPECT_LE(delay, shaky.delay_max());
    late += delay > shaky.link_delay(3, 4) ? 1 : 0;
  }
  EXPECT_NEAR(late, 500, 60);
}

TEST(Network, CutsBothWaysOrOneWay) {
  Network network({.latency = milliseconds(1)}, 1);
  const std::uint32_t both = network.add_cut({.side = {0, 0, 1}});
  const std::uint32_t one_way = network.add_cut({.side = {0, 1, 0}, .one_way = true});
  EXPECT_FALSE(network.is_cut(0, 2));
  network.set_cut(both, true);
  EXPECT_TRUE(network.is_cut(0, 2));
  EXPECT_TRUE(network.is_cut(2, 0));
  EXPECT_TRUE(network.separated(0, 2));
  EXPECT_FALSE(network.is_cut(0, 1));
  network.set_cut(both, false);
  network.set_cut(one_way, true);
  EXPECT_TRUE(network.is_cut(1, 0));
  EXPECT_FALSE(network.is_cut(0, 1));
  EXPECT_FALSE(network.separated(0, 1));
  EXPECT_EQ(network.route(1, 0).copies, 0U);
  network.heal();
  EXPECT_EQ(network.route(1, 0).copies, 1U);
}

ExchangeId exchange(std::uint64_t sequence) { return {node_id(0), incarnation_of(1), sequence}; }

class FixedPointStoreTest : public testing::TestWithParam<CodecId> {
 protected:
  Payload whole(const Slice& slice) { return {{slice}}; }
};
INSTANTIATE_TEST_SUITE_P(Codecs, FixedPointStoreTest,
                         testing::Values(CodecId::kFp32, CodecId::kBf16));

TEST_P(FixedPointStoreTest, MovesExactlyWhatTheWireSays) {
  FixedPointStore a({1, 3}, 0, nullptr), b({1, 3}, 1, nullptr);
  a.set_live(std::vector<Fixed>{kOne, -3 * kOne + 7, 12345});
  b.set_live(std::vector<Fixed>{-kOne, 5 * kOne + 1, -999});
  const auto proposal = a.snapshot(exchange(1), 0, GetParam());
  ASSERT_TRUE(proposal.has_value());
  const auto committed = b.commit(exchange(1), 0, whole(*proposal), GetParam(), 0.5);
  ASSERT_TRUE(committed.has_value());
  const std::size_t half = committed->delta.size() / 2 + 1;  // pieces at odd places, as chunks are
  const Payload delta{
      {committed->delta.sub(0, half), committed->delta.sub(half, committed->delta.size() - half)}};
  ASSERT_TRUE(a.apply(exchange(1), 0, delta, GetParam()).has_value());
  EXPECT_EQ(a.mass(0) + b.mass(0), 0);
  EXPECT_EQ(a.mass(1) + b.mass(1), 2 * kOne + 8);
  EXPECT_EQ(a.mass(2) + b.mass(2), 12345 - 999);
  EXPECT_NEAR(to_double(a.published(1)), 1.0, 2e-6);
  EXPECT_NEAR(committed->distance_squared, 4.0 + 64.0, 1e-3);
}

TEST(FixedPointStore, RefusesAPayloadOfAnotherSize) {
  FixedPointStore store({1, 3}, 0, nullptr);
  const Payload wrong{{Slice::copy_of(std::vector<std::byte>(23))}};
  EXPECT_EQ(store.commit(exchange(1), 0, wrong, CodecId::kFp32, 0.5).error().code,
            ErrorCode::kCorrupt);
  EXPECT_EQ(store.apply(exchange(1), 0, wrong, CodecId::kFp32).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(store.mass(0), 0);
}

TEST(FixedPointStore, KeepsWhatArrivesDuringASlowMerge) {
  FixedPointStore store({1, 1}, 0, nullptr);
  const auto add = [&](Fixed value) {
    const Payload delta{{Slice::copy_of(std::as_bytes(std::span(&value, 1)))}};
    ASSERT_TRUE(store.apply(exchange(1), 0, delta, CodecId::kFp32).has_value());
  };
  store.set_live(std::vector<Fixed>{100});
  add(10);
  store.begin_merge(0);
  add(1);
  store.add_live(0, 1000);  // learning between publications is not yet seen by peers
  EXPECT_EQ(store.published(0), 111);
  EXPECT_EQ(store.mass(0), 1111);
  store.finish_merge(0);
  EXPECT_EQ(store.live(0), 1110);
  EXPECT_EQ(store.published(0), 1111);
  EXPECT_EQ(store.mass(0), 1111);
}

TEST(FixedPointStore, NoticesValuesThatLeaveTheExactRange) {
  FixedPointStore store({1, 1}, 0, nullptr);
  Fixed huge = kFixedLimit - 1;
  const Payload delta{{Slice::copy_of(std::as_bytes(std::span(&huge, 1)))}};
  ASSERT_TRUE(store.apply(exchange(1), 0, delta, CodecId::kFp32).has_value());
  EXPECT_TRUE(store.in_range());
  ASSERT_TRUE(store.apply(exchange(2), 0, delta, CodecId::kFp32).has_value());
  EXPECT_FALSE(store.in_range());
}

// The order of AD-PSGD: the gradient is the one at the model before averaging, and it is applied
// after.
TEST(QuadraticTrainer, TakesTheGradientBeforeAveragingAndAppliesItAfter) {
  FixedPointStore store({1, 1}, 0, nullptr);
  store.set_live(std::vector<Fixed>{4 * kOne});
  QuadraticTrainer trainer(store, kOne / 4, {0});  // rate times curvature 1/4
  trainer.begin_step();
  Fixed averaged = -2 * kOne;  // a peer at 0 halves the gap during the step
  const Payload delta{{Slice::copy_of(std::as_bytes(std::span(&averaged, 1)))}};
  ASSERT_TRUE(store.apply(exchange(1), 0, delta, CodecId::kFp32).has_value());
  trainer.end_step();
  store.begin_merge(0);
  store.finish_merge(0);
  EXPECT_EQ(store.live(0), kOne);              // 2 - 4/4
  const Fixed after_averaging = kOne / 2 * 3;  // 2 - 2/4: the gradient taken at the averaged model
  EXPECT_NE(store.live(0), after_averaging);
  EXPECT_EQ(trainer.steps(), 1U);
}

}  // namespace
}  // namespace kith::sim
