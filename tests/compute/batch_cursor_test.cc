#include <gtest/gtest.h>

#include <set>

#include "compute/data.h"

namespace kith::compute {
namespace {

Dataset numbered(std::size_t count) {
  Dataset data;
  data.count = count;
  data.sample_shape = {2};
  for (std::size_t i = 0; i < count; ++i) {
    data.inputs.push_back(static_cast<float>(i));
    data.inputs.push_back(static_cast<float>(i) + 0.5F);
    data.labels.push_back(static_cast<std::int64_t>(i));
  }
  return data;
}

std::vector<std::int64_t> labels_of(const Batch& batch) {
  return {batch.labels.begin(), batch.labels.end()};
}

std::vector<std::size_t> sizes_of_a_pass(std::size_t count, std::size_t batch_size) {
  const Dataset data = numbered(count);
  BatchCursor cursor(data, batch_size, 1);
  std::vector<std::size_t> sizes;
  while (cursor.position().pass == 0) sizes.push_back(cursor.next().count);
  EXPECT_EQ(sizes.size(), cursor.batches_per_pass());
  return sizes;
}

TEST(BatchCursorTest, ALastBatchOfOneIsMergedIntoTheOneBefore) {
  EXPECT_EQ(sizes_of_a_pass(65, 64), (std::vector<std::size_t>{65}));
  EXPECT_EQ(sizes_of_a_pass(129, 64), (std::vector<std::size_t>{64, 65}));
  EXPECT_EQ(sizes_of_a_pass(130, 64), (std::vector<std::size_t>{64, 64, 2}));
  EXPECT_EQ(sizes_of_a_pass(128, 64), (std::vector<std::size_t>{64, 64}));
  EXPECT_EQ(sizes_of_a_pass(5, 64), (std::vector<std::size_t>{5}));
  EXPECT_EQ(sizes_of_a_pass(1, 64), (std::vector<std::size_t>{1}));
  EXPECT_EQ(sizes_of_a_pass(3, 1), (std::vector<std::size_t>{1, 1, 1}));
}

TEST(BatchCursorTest, APassTouchesEverySampleOnceWithItsOwnValues) {
  const Dataset data = numbered(103);
  BatchCursor cursor(data, 10, 1);
  for (std::uint64_t pass = 0; pass < 3; ++pass) {
    std::multiset<std::int64_t> seen;
    while (cursor.position().pass == pass) {
      const Batch batch = cursor.next();
      for (std::size_t i = 0; i < batch.count; ++i) {
        seen.insert(batch.labels[i]);
        EXPECT_EQ(batch.inputs[2 * i], static_cast<float>(batch.labels[i]));
        EXPECT_EQ(batch.inputs[2 * i + 1], static_cast<float>(batch.labels[i]) + 0.5F);
      }
    }
    EXPECT_EQ(seen.size(), 103U);
    EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 103U);
  }
}

TEST(BatchCursorTest, PassesAndSeedsHaveOrdersOfTheirOwnThatCanBeReplayed) {
  const Dataset data = numbered(50);
  const auto order = [&](std::uint64_t seed, std::uint64_t pass) {
    BatchCursor cursor(data, 50, seed);
    cursor.restore({pass, 0});
    return labels_of(cursor.next());
  };
  EXPECT_EQ(order(1, 0), order(1, 0));
  EXPECT_NE(order(1, 0), order(1, 1));
  EXPECT_NE(order(1, 0), order(2, 0));
  EXPECT_NE(order(1, 1), order(2, 0));
}

TEST(BatchCursorTest, ARestoredCursorContinuesExactlyAlsoAtAnEpochsEdge) {
  const Dataset data = numbered(25);
  BatchCursor unbroken(data, 10, 7);
  for (int stop = 0; stop < 10; ++stop) {
    BatchCursor resumed(data, 10, 7);
    resumed.restore(unbroken.position());
    BatchCursor copy(data, 10, 7);
    copy.restore(unbroken.position());
    const auto expected = labels_of(unbroken.next());
    EXPECT_EQ(labels_of(resumed.next()), expected) << stop;
    EXPECT_EQ(resumed.position(), unbroken.position());
  }
}

TEST(BatchCursorTest, APositionBeyondTheDataGoesToTheNextPass) {
  const Dataset data = numbered(10);
  BatchCursor cursor(data, 4, 7);
  cursor.restore({3, 400});
  EXPECT_EQ(cursor.position(), (BatchCursor::Position{4, 0}));
  EXPECT_EQ(cursor.next().count, 4U);
}

}  // namespace
}  // namespace kith::compute
