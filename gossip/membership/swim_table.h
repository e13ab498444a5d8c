// What Swim knows of everybody else: the records, who of them lives, and the sums that digests
// compare. Everything that a message or a tick asks for is kept ready (no loop over all members),
// because there may be ten thousand.
//
// Digest: per bucket (first 6 bits of the id) the sum over all who are alive or suspect, this node
// included, of a 64-bit mix of (id, incarnation). Suspicion is not in it (it passes), nor are the
// dead and the left: nodes forget them at different times, and who misses a death shows it by an
// entry too many.
//
// Order of two records of one id: boot, then boot nonce, then refutations, then version. The nonce
// stands before the refutations so that of two processes started from one copied directory the same
// one wins everywhere, for good. Thread: one owner. Costs: O(log n) per call unless it says
// otherwise; about 150 bytes per member besides the shared record.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "gossip/membership/swim.h"

namespace kith::gossip {

inline std::uint64_t boot_of(Incarnation incarnation) { return incarnation >> 32; }
inline std::uint64_t refutations_of(Incarnation incarnation) { return incarnation & 0xFFFFFFFFULL; }
// One run of one process.
inline std::pair<std::uint64_t, std::uint64_t> life_of(const schema::MemberRecord& r) {
  return {boot_of(r.incarnation), r.boot_nonce};
}
std::strong_ordering compare_records(const schema::MemberRecord& a, const schema::MemberRecord& b);
inline bool is_living(schema::MemberState state) {
  return state == schema::MemberState::kAlive || state == schema::MemberState::kSuspect;
}
// Bucket of a digest.
inline std::size_t bucket_of(const NodeId& id) { return id.bytes[0] >> 2; }

class SwimTable {
 public:
  using Map = std::map<NodeId, SwimMember>;
  using Buckets = std::array<std::uint64_t, schema::kDigestBuckets>;
  using RecordPtr = std::shared_ptr<const schema::MemberRecord>;

  SwimTable(const NodeId& self, std::size_t members_max) : self_(self), members_max_(members_max) {}

  [[nodiscard]] const Map& members() const { return members_; }
  [[nodiscard]] SwimMember* find(const NodeId& id);
  [[nodiscard]] const SwimMember* find(const NodeId& id) const;
  [[nodiscard]] bool full() const { return members_.size() >= members_max_; }
  [[nodiscard]] std::size_t count(schema::MemberState state) const {
    return counts_[static_cast<std::size_t>(state)];
  }
  // Alive or suspect, self excluded.
  [[nodiscard]] std::size_t living() const { return living_.size(); }

  // The id must be new, and the table not full.
  SwimMember& add(TimePoint now, RecordPtr record);
  // Another record (or the same with another state) of a known id.
  void replace(TimePoint now, SwimMember& member, RecordPtr record);
  void erase(const NodeId& id);
  // Our own part of the digest.
  void set_self(Incarnation incarnation);

  // Everybody alive or suspect once per round, in an order drawn anew for each round; nullptr:
  // there is nobody. O(1).
  SwimMember* next_in_round(Random& random);
  // A living member, uniformly; nullptr: there is nobody. O(1).
  SwimMember* draw(Random& random);

  [[nodiscard]] const Buckets& buckets() const { return buckets_; }
  // First record at or after the bucket's lowest id.
  [[nodiscard]] Map::const_iterator bucket_begin(std::size_t bucket) const;
  // The first member after `id`, starting over at the end; nullptr: there is none.
  [[nodiscard]] const SwimMember* after(const NodeId& id) const;

 private:
  void enter(SwimMember& member);  // counts, sums and the list of the living
  void withdraw(SwimMember& member);
  void swap_places(std::size_t a, std::size_t b);

  NodeId self_;
  std::size_t members_max_;
  Map members_;
  std::array<std::size_t, 4> counts_{};
  Buckets buckets_{};
  std::uint64_t self_part_ = 0;
  // [0, round_) has been probed in this round, the rest has not; random order comes from drawing
  // out of the rest.
  std::vector<SwimMember*> living_;
  std::size_t round_ = 0;
};

}  // namespace kith::gossip
