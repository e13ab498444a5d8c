#include <gtest/gtest.h>

#include <algorithm>
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

SampleMask every(std::size_t step, std::size_t from, std::size_t count) {
  SampleMask mask(count);
  for (std::size_t i = from; i < count; i += step) mask[i] = 1;
  return mask;
}

std::vector<std::int64_t> labels_of_pass(BatchCursor& cursor) {
  std::vector<std::int64_t> labels;
  for (const auto pass = cursor.position().pass; cursor.position().pass == pass;) {
    const auto batch = labels_of(cursor.next());
    labels.insert(labels.end(), batch.begin(), batch.end());
  }
  return labels;
}

TEST(BatchCursorTest, AShareIsTheSameOrderWithoutTheSamplesOfOthers) {
  const Dataset data = numbered(100);
  BatchCursor whole(data, 10, 5), third(data, 10, 5);
  third.share(every(3, 1, 100));
  EXPECT_EQ(third.samples_per_pass(), 33U);
  EXPECT_EQ(third.batches_per_pass(), 4U);
  for (int pass = 0; pass < 3; ++pass) {
    auto expected = labels_of_pass(whole);
    std::erase_if(expected, [](std::int64_t label) { return label % 3 != 1; });
    EXPECT_EQ(labels_of_pass(third), expected) << pass;
  }
}

TEST(BatchCursorTest, AShareEndsItsPassLikeAFileOfItsSize) {
  const Dataset data = numbered(100);
  BatchCursor cursor(data, 10, 5);
  cursor.share(every(100, 0, 100));
  EXPECT_EQ(cursor.next().count, 1U);
  EXPECT_EQ(cursor.position(), (BatchCursor::Position{1, 0}));
  SampleMask mask(100);
  std::fill_n(mask.begin(), 31, std::uint8_t{1});
  cursor.share(mask);
  std::vector<std::size_t> sizes;
  while (cursor.position().pass == 1) sizes.push_back(cursor.next().count);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{10, 10, 11})) << "a rest of one joins the one before";
}

TEST(BatchCursorTest, AllOfItAsAShareIsNoShare) {
  const Dataset data = numbered(41);
  BatchCursor plain(data, 8, 5), shared(data, 8, 5), given_back(data, 8, 5);
  shared.share(SampleMask(41, 1));
  given_back.share(every(2, 0, 41));
  given_back.share({});
  for (int i = 0; i < 20; ++i) {
    const auto expected = labels_of(plain.next());
    EXPECT_EQ(labels_of(shared.next()), expected);
    EXPECT_EQ(labels_of(given_back.next()), expected);
    EXPECT_EQ(shared.position(), plain.position());
  }
}

// One of two stops at some place; whoever takes over its samples at that place draws the rest of
// them, each once.
TEST(BatchCursorTest, AnHeirGoesOnAtTheSamePlaceOfTheSameOrder) {
  const Dataset data = numbered(1000);
  BatchCursor a(data, 10, 5), b(data, 10, 5);
  a.share(every(2, 0, 1000));
  b.share(every(2, 1, 1000));
  std::vector<int> drawn(1000);
  const auto draw = [&](BatchCursor& cursor) {
    for (const auto label : labels_of(cursor.next())) ++drawn[static_cast<std::size_t>(label)];
  };
  for (int i = 0; i < 20; ++i) {
    draw(a);
    draw(b);
  }
  b.share({});
  while (b.position().pass == 0) draw(b);
  // Only between the places of the two, some samples apart, is something left out or drawn twice.
  EXPECT_GE(std::count(drawn.begin(), drawn.end(), 1), 960);
  EXPECT_LE(*std::max_element(drawn.begin(), drawn.end()), 2);
}

TEST(BatchCursorTest, ARestoredCursorOfAShareContinuesExactly) {
  const Dataset data = numbered(250);
  BatchCursor unbroken(data, 10, 7);
  unbroken.share(every(4, 2, 250));
  for (int stop = 0; stop < 30; ++stop) {
    // A restarted node knows its place first, and its share when it has met the others; or the
    // other way round.
    BatchCursor resumed(data, 10, 99), other(data, 10, 99);
    resumed.reseed(7, unbroken.position());
    resumed.share(every(4, 2, 250));
    other.share(every(4, 2, 250));
    other.reseed(7, unbroken.position());
    const auto expected = labels_of(unbroken.next());
    EXPECT_EQ(labels_of(resumed.next()), expected) << stop;
    EXPECT_EQ(labels_of(other.next()), expected) << stop;
    EXPECT_EQ(resumed.position(), unbroken.position());
  }
}

TEST(BatchCursorTest, AShareWithNothingLeftAtThisPlaceGoesToTheNextPass) {
  const Dataset data = numbered(20);
  BatchCursor cursor(data, 5, 7);
  const auto first = labels_of(cursor.next());
  SampleMask mask(20);
  for (const auto label : first) mask[static_cast<std::size_t>(label)] = 1;
  cursor.share(mask);
  EXPECT_EQ(cursor.position(), (BatchCursor::Position{1, 0}));
  auto again = labels_of(cursor.next()), expected = first;
  std::sort(again.begin(), again.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(again, expected);
}

}  // namespace
}  // namespace kith::compute
