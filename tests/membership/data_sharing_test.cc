#include "gossip/membership/data_sharing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/random.h"

namespace kith::gossip {
namespace {

using schema::MemberState;
using schema::RunState;

// Ids of all kinds: consecutive ones too, which a weak hash would treat alike.
std::vector<NodeId> members(std::size_t count) {
  std::vector<NodeId> ids;
  for (std::size_t i = 0; i < count; ++i) {
    NodeId id;
    id.bytes[0] = static_cast<std::uint8_t>(i >> 8);
    id.bytes[1] = static_cast<std::uint8_t>(i);
    ids.push_back(id);
  }
  return ids;
}

std::vector<std::size_t> loads(std::size_t count, std::uint64_t seed, std::size_t samples) {
  const auto ids = members(count);
  const auto owners = assign_slots(ids, seed, samples);
  std::vector<std::size_t> load(count);
  for (std::size_t i = 0; i < samples; ++i) ++load[owners[i % owners.size()]];
  return load;
}

// Samples whose owner is another one, of those that neither joined nor left.
struct Moved {
  std::size_t by_change = 0;  // to the one who joined, or from the one who left
  std::size_t otherwise = 0;  // between two who were there before and after
};
Moved moved(const std::vector<NodeId>& before, const std::vector<NodeId>& after, std::uint64_t seed,
            std::size_t samples) {
  const auto a = assign_slots(before, seed, samples), b = assign_slots(after, seed, samples);
  Moved result;
  for (std::size_t i = 0; i < samples; ++i) {
    const NodeId& from = before[a[i % a.size()]];
    const NodeId& to = after[b[i % b.size()]];
    if (from == to) continue;
    const bool left = !std::binary_search(after.begin(), after.end(), from);
    const bool joined = !std::binary_search(before.begin(), before.end(), to);
    ++(left || joined ? result.by_change : result.otherwise);
  }
  return result;
}

struct Size {
  std::size_t members, samples;
};
class SharesOf : public ::testing::TestWithParam<Size> {};
INSTANTIATE_TEST_SUITE_P(Sizes, SharesOf,
                         ::testing::Values(Size{1, 1}, Size{2, 1}, Size{2, 2}, Size{3, 7},
                                           Size{2, 1000}, Size{4, 8960}, Size{5, 8960},
                                           Size{7, 16385}, Size{16, 60000}, Size{64, 20000},
                                           Size{100, 20000}, Size{50, 20}, Size{3, 1000003}));

TEST_P(SharesOf, AreDisjointCompleteAndWithinTheBound) {
  const auto [count, samples] = GetParam();
  const auto ids = members(count);
  std::vector<int> used(samples);
  std::size_t without = 0;
  for (const NodeId& id : ids) {
    const auto mine = share_of(id, ids, 7, samples);
    if (mine.empty()) {
      ++without;
      continue;
    }
    ASSERT_EQ(mine.size(), samples);
    std::size_t load = 0;
    for (std::size_t i = 0; i < samples; ++i) {
      used[i] += mine[i];
      load += mine[i];
    }
    EXPECT_GT(load, 0U);
    EXPECT_LE(load, share_bound(samples, count));
  }
  if (count == 1) return;
  EXPECT_EQ(std::count(used.begin(), used.end(), 1), static_cast<std::ptrdiff_t>(samples));
  if (count * 4 <= samples) {
    EXPECT_EQ(without, 0U) << "somebody got nothing";
  }
}

TEST(ShareBound, IsAFairPartAndAThirtySecond) {
  EXPECT_EQ(share_bound(1024, 1), 1056U);
  EXPECT_EQ(share_bound(1024, 4), 264U);
  EXPECT_EQ(share_bound(8960, 4), 2310U);
  EXPECT_EQ(share_bound(3, 5), 1U);
  EXPECT_EQ(share_bound(0, 5), 0U);
  // Slots of up to 4 samples: room for one more of them.
  EXPECT_EQ(share_bound(60000, 4), 15469U + 3);
}

TEST(Shares, NobodyIsFarBelowTheFairPart) {
  for (const auto& [count, samples, least] :
       {std::tuple{4, 8960, 0.90}, {16, 60000, 0.85}, {300, 60000, 0.5}})
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const auto load = loads(count, seed, samples);
      const double fair = static_cast<double>(samples) / count;
      EXPECT_GE(static_cast<double>(*std::min_element(load.begin(), load.end())), least * fair)
          << count << " members";
    }
}

// A fair part changes hands with who joins or leaves; between the others next to nothing.
TEST(Shares, MoveOnlyWithWhoJoinsOrLeaves) {
  for (const auto& [count, samples] :
       {std::pair{2, 8960}, {4, 8960}, {5, 60000}, {16, 60000}, {64, 60000}}) {
    const auto all = members(count + 1);
    const double fair = static_cast<double>(samples) / (count + 1);
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      for (const std::size_t who : {std::size_t{0}, all.size() / 2, all.size() - 1}) {
        auto without = all;
        without.erase(without.begin() + static_cast<std::ptrdiff_t>(who));
        const Moved join = moved(without, all, seed, samples),
                    leave = moved(all, without, seed, samples);
        EXPECT_EQ(join.by_change, leave.by_change);
        EXPECT_LE(static_cast<double>(join.by_change), fair * 33 / 32 + 4);
        EXPECT_GE(static_cast<double>(join.by_change), fair * 0.75);
        EXPECT_LE(static_cast<double>(join.otherwise), fair * (count <= 16 ? 0.06 : 0.3))
            << count << " members, " << join.otherwise;
        EXPECT_EQ(join.otherwise, leave.otherwise) << "a join undoes a leave";
      }
    }
  }
}

TEST(Shares, DependOnTheSeedAndOnNothingElse) {
  const auto ids = members(5);
  EXPECT_EQ(assign_slots(ids, 1, 5000), assign_slots(ids, 1, 5000));
  EXPECT_NE(assign_slots(ids, 1, 5000), assign_slots(ids, 2, 5000));
  // Figures that every build on every machine must compute.
  const auto owners = assign_slots(ids, 1, 12);
  EXPECT_EQ(owners, (std::vector<std::uint32_t>{0, 1, 0, 2, 1, 4, 3, 4, 3, 3, 2, 2}));
}

TEST(Shares, OfALoneMemberAreAllTheData) {
  const auto ids = members(1);
  EXPECT_TRUE(share_of(ids[0], ids, 3, 1000).empty());
}

// A file sorted by label, or whose labels come round in turn, gives every member some of each.
TEST(Shares, AreAMixOfTheFileHoweverItIsSorted) {
  constexpr std::size_t kSamples = 40000;
  const auto ids = members(4);
  const auto mine = share_of(ids[2], ids, 9, kSamples);
  std::map<std::size_t, std::size_t> sorted, in_turn;
  for (std::size_t i = 0; i < kSamples; ++i) {
    if (mine[i] == 0) continue;
    ++sorted[i * 10 / kSamples];
    ++in_turn[i % 10];
  }
  for (std::size_t label = 0; label < 10; ++label) {
    EXPECT_NEAR(static_cast<double>(sorted[label]), 1000, 150) << label;
    EXPECT_NEAR(static_cast<double>(in_turn[label]), 1000, 150) << label;
  }
}

TEST(Sharers, AreTheLivingWhoShareTheSameFileAndTrainIt) {
  Hash256 file, other;
  other.bytes[0] = 1;
  schema::MemberRecord r;
  r.shares_data = true;
  r.run_state = RunState::kTraining;
  EXPECT_TRUE(is_sharer(r, file));
  EXPECT_FALSE(is_sharer(r, other));
  const std::map<MemberState, bool> by_state = {{MemberState::kAlive, true},
                                                {MemberState::kSuspect, true},
                                                {MemberState::kDead, false},
                                                {MemberState::kLeft, false}};
  for (const auto& [state, shares] : by_state) {
    auto copy = r;
    copy.state = state;
    EXPECT_EQ(is_sharer(copy, file), shares) << static_cast<int>(state);
  }
  const std::map<RunState, bool> by_run = {
      {RunState::kWaiting, true},   {RunState::kJoining, false}, {RunState::kTraining, true},
      {RunState::kFinishing, true}, {RunState::kComplete, true}, {RunState::kLeaving, false}};
  for (const auto& [state, shares] : by_run) {
    auto copy = r;
    copy.run_state = state;
    EXPECT_EQ(is_sharer(copy, file), shares) << static_cast<int>(state);
  }
  r.shares_data = false;
  EXPECT_FALSE(is_sharer(r, file)) << "shard = all or k/n";
  r.shares_data = r.left = true;
  EXPECT_FALSE(is_sharer(r, file));
}

constexpr Duration kSettle = std::chrono::seconds(1);
TimePoint at(double seconds) { return TimePoint{} + from_seconds(seconds); }

TEST(ShareWatch, TakesAChangeOnceItHasSettled) {
  ShareWatch watch(kSettle);
  const auto two = members(2), three = members(3);
  EXPECT_FALSE(watch.look(at(0), two, false));
  EXPECT_FALSE(watch.look(at(0.9), two, false));
  EXPECT_TRUE(watch.look(at(1.0), two, false));
  EXPECT_EQ(watch.taken(), two);
  EXPECT_FALSE(watch.look(at(5), two, false)) << "nothing differs";
  EXPECT_FALSE(watch.look(at(6), three, false));
  EXPECT_FALSE(watch.look(at(6.9), three, false));
  EXPECT_TRUE(watch.look(at(7.1), three, false));
}

TEST(ShareWatch, AHiccupMovesNothing) {
  ShareWatch watch(kSettle);
  const auto two = members(2), three = members(3);
  EXPECT_TRUE(watch.look(at(0), three, true));
  EXPECT_FALSE(watch.look(at(1), two, false));
  EXPECT_FALSE(watch.look(at(1.5), three, false));
  EXPECT_FALSE(watch.look(at(1.9), two, false));
  EXPECT_FALSE(watch.look(at(2.5), two, false)) << "it was away for less than the time to settle";
  EXPECT_TRUE(watch.look(at(2.95), two, false));
}

TEST(ShareWatch, BeforeTrainingAChangeCostsNothing) {
  ShareWatch watch(kSettle);
  EXPECT_TRUE(watch.look(at(0), members(1), true));
  EXPECT_TRUE(watch.look(at(0), members(2), true));
  EXPECT_FALSE(watch.look(at(0), members(2), true));
}

TEST(ShareWatch, EndlessComingAndGoingDoesNotPutItOffForEver) {
  ShareWatch watch(kSettle);
  EXPECT_TRUE(watch.look(at(0), members(1), true));
  double taken_at = -1.0;
  for (int i = 0; i < 40 && taken_at < 0; ++i)
    if (watch.look(at(1 + 0.5 * i), members(static_cast<std::size_t>(2 + i % 5)), false))
      taken_at = 1 + 0.5 * i;
  EXPECT_NEAR(taken_at, 1 + ShareWatch::kPatience, 0.01);
}

}  // namespace
}  // namespace kith::gossip
