#include "gossip/membership/data_sharing.h"

#include <algorithm>
#include <queue>

#include "base/check.h"
#include "base/mix.h"

namespace kith::gossip {
namespace {

constexpr std::size_t kSlack = 32;  // a share may be 1/32 above its fair part

std::uint64_t mix(std::uint64_t x) { return mix64(x + kMixStep); }

std::uint64_t key_of(const NodeId& id, std::uint64_t seed) {
  std::uint64_t key = mix(seed);
  for (std::size_t i = 0; i < id.bytes.size(); i += 8) {
    std::uint64_t word = 0;
    for (std::size_t k = 0; k < 8; ++k) word |= std::uint64_t{id.bytes[i + k]} << (8 * k);
    key = mix(key ^ word);
  }
  return key;
}

struct Bid {
  std::uint64_t weight = 0;
  std::uint32_t slot = 0, member = 0;
  bool operator<(const Bid& other) const {
    return weight != other.weight ? weight < other.weight : slot > other.slot;
  }
};

// Settles the bids for all slots, highest first. Who is full drops out, so each slot's best bid is
// looked up again only when its member was full by then.
class Auction {
 public:
  Auction(std::span<const NodeId> sharers, std::uint64_t seed, std::size_t samples)
      : samples_(samples),
        slots_(slot_count(samples)),
        bound_(share_bound(samples, sharers.size())) {
    for (const NodeId& id : sharers) keys_.push_back(key_of(id, seed));
    load_.resize(keys_.size());
  }

  std::vector<std::uint32_t> run() {
    std::vector<std::uint32_t> owners(slots_);
    std::vector<Bid> first(slots_);
    for (std::size_t slot = 0; slot < slots_; ++slot) first[slot] = best_bid(slot);
    std::priority_queue<Bid> bids(std::less<Bid>{}, std::move(first));
    while (!bids.empty()) {
      const Bid bid = bids.top();
      bids.pop();
      if (!has_room(bid.member, bid.slot)) {
        bids.push(best_bid(bid.slot));
        continue;
      }
      load_[bid.member] += size_of(bid.slot);
      owners[bid.slot] = bid.member;
    }
    return owners;
  }

 private:
  [[nodiscard]] std::size_t size_of(std::size_t slot) const {
    return samples_ / slots_ + (slot < samples_ % slots_ ? 1 : 0);
  }
  [[nodiscard]] bool has_room(std::size_t member, std::size_t slot) const {
    return load_[member] + size_of(slot) <= bound_;
  }
  [[nodiscard]] Bid best_bid(std::size_t slot) const {
    const std::uint64_t salt = mix(slot);
    std::optional<Bid> best;
    for (std::size_t member = 0; member < keys_.size(); ++member) {
      if (!has_room(member, slot)) continue;
      const std::uint64_t weight = mix(keys_[member] ^ salt);
      if (!best || weight > best->weight)
        best = Bid{weight, static_cast<std::uint32_t>(slot), static_cast<std::uint32_t>(member)};
    }
    KITH_CHECK(best.has_value(), "the bounds leave room for every slot");
    return *best;
  }

  std::size_t samples_, slots_, bound_;
  std::vector<std::uint64_t> keys_;
  std::vector<std::size_t> load_;  // samples
};

}  // namespace

std::size_t slot_count(std::size_t samples) { return std::min(samples, kSlotsMax); }

std::size_t share_bound(std::size_t samples, std::size_t members) {
  if (samples == 0 || members == 0) return samples;
  const std::size_t slots = slot_count(samples);
  const std::size_t largest_slot = (samples + slots - 1) / slots;
  const std::size_t parts = members * kSlack;
  const std::size_t fair_and_slack = (samples * (kSlack + 1) + parts - 1) / parts;
  return fair_and_slack + largest_slot - 1;
}

std::vector<std::uint32_t> assign_slots(std::span<const NodeId> sharers, std::uint64_t seed,
                                        std::size_t samples) {
  KITH_CHECK(!sharers.empty(), "data is shared among at least one member");
  if (sharers.size() == 1) return std::vector<std::uint32_t>(slot_count(samples), 0);
  return Auction(sharers, seed, samples).run();
}

std::vector<std::uint8_t> share_of(const NodeId& self, std::span<const NodeId> sharers,
                                   std::uint64_t seed, std::size_t samples) {
  const auto place = std::lower_bound(sharers.begin(), sharers.end(), self);
  KITH_CHECK(place != sharers.end() && *place == self, "a node is one of those it shares with");
  if (sharers.size() == 1) return {};
  const auto index = static_cast<std::uint32_t>(place - sharers.begin());
  const auto owners = assign_slots(sharers, seed, samples);
  if (std::find(owners.begin(), owners.end(), index) == owners.end()) return {};
  std::vector<std::uint8_t> mine(samples);
  for (std::size_t i = 0; i < samples; ++i) mine[i] = owners[i % owners.size()] == index ? 1 : 0;
  return mine;
}

bool is_sharer(const schema::MemberRecord& record, const Hash256& fingerprint) {
  using schema::MemberState;
  using schema::RunState;
  const bool lives = record.state == MemberState::kAlive || record.state == MemberState::kSuspect;
  const bool trains =
      record.run_state != RunState::kJoining && record.run_state != RunState::kLeaving;
  return record.shares_data && record.data_fingerprint == fingerprint && lives && trains &&
         !record.left;
}

bool ShareWatch::look(TimePoint now, const std::vector<NodeId>& seen, bool at_once) {
  if (seen == taken_) {
    differs_ = false;
    return false;
  }
  if (!differs_) differs_since_ = now;
  if (!differs_ || seen != seen_) {
    seen_ = seen;
    seen_since_ = now;
  }
  differs_ = true;
  const bool settled = now - seen_since_ >= settle_ || now - differs_since_ >= settle_ * kPatience;
  if (!settled && !at_once) return false;
  taken_ = seen;
  differs_ = false;
  return true;
}

}  // namespace kith::gossip
