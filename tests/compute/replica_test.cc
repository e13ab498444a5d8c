#include "compute/replica.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <future>
#include <limits>
#include <thread>
#include <utility>

#include "fake_model.h"

namespace kith::compute {
namespace {

using testing::FakeModel;

Payload payload_of(const std::vector<float>& values) {
  return {{Slice::copy_of(std::as_bytes(std::span(values)))}};
}

std::vector<float> read_all(Replica& replica) {
  std::vector<float> all;
  for (FragmentIndex f = 0; f < replica.fragment_count(); ++f) {
    std::vector<float> part(replica.range(f).count);
    replica.read(f, part);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::vector<float> snapshot_of(Replica& replica, FragmentIndex f) {
  std::vector<float> out(replica.range(f).count);
  EXPECT_TRUE(replica.snapshot(f, CodecId::kFp32, std::as_writable_bytes(std::span(out))));
  return out;
}

TEST(Fragments, CoverTheValuesWithoutHolesAndTheLastMayBeShort) {
  const auto ranges = cut_fragments(10, 16);
  ASSERT_EQ(ranges.size(), 3U);
  EXPECT_EQ(ranges[0].count, 4U);
  EXPECT_EQ(ranges[2].offset, 8U);
  EXPECT_EQ(ranges[2].count, 2U);
  EXPECT_EQ(cut_fragments(8, 16).size(), 2U);
  EXPECT_EQ(cut_fragments(0, 16).size(), 0U);
  EXPECT_EQ(cut_fragments(3, 4).size(), 3U);
}

TEST(ReplicaTest, ShowsTheModelsValuesAfterReset) {
  FakeModel model(10);
  for (std::size_t i = 0; i < 10; ++i) model.x[i] = static_cast<float>(i);
  Replica replica(10, 16);
  replica.reset(model);
  EXPECT_EQ(read_all(replica), model.x);
  EXPECT_EQ(snapshot_of(replica, 2), (std::vector<float>{8, 9}));
}

TEST(ReplicaTest, ACommittedDeltaIsInWhatPeersSeeAtOnceAndInTheModelAfterASafePoint) {
  FakeModel model(4);
  model.x = {1, 2, 3, 4};
  Replica replica(4, 16);
  replica.reset(model);
  std::vector<float> delta(4);
  const auto stats = replica.commit(0, payload_of({3, 2, 1, 0}), CodecId::kFp32, 0.5,
                                    std::as_writable_bytes(std::span(delta)));
  ASSERT_TRUE(stats);
  EXPECT_DOUBLE_EQ(stats->distance_squared, 4 + 0 + 4 + 16);
  EXPECT_DOUBLE_EQ(stats->norm_squared, 4 * 4.0);
  EXPECT_EQ(delta, (std::vector<float>{-1, 0, 1, 2}));
  EXPECT_EQ(read_all(replica), (std::vector<float>{2, 2, 2, 2}));
  EXPECT_EQ(model.x, (std::vector<float>{1, 2, 3, 4}));
  const auto merged = replica.safe_point(model, false);
  EXPECT_EQ(merged.merged_values, 4U);
  EXPECT_EQ(model.x, (std::vector<float>{2, 2, 2, 2}));
  EXPECT_EQ(read_all(replica), model.x);
}

TEST(ReplicaTest, SeveralDeltasAddUp) {
  FakeModel model(2);
  Replica replica(2, 8);
  replica.reset(model);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(replica.apply(0, payload_of({1, 10}), CodecId::kFp32));
  EXPECT_EQ(read_all(replica), (std::vector<float>{3, 30}));
  replica.safe_point(model, false);
  EXPECT_EQ(model.x, (std::vector<float>{3, 30}));
  ASSERT_TRUE(replica.apply(0, payload_of({1, 1}), CodecId::kFp32));  // overwrites the old, empty D
  replica.safe_point(model, false);
  EXPECT_EQ(model.x, (std::vector<float>{4, 31}));
}

TEST(ReplicaTest, NothingPendingLeavesTheBitsOfTheModelAlone) {
  FakeModel model(3);
  model.x = {-0.0f, std::numeric_limits<float>::denorm_min(), 1e30f};
  const auto before = model.x;
  Replica replica(3, 8);
  replica.reset(model);
  replica.safe_point(model, true);
  EXPECT_EQ(std::memcmp(model.x.data(), before.data(), 12), 0);
  const auto seen = read_all(replica);
  EXPECT_EQ(std::memcmp(seen.data(), before.data(), 12), 0);
}

TEST(ReplicaTest, PublishesOnlyWhatWasReadMergedOrForced) {
  FakeModel model(12);
  Replica replica(12, 16);
  replica.reset(model);
  EXPECT_EQ(replica.safe_point(model, false).published_values, 0U);
  snapshot_of(replica, 1);
  EXPECT_EQ(replica.safe_point(model, false, false).published_values, 0U)
      << "x has not moved since";
  EXPECT_EQ(replica.safe_point(model, false).published_values, 4U);
  EXPECT_EQ(replica.safe_point(model, true).published_values, 12U);
  replica.want(2);
  EXPECT_GE(replica.safe_point(model, false).published_values, 4U);
}

TEST(ReplicaTest, WhileThereIsTrafficNoPublicationGrowsOld) {
  FakeModel model(12);
  Replica replica(12, 16);
  replica.reset(model);
  for (int step = 1; step <= 3; ++step) {
    for (float& v : model.x) v = static_cast<float>(step);
    snapshot_of(replica, 0);
    replica.safe_point(model, false);
  }
  EXPECT_EQ(snapshot_of(replica, 2)[0], 3.0f);  // never read before
}

TEST(ReplicaTest, RefusesWrongSizesAndValuesThatAreNotFiniteWithoutAnyChange) {
  FakeModel model(4);
  model.x = {1, 2, 3, 4};
  Replica replica(4, 16);
  replica.reset(model);
  ASSERT_TRUE(replica.apply(0, payload_of({1, 1, 1, 1}), CodecId::kFp32));
  const auto before = read_all(replica);
  std::vector<float> delta(4);
  const auto room = std::as_writable_bytes(std::span(delta));
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              inf = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, inf, -inf}) {
    EXPECT_EQ(replica.commit(0, payload_of({0, 0, 0, bad}), CodecId::kFp32, 0.5, room).error().code,
              ErrorCode::kNonFinite);
    EXPECT_EQ(replica.apply(0, payload_of({0, 0, 0, bad}), CodecId::kFp32).error().code,
              ErrorCode::kNonFinite);
    EXPECT_EQ(read_all(replica), before);
  }
  EXPECT_EQ(replica.commit(0, payload_of({0, 0, 0}), CodecId::kFp32, 0.5, room).error().code,
            ErrorCode::kCorrupt);
  EXPECT_EQ(replica.apply(0, payload_of({0, 0, 0, 0, 0}), CodecId::kFp32).error().code,
            ErrorCode::kCorrupt);
  EXPECT_EQ(replica.apply(0, payload_of({0, 0, 0, 0}), CodecId::kBf16).error().code,
            ErrorCode::kCorrupt);
  EXPECT_EQ(read_all(replica), before);
}

TEST(ReplicaTest, AFirstDeltaThatIsNotFiniteLeavesNoTrace) {
  FakeModel model(2);
  Replica replica(2, 8);
  replica.reset(model);
  EXPECT_FALSE(
      replica.apply(0, payload_of({5, std::numeric_limits<float>::infinity()}), CodecId::kFp32));
  EXPECT_EQ(replica.safe_point(model, false).merged_values, 0U);
  EXPECT_EQ(model.x, (std::vector<float>{0, 0}));
}

TEST(ReplicaTest, AFrozenReplicaIsLeftAloneByTheTrainer) {
  FakeModel model(2);
  Replica replica(2, 8);
  replica.reset(model);
  replica.freeze();
  ASSERT_TRUE(replica.apply(0, payload_of({1, 1}), CodecId::kFp32));
  model.x = {100, 100};
  replica.safe_point(model, true);
  EXPECT_EQ(read_all(replica), (std::vector<float>{1, 1}));
  replica.thaw();
  replica.safe_point(model, true);
  EXPECT_EQ(read_all(replica), (std::vector<float>{101, 101}));
}

TEST(ReplicaTest, ABrokenModelIsNotPublished) {
  FakeModel model(2);
  model.x = {1, 2};
  Replica replica(2, 8);
  replica.reset(model);
  model.x[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(replica.safe_point(model, true).nonfinite_fragments, 1U);
  EXPECT_EQ(read_all(replica), (std::vector<float>{1, 2}));
  model.x = {7, 8};
  replica.reset(model);
  EXPECT_EQ(read_all(replica), (std::vector<float>{7, 8}));
}

// A model whose merge takes long (a GPU): meanwhile deltas of both signs land, and none is lost.
TEST(ReplicaTest, DeltasThatArriveDuringASlowMergeSurviveIt) {
  FakeModel model(2);
  Replica replica(2, 8);
  replica.reset(model);
  std::promise<void> merging, go_on;
  model.inside_merge = [&, first = true]() mutable {
    if (!std::exchange(first, false)) return;
    merging.set_value();
    go_on.get_future().wait();
  };
  ASSERT_TRUE(replica.apply(0, payload_of({1, 1}), CodecId::kFp32));
  std::thread trainer([&] { replica.safe_point(model, false); });
  merging.get_future().wait();
  EXPECT_EQ(read_all(replica), (std::vector<float>{1, 1}))
      << "taken is still part of what peers see";
  ASSERT_TRUE(replica.apply(0, payload_of({10, 10}), CodecId::kFp32));
  ASSERT_TRUE(replica.apply(0, payload_of({100, 100}), CodecId::kFp32));
  std::vector<float> delta(2);
  ASSERT_TRUE(replica.commit(0, payload_of({109, 107}), CodecId::kFp32, 0.5,
                             std::as_writable_bytes(std::span(delta))));
  EXPECT_EQ(delta, (std::vector<float>{1, 2}));
  EXPECT_EQ(read_all(replica), (std::vector<float>{110, 109}));
  go_on.set_value();
  trainer.join();
  EXPECT_EQ(model.x, (std::vector<float>{1, 1}));
  EXPECT_EQ(read_all(replica), (std::vector<float>{110, 109}));
  replica.safe_point(model, false);
  EXPECT_EQ(model.x, (std::vector<float>{110, 109}));
  EXPECT_EQ(read_all(replica), model.x);
}

// The trainer finds the fragment busy when it wants to publish what it merged: it goes on, and
// nothing is merged twice.
TEST(ReplicaTest, AMergeWhosePublicationFindsTheFragmentBusyIsPublishedLaterAndOnlyOnce) {
  FakeModel model(2);
  Replica replica(2, 8);
  replica.reset(model);
  ASSERT_TRUE(replica.apply(0, payload_of({1, 1}), CodecId::kFp32));
  // Another thread takes the lock during the merge and keeps it until the attempt to publish is
  // over.
  std::promise<void> locked, tried;
  std::thread holder;
  model.inside_merge = [&, first = true]() mutable {
    if (!std::exchange(first, false)) return;
    holder = std::thread([&] {
      replica.hold_for_test(0, [&] {
        locked.set_value();
        tried.get_future().wait();
      });
    });
    locked.get_future().wait();
  };
  const auto stats = replica.safe_point(model, false);
  tried.set_value();
  holder.join();
  EXPECT_EQ(stats.skipped_fragments, 1U);
  EXPECT_EQ(model.x, (std::vector<float>{1, 1}));
  EXPECT_EQ(read_all(replica), (std::vector<float>{1, 1}));
  std::vector<float> pending(2);
  replica.read_pending(0, pending);
  EXPECT_EQ(pending, (std::vector<float>{0, 0})) << "what is in the model is not pending";
  ASSERT_TRUE(replica.apply(0, payload_of({10, 10}), CodecId::kFp32));
  replica.safe_point(model, false);
  replica.safe_point(model, false);
  EXPECT_EQ(model.x, (std::vector<float>{11, 11}));
  EXPECT_EQ(read_all(replica), model.x);
}

// The same with nothing merged: the next delta must not be taken for one that is in the model
// already.
TEST(ReplicaTest, ADeltaAfterAFailedPublicationIsMerged) {
  FakeModel model(2);
  Replica replica(2, 8);
  replica.reset(model);
  std::promise<void> locked, tried;
  std::thread holder;
  model.inside_merge = [&, first = true]() mutable {
    if (!std::exchange(first, false)) return;
    holder = std::thread([&] {
      replica.hold_for_test(0, [&] {
        locked.set_value();
        tried.get_future().wait();
      });
    });
    locked.get_future().wait();
  };
  EXPECT_EQ(replica.safe_point(model, true).skipped_fragments, 1U);
  tried.set_value();
  holder.join();
  ASSERT_TRUE(replica.apply(0, payload_of({1, 1}), CodecId::kFp32));
  replica.safe_point(model, false);
  EXPECT_EQ(model.x, (std::vector<float>{1, 1}));
}

TEST(ReplicaTest, BothSidesOfABf16ExchangeApplyTheSameBits) {
  FakeModel a(3), b(3);
  a.x = {1.0f, 0.3333333f, -5.4321f};
  b.x = {2.0f, 0.1234567f, 9.8765f};
  Replica ra(3, 12), rb(3, 12);
  ra.reset(a);
  rb.reset(b);
  std::vector<std::byte> proposal(6), delta(6);
  ASSERT_TRUE(ra.snapshot(0, CodecId::kBf16, proposal));
  ASSERT_TRUE(rb.commit(0, {{Slice::copy_of(proposal)}}, CodecId::kBf16, 0.5, delta));
  ASSERT_TRUE(ra.apply(0, {{Slice::copy_of(delta)}}, CodecId::kBf16));
  const std::vector<float> before_a = a.x, before_b = b.x;
  ra.safe_point(a, false);
  rb.safe_point(b, false);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(a.x[i] + b.x[i], before_a[i] + before_b[i], 1e-6 * 16);
    EXPECT_NEAR(a.x[i], b.x[i], 0.1);
  }
}

}  // namespace
}  // namespace kith::compute
