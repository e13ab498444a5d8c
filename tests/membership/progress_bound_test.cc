// What Progress keeps of members that are gone for long: bounded, and the cluster's sums never
// change by it.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "base/random.h"
#include "gossip/membership/progress.h"

namespace kith::gossip {
namespace {

using Word = Progress::Word;
constexpr std::size_t kMost = Progress::kGoneMax;

NodeId id(std::uint64_t n) {
  NodeId node;
  std::memcpy(node.bytes.data(), &n, sizeof n);
  return node;
}

schema::MemberRecord holder(std::uint64_t member, std::uint8_t file, Samples whole,
                            std::uint32_t index = 0, std::uint32_t count = 0, Samples samples = 0) {
  schema::MemberRecord r;
  r.id = id(member);
  r.data_fingerprint.bytes[0] = file;
  r.data_samples = whole;
  r.shard_index = index;
  r.shard_count = count;
  r.shard_samples = samples;
  return r;
}

// Members `first` and above come, do `steps(n)`, and are forgotten.
template <typename Steps>
void pass_through(Progress& p, std::uint64_t first, std::size_t members, Steps steps) {
  for (std::uint64_t n = first; n < first + members; ++n) {
    p.note(id(n), 32 * steps(n), steps(n));
    p.forget(id(n));
  }
}

TEST(ProgressBound, ThousandsOfInventedMembersLeaveItAsLargeAsBefore) {
  Progress p({.epochs = 1e6});
  p.note(id(1), 3200, 100);
  Random random(3);
  Samples sum = 3200;
  std::size_t largest = 0;
  for (std::uint64_t n = 100; n < 50'100; ++n) {
    const Step steps = random.below(1000);
    p.note_data(holder(n, static_cast<std::uint8_t>(n % 7), 1000));
    p.note(id(n), 32 * steps, steps);
    sum += 32 * steps;
    p.forget(id(n));
    ASSERT_EQ(p.samples(), sum);
    largest = std::max(largest, p.works().size());
  }
  EXPECT_EQ(p.steps(), sum / 32);
  EXPECT_EQ(p.data_samples(), 7000U);
  EXPECT_LE(largest, kMost + 2);
}

TEST(ProgressBound, WhoHasDoneNothingAndHoldsNothingCostsNothing) {
  Progress p({});
  for (std::uint64_t n = 100; n < 20'000; ++n) p.note(id(n), 0, 0);
  EXPECT_TRUE(p.works().empty());
}

TEST(ProgressBound, WhoIsThereIsNeverFoldedHoweverLittleItHasDone) {
  Progress p({});
  for (std::uint64_t n = 1; n <= 3; ++n) p.note(id(n), 32, 1);
  pass_through(p, 100, 3 * kMost, [](std::uint64_t) { return 50; });
  const Samples before = p.samples();
  for (std::uint64_t n = 1; n <= 3; ++n) p.note(id(n), 64, 2);
  EXPECT_EQ(p.samples(), before + 3 * 32);
}

// One that did much is gone for long and comes back, whatever others came and went meanwhile.
TEST(ProgressBound, OneThatComesBackCountsOnce) {
  const struct {
    const char* what;
    std::size_t meanwhile;
    Step own, of_each;
  } rows[] = {{"few meanwhile", 10, 5, 50},
              {"as many as are kept", kMost - 1, 5, 50},
              {"many that did less", 4 * kMost, 500, 50}};
  for (const auto& row : rows) {
    Progress p({});
    p.note(id(1), 32 * row.own, row.own);
    p.forget(id(1));
    pass_through(p, 100, row.meanwhile, [&](std::uint64_t) { return row.of_each; });
    const Samples before = p.samples();
    p.note(id(1), 32 * row.own + 7, row.own);
    EXPECT_EQ(p.samples(), before + 7) << row.what;
    p.forget(id(1));
    EXPECT_EQ(p.samples(), before + 7) << row.what;
  }
}

// What the sums are used for: epochs, the learning rate's position, the run's length and its end.
TEST(ProgressBound, FoldingMovesNeitherEpochNorLengthNorTheEnd) {
  const struct {
    const char* what;
    RunLength length;
  } rows[] = {{"epochs", {.epochs = 2.5}}, {"steps", {.steps = 300 * kMost}}};
  for (const auto& row : rows) {
    Progress p(row.length);
    // Shards by hand of one file, whose holders do least and so go first, and a file of its own.
    for (std::uint32_t k = 1; k <= 4; ++k) p.note_data(holder(k, 1, 100'000, k, 4, 25'000));
    p.note_data(holder(5, 2, 7000));
    p.note_data(holder(6, 3, 500));
    for (std::uint64_t n = 1; n <= 6; ++n) {
      p.note(id(n), 32 * n, n);
      if (n != 2 && n != 6) p.forget(id(n));
    }
    EXPECT_EQ(p.data_samples(), 107'500U);
    Samples sum = 32 * 21;
    for (std::uint64_t n = 100; n < 100 + 3 * kMost; ++n) {
      p.note(id(n), 3200, 100);
      p.forget(id(n));
      sum += 3200;
      ASSERT_EQ(p.samples(), sum) << row.what;
      ASSERT_EQ(p.data_samples(), 107'500U) << row.what;
    }
    EXPECT_LE(p.works().size(), kMost + 2) << row.what;
    EXPECT_FALSE(p.works().contains(id(1))) << "folded, with its shard";
    EXPECT_DOUBLE_EQ(p.epoch(), static_cast<double>(sum) / 107'500) << row.what;
    EXPECT_EQ(p.done(), row.length.steps > 0 ? sum / 32 >= row.length.steps : p.epoch() >= 2.5)
        << row.what;
  }
}

schema::TallyEntry told(std::uint64_t member, Step steps, Samples data = 0) {
  schema::TallyEntry entry{id(member), 32 * steps, steps};
  entry.data_samples = data;
  return entry;
}

TEST(ProgressBound, WhatOthersSayOfTheGoneCountsOnceAndARecordSaysItBetter) {
  Progress p({});
  p.note_data(holder(1, 1, 500));
  p.note(id(1), 320, 10);
  const struct {
    const char* what;
    schema::TallyEntry entry;
    bool news;
    Samples samples, data;
  } rows[] = {{"one unknown", told(2, 5, 70), true, 320 + 160, 570},
              {"again", told(2, 5, 70), false, 320 + 160, 570},
              {"less of it", told(2, 3, 70), false, 320 + 160, 570},
              {"more of it, and other data", told(2, 6, 80), true, 320 + 192, 580},
              {"nothing", told(3, 0), false, 320 + 192, 580},
              {"data only", told(3, 0, 20), true, 320 + 192, 600},
              {"an earlier life of one with a record", told(1, 20, 9), true, 640 + 192, 600}};
  for (auto row : rows) {
    row.entry.data_fingerprint.bytes[0] = static_cast<std::uint8_t>(10 + row.entry.id.bytes[0]);
    EXPECT_EQ(p.note_gone(row.entry, Word::kVouched), row.news) << row.what;
    EXPECT_EQ(p.samples(), row.samples) << row.what;
    EXPECT_EQ(p.data_samples(), row.data) << row.what;
  }
  p.note(id(2), 320, 10);  // it is back
  EXPECT_EQ(p.samples(), 640U + 320U);
}

// Else what one has folded and another has not would be counted again and again.
TEST(ProgressBound, WhatOthersSayIsNotCountedIfItMayBeInTheFoldedSum) {
  Progress p({});
  pass_through(p, 100, kMost + 1, [](std::uint64_t n) { return 1 + n; });
  const Progress::Folded folded = p.folded();
  ASSERT_GT(folded.below_max, 0U);
  const Samples before = p.samples();
  for (int round = 0; round < 3; ++round)
    for (std::uint64_t n = 100; n < 100 + kMost; ++n)
      EXPECT_FALSE(p.note_gone(told(n, 1 + n), Word::kVouched)) << n;
  EXPECT_EQ(p.samples(), before);
  EXPECT_EQ(p.folded(), folded);
  EXPECT_TRUE(p.note_gone(told(1, folded.below_max / 32 + 1), Word::kVouched));
}

TEST(ProgressBound, ASumThatOverflowsStaysAtTheGreatestThereIs) {
  Progress p({.steps = 10});
  for (std::uint64_t n = 1; n <= 3; ++n) p.note(id(n), ~0ULL, ~0ULL);
  EXPECT_EQ(p.samples(), ~0ULL);
  EXPECT_TRUE(p.done());
}

// A member may claim any size, of a file of its own: the run goes on, and never ends by it.
TEST(ProgressBound, DataThatOverflowsNeitherVanishesNorEndsTheRun) {
  const struct {
    const char* what;
    std::uint32_t shards;  // of one file, or 0: a file for each
    Samples each;
  } rows[] = {{"files", 0, 0ULL - 8999}, {"shards", 3, 1ULL << 63}};
  for (const auto& row : rows) {
    Progress p({.epochs = 0.25});
    p.note_data(holder(1, 1, 9000));
    p.note(id(1), 32, 1);
    for (std::uint32_t k = 1; k <= 3; ++k)
      p.note_data(row.shards == 0 ? holder(1 + k, static_cast<std::uint8_t>(1 + k), row.each)
                                  : holder(1 + k, 2, ~0ULL, k, row.shards, row.each));
    EXPECT_EQ(p.data_samples(), ~0ULL) << row.what;
    p.note(id(1), ~0ULL, 1);
    EXPECT_FALSE(p.done()) << row.what;
    EXPECT_LE(p.epoch(), 1.0) << row.what;
  }
}

// Their records come after the checkpoint, one after another, and say what was counted already.
TEST(ProgressBound, WhoLivedAtTheCheckpointCountsOnceHoweverManyWereForgotten) {
  constexpr std::uint64_t kLiving = 700, kFirst = 50'000;
  std::map<NodeId, Progress::Work> works;
  for (std::uint64_t n = 0; n < kMost; ++n) works[id(100 + n)].count = {3200, 100};
  for (std::uint64_t n = 0; n < kLiving; ++n) works[id(kFirst + n)].count = {32, 1};
  Progress p({});
  p.restore(works, {});
  const Samples before = p.samples();
  EXPECT_EQ(before, 3200 * kMost + 32 * kLiving);
  EXPECT_TRUE(p.note_gone(told(1, 2), Word::kVouched));  // comes before the records
  for (std::uint64_t n = 0; n < kLiving; ++n) p.note(id(kFirst + n), 32, 1);
  EXPECT_EQ(p.samples(), before + 64);
  p.forget(id(kFirst));
  EXPECT_LE(p.works().size(), kMost + kLiving);
  EXPECT_EQ(p.samples(), before + 64);
}

}  // namespace
}  // namespace kith::gossip
