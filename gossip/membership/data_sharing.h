// Data sharing: which samples of a training file each of its live holders trains on (data.shard =
// "auto").
//
// A sample belongs to the slot (sample mod slots); a slot belongs to the member that bids the
// highest random weight for it (rendezvous hashing: Thaler, Ravishankar 1998), as long as that
// member's load stays within a bound a little above its fair part (bounded loads: Mirrokni, Thorup,
// Zadimoghaddam 2018). Weights depend on (seed, id, slot) alone, bids are settled from the highest
// down, and so whoever sees the same members computes the same shares; they are disjoint and
// complete.
//
// What holds. While nothing changes every sample has one owner, who goes through its share in the
// order of one permutation of the whole file per pass, the same for all sharers (compute/data.h).
// When a member comes or goes, about its part of the samples changes hands, and between the others
// little (the bound: under 6 % of a share up to 16 members, 30 % at 64), and everybody goes on at
// the place of the permutation where it was: what a dead member had behind it is behind its heirs
// too, what it still had before it is before them. So with members of about the same speed each
// sample is trained about once per epoch of the cluster, through joins and deaths. A node that
// joins a run starts at the place that the cluster's progress says.
//
// What does not hold. Views differ for as long as news takes to spread and settle: meanwhile
// samples have two owners, or none; and it takes a table of all members, not a partial view. Shares
// are equal, not in proportion to speed: a node twice as fast goes around its share twice as often.
// (Weights need a figure that all read alike, published by its owner and changed rarely; a very
// slow node would then hold next to nothing.) Places drift apart with speed and with the sizes of
// shares, so a sample that changes hands may be left out, or used twice, in that one epoch. A crash
// repeats what was done since the checkpoint. The halves of a cut cluster each train on everything.
//
// Counted (tests/membership/shared_epoch_test.cc; 4 members, 8,960 samples, steps in a random
// order): one epoch with a join at 0.3 and a death at 0.7 used 93 % of the samples once, 3 % twice,
// 3 % not; after four epochs 99.8 % were used 3 to 5 times, none less than 2 or more than 6 times.
//
// Pure functions and a small step machine. Cost: members * slots hashes of about 3 ns and the
// sorting of the bids: 1 ms for 4 members and 60,000 samples, 50 ms for 1,000 members.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "schema/messages.h"

namespace kith::gossip {

// More slots share more evenly among many members and cost more; up to this many samples each is a
// slot of its own.
inline constexpr std::size_t kSlotsMax = 16384;
[[nodiscard]] std::size_t slot_count(std::size_t samples);

// Most samples that one of `members` may own: a fair part and 1/32 more, so that few bids fail and
// little moves when somebody comes or goes; and room for one slot, so that all of them always fit.
[[nodiscard]] std::size_t share_bound(std::size_t samples, std::size_t members);

// The owner of each slot, as an index into `sharers` (not empty, ordered by id, distinct).
[[nodiscard]] std::vector<std::uint32_t> assign_slots(std::span<const NodeId> sharers,
                                                      std::uint64_t seed, std::size_t samples);

// One byte per sample of the file: 1 for those of `self`. Empty = all: `self` is the only sharer,
// or one that got no slot (there are more members than samples): better a sample used twice than a
// node that stands still.
[[nodiscard]] std::vector<std::uint8_t> share_of(const NodeId& self,
                                                 std::span<const NodeId> sharers,
                                                 std::uint64_t seed, std::size_t samples);

// Whether a member takes part in sharing the file: it holds it, shares, lives, and trains or is
// about to. A suspect keeps its share (a hiccup moves nothing), and so does who finishes already;
// who leaves, is dead or only fetches a state has none.
[[nodiscard]] bool is_sharer(const schema::MemberRecord& record, const Hash256& fingerprint);

// When to share anew: once the sharers have been the same for `settle`, and under endless coming
// and going after kPatience * settle all the same.
class ShareWatch {
 public:
  static constexpr int kPatience = 8;
  explicit ShareWatch(Duration settle) : settle_(settle) {}

  // The sharers as seen now, ordered by id, this node included. True: they differ from those taken
  // before, and are taken now. `at_once`: nothing is being trained yet, so changing costs nothing.
  bool look(TimePoint now, const std::vector<NodeId>& seen, bool at_once);
  [[nodiscard]] const std::vector<NodeId>& taken() const { return taken_; }

 private:
  Duration settle_;
  std::vector<NodeId> taken_, seen_;
  TimePoint seen_since_, differs_since_;
  bool differs_ = false;
};

}  // namespace kith::gossip
