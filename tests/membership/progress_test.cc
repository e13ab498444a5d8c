#include "gossip/membership/progress.h"

#include <gtest/gtest.h>

namespace kith::gossip {
namespace {

NodeId id(std::uint8_t n) {
  NodeId node;
  node.bytes[0] = n;
  return node;
}

schema::MemberRecord holder(std::uint8_t file, Samples whole, std::uint32_t index,
                            std::uint32_t count, Samples samples) {
  schema::MemberRecord r;
  r.id.bytes[1] = file;  // a member for each share of each file
  r.id.bytes[2] = static_cast<std::uint8_t>(index);
  r.id.bytes[3] = static_cast<std::uint8_t>(count);
  r.data_fingerprint.bytes[0] = file;
  r.data_samples = whole;
  r.shard_index = index;
  r.shard_count = count;
  r.shard_samples = samples;
  return r;
}

TEST(Progress, SumsWhatNodesDidAndNeverFalls) {
  Progress p({});
  p.note(id(1), 100, 10);
  p.note(id(2), 50, 5);
  p.note(id(1), 80, 12);  // restarted from an older checkpoint: its mark stays, further steps count
  EXPECT_EQ(p.samples(), 150U);
  EXPECT_EQ(p.steps(), 17U);
}

TEST(Progress, CountsDistinctShardsOnceAndAWholeFileAsAWhole) {
  Progress p({});
  for (std::uint32_t k = 1; k <= 4; ++k) p.note_data(holder(1, 1000, k, 4, 250));
  p.note_data(holder(1, 1000, 2, 4, 250));
  EXPECT_EQ(p.data_samples(), 1000U);
  p.note_data(holder(2, 70, 0, 0, 70));
  EXPECT_EQ(p.data_samples(), 1070U);
  p.note_data(holder(2, 70, 1, 2, 35));
  EXPECT_EQ(p.data_samples(), 1070U);
}

TEST(Progress, OverlappingShardsNeverCountMoreThanTheFile) {
  Progress p({});
  p.note_data(holder(1, 100, 1, 1, 100));
  p.note_data(holder(1, 100, 1, 2, 50));
  EXPECT_EQ(p.data_samples(), 100U);
}

schema::MemberRecord sharer(std::uint8_t file, Samples whole, Samples share) {
  auto r = holder(file, whole, 0, 0, share);
  r.shares_data = true;
  return r;
}

TEST(Progress, AFileThatIsSharedOutCountsOnceHoweverSharesChange) {
  Progress p({.epochs = 2});
  p.note_data(sharer(1, 1000, 1000));  // alone at first
  p.note(id(1), 500, 5);
  EXPECT_EQ(p.data_samples(), 1000U);
  for (const Samples share : {510, 490, 340, 250}) p.note_data(sharer(1, 1000, share));
  EXPECT_EQ(p.data_samples(), 1000U);
  EXPECT_DOUBLE_EQ(p.epoch(), 0.5);
  p.note_data(sharer(2, 300, 300));
  EXPECT_EQ(p.data_samples(), 1300U);
  p.note(id(2), 2099, 5);
  EXPECT_FALSE(p.done());
  p.note(id(1), 501, 6);
  EXPECT_TRUE(p.done());
}

TEST(Progress, OneShardedByHandBesideSharersAddsNothing) {
  Progress p({});
  p.note_data(holder(1, 1000, 1, 4, 250));
  EXPECT_EQ(p.data_samples(), 250U);
  auto both = sharer(1, 1000, 500);
  both.shard_index = 1;  // contradicts itself: what it shares is the file
  both.shard_count = 2;
  p.note_data(both);
  EXPECT_EQ(p.data_samples(), 1000U);
}

TEST(Progress, AMemberCountsWithWhatItSaysNowHoweverOftenItChangesItsWord) {
  Progress p({});
  for (std::uint8_t file = 1; file < 200; ++file) {
    auto r = holder(file, 1000, 0, 0, 1000);
    r.id = id(7);
    p.note_data(r);
  }
  EXPECT_EQ(p.data_samples(), 1000U);
  auto shard = holder(1, 1000, 1, 4, 250);
  shard.id = id(7);
  p.note_data(shard);
  EXPECT_EQ(p.data_samples(), 250U);
}

TEST(Progress, OneHolderAloneMakesAFileNeitherLongNorShort) {
  Progress p({});
  for (const std::uint8_t member : {1, 2, 3, 4, 5}) {
    auto r = holder(1, member == 3 ? 1U << 30 : member == 4 ? 1 : 1000, 0, 0, 1000);
    r.id = id(member);
    p.note_data(r);
  }
  EXPECT_EQ(p.data_samples(), 1000U);
}

TEST(Progress, EpochsEndTheRunOverTheClustersData) {
  Progress p({.epochs = 3});
  p.note_data(holder(1, 1000, 1, 2, 500));
  p.note(id(1), 1499, 1);
  EXPECT_FALSE(p.done());
  p.note(id(1), 1500, 2);
  EXPECT_TRUE(p.done());
  p.note_data(holder(1, 1000, 2, 2, 500));  // a second holder joins: the run is longer
  EXPECT_FALSE(p.done());
  EXPECT_DOUBLE_EQ(p.length_samples(), 3000.0);
  EXPECT_DOUBLE_EQ(p.epoch(), 1.5);
}

TEST(Progress, StepsCountTheStepsOfAllNodes) {
  Progress p({.steps = 30});
  p.note(id(1), 320, 10);
  p.note(id(2), 320, 19);
  EXPECT_FALSE(p.done());
  p.note(id(2), 352, 20);
  EXPECT_TRUE(p.done());
}

TEST(Progress, EndlessRunsAreNeverDone) {
  Progress p({});
  p.note_data(holder(1, 10, 0, 0, 10));
  p.note(id(1), 1U << 30, 1U << 20);
  EXPECT_TRUE(p.endless());
  EXPECT_FALSE(p.done());
  EXPECT_EQ(p.length_samples(), 0.0);
}

}  // namespace
}  // namespace kith::gossip
