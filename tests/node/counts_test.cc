#include "node/daemon/counts.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "compute/trainer.h"
#include "node/store/checkpoint_metadata.h"

namespace kith::node {
namespace {

using gossip::Progress;

NodeId id(std::uint64_t n) {
  NodeId node;
  std::memcpy(node.bytes.data(), &n, sizeof n);
  return node;
}
constexpr std::uint64_t kSelf = 1;

Metadata written(const Progress& progress) {
  CheckpointFacts facts;
  facts.run_id = "digits-1";
  put_counts(progress, id(kSelf), facts);
  return checkpoint_metadata(facts, {});
}

CheckpointFacts read(const Metadata& metadata) {
  CheckpointFacts facts;
  compute::TrainerImage image;
  const Status status = read_checkpoint_metadata(metadata, facts, image);
  EXPECT_TRUE(status) << status.error().message;
  return facts;
}

std::size_t size_of(const Metadata& metadata) {
  std::size_t bytes = 0;
  for (const auto& [key, value] : metadata) bytes += key.size() + value.size();
  return bytes;
}

// Members come, work and are forgotten; `seed` orders them.
Progress after(std::size_t members, std::uint64_t seed) {
  Progress progress({});
  Random random(seed);
  progress.note(id(kSelf), 700, 7);
  for (std::size_t n = 0; n < members; ++n) {
    const std::uint64_t steps = 1 + random.below(1000);
    progress.note(id(100 + n), steps * 32, steps);
    progress.forget(id(100 + n));
  }
  return progress;
}

TEST(Counts, ComeBackFromACheckpointAsTheyWere) {
  const struct {
    const char* what;
    std::size_t members;
  } rows[] = {{"alone", 0},
              {"a few", 3},
              {"as many as have entries", Progress::kGoneMax},
              {"many more", 3 * Progress::kGoneMax}};
  for (const auto& row : rows) {
    const Progress before = after(row.members, 5);
    Progress again({});
    take_counts(read(written(before)), again);
    again.note(id(kSelf), 700, 7);  // from the trainer
    EXPECT_EQ(again.samples(), before.samples()) << row.what;
    EXPECT_EQ(again.steps(), before.steps()) << row.what;
    EXPECT_EQ(again.works().size(), before.works().size()) << row.what;
    EXPECT_EQ(again.folded(), before.folded()) << row.what;
    EXPECT_EQ(written(again), written(before)) << row.what;
  }
}

// Before there was a folded sum: an entry for each member ever known, however many.
TEST(Counts, OfAnOldCheckpointAreAllCounted) {
  for (const std::size_t members : {std::size_t{2}, 2 * Progress::kGoneMax + 17}) {
    CheckpointFacts facts;
    Samples sum = 0;
    for (std::size_t n = 0; n < members; ++n) {
      facts.others_samples[id(100 + n).hex()] = 32 * (n + 1);
      facts.others_steps[id(100 + n).hex()] = n + 1;
      sum += 32 * (n + 1);
    }
    Metadata old = checkpoint_metadata(facts, {});
    std::erase_if(old, [](const auto& entry) { return entry.first.starts_with("folded"); });
    Progress progress({});
    take_counts(read(old), progress);
    EXPECT_EQ(progress.samples(), sum);
    EXPECT_EQ(progress.steps(), sum / 32);
    // The one that did most of all comes back, and counts once.
    progress.note(id(100 + members - 1), 32 * members + 5, members);
    EXPECT_EQ(progress.samples(), sum + 5);
    progress.forget(id(100 + members - 1));
    EXPECT_LE(progress.works().size(), Progress::kGoneMax);
    EXPECT_EQ(progress.samples(), sum + 5);
  }
}

TEST(Counts, ThatAreOneMembersWordStaySoInACheckpoint) {
  Progress before({}), again({});
  before.note(id(2), 64, 2);
  before.note_gone({id(2), 320, 10}, Progress::Word::kOne);
  before.note_gone({id(3), 320, 10}, Progress::Word::kOne);
  before.note_gone({id(4), 320, 10}, Progress::Word::kVouched);
  take_counts(read(written(before)), again);
  for (const std::uint64_t n : {2, 3, 4}) {
    EXPECT_EQ(again.works().at(id(n)).count, before.works().at(id(n)).count) << n;
    EXPECT_EQ(again.works().at(id(n)).vouched, before.works().at(id(n)).vouched) << n;
  }
}

TEST(Counts, WrongOnesAreNoCheckpoint) {
  for (const char* key : {"folded_samples", "folded_steps", "folded_data", "others_samples",
                          "vouched_samples", "vouched_steps"}) {
    Metadata metadata = written(after(3, 5));
    metadata[key] = "many";
    CheckpointFacts facts;
    compute::TrainerImage image;
    EXPECT_FALSE(read_checkpoint_metadata(metadata, facts, image)) << key;
  }
}

TEST(Counts, OfThousandsOfInventedMembersLeaveACheckpointAsLargeAsBefore) {
  const Metadata some = written(after(2 * Progress::kGoneMax, 5)), more = written(after(20'000, 6));
  EXPECT_LE(size_of(more), size_of(some) + size_of(some) / 4);
  EXPECT_LT(size_of(more), std::size_t{1} << 20);
}

}  // namespace
}  // namespace kith::node
