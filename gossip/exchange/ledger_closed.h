// ClosedIds: which exchanges of one initiator can never be committed here any more.
//
// An exchange that was refused, aborted or acknowledged leaves a tombstone, so that a late copy of
// its PROPOSE and chunks is not taken for a new one: the initiator has closed it and would not
// apply the result. Tombstones go when the initiator's lowest_open passes them; above
// kTombstonesMax the lowest give way to a higher floor (refusing too much is safe, forgetting is
// not). Older incarnations are closed as a whole. Values; one owner.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace kith::gossip {

class ClosedIds {
 public:
  static constexpr std::size_t kTombstonesMax = 4096;

  [[nodiscard]] Incarnation incarnation() const { return incarnation_; }
  [[nodiscard]] std::uint64_t floor() const { return floor_; }
  [[nodiscard]] const std::vector<std::uint64_t>& tombstones() const { return tombstones_; }

  [[nodiscard]] bool is_closed(Incarnation incarnation, std::uint64_t sequence) const;
  // Of the current incarnation; others need none.
  void bury(Incarnation incarnation, std::uint64_t sequence);
  // Everything below is closed. The floor never falls.
  void raise_floor(std::uint64_t floor);
  // A newer incarnation starts from nothing.
  void advance(Incarnation incarnation);
  // The peer is gone: one number is kept instead of many, at the price of refusing what it may
  // still have open.
  void condense();

 private:
  Incarnation incarnation_ = 0;
  std::uint64_t floor_ = 0;
  std::vector<std::uint64_t> tombstones_;  // sorted, all >= floor_
};

}  // namespace kith::gossip
