#include "node/daemon/state_assembly.h"

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
  const Manifest manifest = StateAssembly(replica, {3, 4}).manifest(facts());
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
  const auto bytes = StateAssembly(replica, {}).manifest(facts()).encode();
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
  Manifest manifest = StateAssembly(replica, {7}).manifest(facts());
  StateAssembly same(replica, {7});
  EXPECT_TRUE(same.differing(manifest).wanted.empty());

  const std::vector<float> other = {1, 2, 3, 4};
  manifest.fragments[1] = hash_bytes(std::as_bytes(std::span(other)));
  StateAssembly assembly(replica, {8});
  const auto order = assembly.differing(manifest);
  const ItemKey fragment{StateItem::kFragment, 1, true}, integers{StateItem::kIntegers, 0, true};
  EXPECT_EQ(order.wanted, (std::vector<ItemKey>{fragment, integers}));
  EXPECT_EQ(order.expected.at(fragment).hash, manifest.fragments[1]);
  EXPECT_EQ(order.expected.at(integers).hash, manifest.integers);
  EXPECT_EQ(order.optimizer_pieces_max, 0U) << "a final state has no moments";

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

TEST(StateAssembly, SaysWhatSizeEachItemMustHave) {
  compute::Replica replica(10, 16);  // 4, 4 and 2 values
  const StateAssembly assembly(replica, {7, 8});
  const auto order = assembly.missing(true, 0);
  const auto bytes = [&](const ItemKey& key) {
    const gossip::Expected& e = order.expected.at(key);
    return std::pair(e.bytes_min, e.bytes_max);
  };
  EXPECT_EQ(bytes({StateItem::kFragment, 0, false}), std::pair(16UL, 16UL));
  EXPECT_EQ(bytes({StateItem::kFragment, 2, false}), std::pair(8UL, 8UL));
  EXPECT_EQ(bytes({StateItem::kIntegers, 0, false}), std::pair(16UL, 16UL));
  EXPECT_EQ(order.optimizer_pieces_max, 16U);
  EXPECT_EQ(order.optimizer_piece_bytes_max, 16U);

  const auto manifest = assembly.manifest_order(Hash256{});
  const gossip::Expected& e = manifest.expected.at({StateItem::kManifest, 0, true});
  const std::size_t real = assembly.manifest(facts()).encode().size();
  EXPECT_LE(e.bytes_min, real);
  EXPECT_GE(e.bytes_max, real);
  EXPECT_LT(e.bytes_max, 1U << 20);
}

TEST(StateAssembly, AllowsTheMomentsOfAModelThatIsOneFragmentToBeLarger) {
  compute::Replica replica(10, 4096);
  const auto order = StateAssembly(replica, {}).missing(true, 0);
  EXPECT_EQ(order.wanted.size(), 2U);
  EXPECT_GE(order.optimizer_piece_bytes_max, 4 * 40U);
}

TEST(StateAssembly, LacksOnlyWhatHasNotArrivedOrIsTooOld) {
  compute::Replica replica(10, 16);
  StateAssembly assembly(replica, {});
  EXPECT_EQ(assembly.missing(false, 0).wanted.size(), 4U);
  const std::vector<float> four = {1, 2, 3, 4};
  for (const FragmentIndex f : {0U, 1U}) {
    auto item = fetched({StateItem::kFragment, f, false}, four);
    item.header.cluster_samples = 100 + 50 * f;
    ASSERT_TRUE(assembly.add(item));
  }
  const ItemKey first{StateItem::kFragment, 0, false}, third{StateItem::kFragment, 2, false};
  const ItemKey integers{StateItem::kIntegers, 0, false};
  EXPECT_EQ(assembly.missing(false, 100).wanted, (std::vector<ItemKey>{third, integers}));
  EXPECT_EQ(assembly.missing(false, 101).wanted, (std::vector<ItemKey>{first, third, integers}));
}

TEST(StateAssembly, AFragmentOfAFinalStateIsNoneOfARunningOne) {
  compute::Replica replica(10, 16);
  StateAssembly assembly(replica, {});
  const std::vector<float> four = {1, 2, 3, 4};
  ASSERT_TRUE(assembly.add(fetched({StateItem::kFragment, 0, true}, four)));
  EXPECT_EQ(assembly.missing(false, 0).wanted.size(), 4U);
}

TEST(StateAssembly, PutsMomentsTogetherInOrder) {
  compute::Replica replica(10, 16);
  StateAssembly assembly(replica, {});
  ASSERT_TRUE(assembly.add(fetched({StateItem::kIntegers, 0, false}, {})));
  const std::vector<float> a = {1}, b = {2};
  ASSERT_TRUE(assembly.add(fetched({StateItem::kOptimizer, 1, false}, b)));
  ASSERT_TRUE(assembly.add(fetched({StateItem::kOptimizer, 0, false}, a)));
  const auto state = assembly.take(true);
  ASSERT_EQ(state.optimizer.size(), 8U);
  float first = 0;
  std::memcpy(&first, state.optimizer.data(), sizeof first);
  EXPECT_EQ(first, 1.0F);
}

TEST(StateAssembly, IntegersThatComeAgainVoidTheMomentsBeforeThem) {
  compute::Replica replica(10, 16);
  StateAssembly assembly(replica, {});
  const std::vector<float> a = {1}, b = {2};
  ASSERT_TRUE(assembly.add(fetched({StateItem::kIntegers, 0, false}, {})));
  ASSERT_TRUE(assembly.add(fetched({StateItem::kOptimizer, 0, false}, a)));
  ASSERT_TRUE(assembly.add(fetched({StateItem::kOptimizer, 1, false}, a)));
  ASSERT_TRUE(assembly.add(fetched({StateItem::kIntegers, 0, false}, {})));
  ASSERT_TRUE(assembly.add(fetched({StateItem::kOptimizer, 0, false}, b)));
  const auto state = assembly.take(true);
  ASSERT_EQ(state.optimizer.size(), 4U) << "the second donor has one piece";
}

TEST(StateAssembly, RefusesAFragmentThatTheModelDoesNotHave) {
  compute::Replica replica(10, 16);
  StateAssembly assembly(replica, {});
  const std::vector<float> four = {1, 2, 3, 4};
  EXPECT_FALSE(assembly.add(fetched({StateItem::kFragment, 3, false}, four)));
}

}  // namespace
}  // namespace kith::node
