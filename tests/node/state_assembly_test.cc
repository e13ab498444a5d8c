#include "node/state_assembly.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/hash.h"

namespace kith::node {
namespace {

using gossip::ItemKey;
using schema::StateItem;

FinalFacts facts(double accuracy = 0.97) {
  FinalFacts f;
  f.run_id = "r";
  f.model_json = "{\"kind\":\"cnn\"}";
  f.version = "0.1.0";
  f.progress = 60000;
  f.epoch = 6.01;
  f.data_mean = 0.1307;
  f.data_std = 0.3081;
  f.accuracy = accuracy;
  f.classes = 10;
  return f;
}

gossip::StateTransfer::Fetched fetched(ItemKey key, std::span<const float> values) {
  gossip::StateTransfer::Fetched f;
  f.key = key;
  f.bytes.pieces.push_back(Slice::copy_of(std::as_bytes(values)));
  return f;
}

TEST(Manifest, ComesBackAsItWasEncoded) {
  compute::Replica replica(10, 16);
  const Manifest manifest = manifest_of(replica, {3, 4}, facts());
  ASSERT_EQ(manifest.fragments.size(), 3U);
  const auto back = Manifest::decode(manifest.encode(), 3);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->fragments, manifest.fragments);
  EXPECT_EQ(back->integers, manifest.integers);
  const auto again = facts_from_json(back->facts_json);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->progress, 60000U);
  EXPECT_EQ(again->epoch, 6.01);
  EXPECT_EQ(again->accuracy, 0.97);
}

TEST(Manifest, RefusesEveryTruncationAndAnotherCount) {
  compute::Replica replica(10, 16);
  const auto bytes = manifest_of(replica, {}, facts()).encode();
  for (std::size_t n = 0; n < 8 + 4 * 32; ++n)
    EXPECT_FALSE(Manifest::decode(std::span(bytes).first(n), 3)) << n;
  EXPECT_FALSE(Manifest::decode(bytes, 2));
  EXPECT_FALSE(Manifest::decode(bytes, 4));
  EXPECT_FALSE(facts_from_json("{\"run_id\":3}"));
  EXPECT_FALSE(facts_from_json("nonsense"));
}

TEST(Manifest, AnUnknownAccuracyTravels) {
  const auto back = facts_from_json(facts_to_json(facts(std::nan(""))));
  ASSERT_TRUE(back);
  EXPECT_TRUE(std::isnan(back->accuracy));
}

TEST(StateAssembly, FetchesOnlyWhatDiffersFromTheFinalState) {
  compute::Replica replica(10, 16);
  Manifest manifest = manifest_of(replica, {7}, facts());
  StateAssembly same(replica, {7});
  EXPECT_TRUE(same.differing(manifest).empty());

  const std::vector<float> other = {1, 2, 3, 4};
  manifest.fragments[1] = hash_bytes(std::as_bytes(std::span(other)));
  StateAssembly assembly(replica, {8});
  const auto wanted = assembly.differing(manifest);
  ASSERT_EQ(wanted.size(), 2U);
  EXPECT_TRUE(wanted.contains({StateItem::kFragment, 1, true}));
  EXPECT_TRUE(wanted.contains({StateItem::kIntegers, 0, true}));

  ASSERT_TRUE(assembly.add(fetched({StateItem::kFragment, 1, true}, other)));
  EXPECT_EQ(assembly.values()[4], 1.0F);
  EXPECT_EQ(assembly.values()[7], 4.0F);
  EXPECT_EQ(assembly.values()[8], 0.0F);
}

TEST(StateAssembly, RefusesItemsOfTheWrongSize) {
  compute::Replica replica(10, 16);
  StateAssembly assembly(replica, {});
  const std::vector<float> three = {1, 2, 3};
  EXPECT_FALSE(assembly.add(fetched({StateItem::kFragment, 0, false}, three)));
  EXPECT_FALSE(assembly.add(fetched({StateItem::kIntegers, 0, false}, three)));
}

TEST(StateAssembly, PutsMomentsTogetherInOrderAndBoundsTheirNumber) {
  compute::Replica replica(10, 16);
  StateAssembly assembly(replica, {});
  auto header = fetched({StateItem::kIntegers, 0, false}, {});
  header.header.optimizer_pieces = 2;
  ASSERT_TRUE(assembly.add(header));
  ASSERT_EQ(assembly.optimizer_items().size(), 2U);
  const std::vector<float> a = {1}, b = {2};
  ASSERT_TRUE(assembly.add(fetched({StateItem::kOptimizer, 1, false}, b)));
  ASSERT_TRUE(assembly.add(fetched({StateItem::kOptimizer, 0, false}, a)));
  const auto state = assembly.take(true);
  ASSERT_EQ(state.optimizer.size(), 8U);
  float first = 0;
  std::memcpy(&first, state.optimizer.data(), sizeof first);
  EXPECT_EQ(first, 1.0F);

  StateAssembly greedy(replica, {});
  header.header.optimizer_pieces = 0xFFFFFFFF;
  ASSERT_TRUE(greedy.add(header));
  EXPECT_LE(greedy.optimizer_items().size(), 16U);
}

}  // namespace
}  // namespace kith::node
