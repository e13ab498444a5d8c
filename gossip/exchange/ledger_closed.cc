#include "gossip/exchange/ledger_closed.h"

#include <algorithm>

namespace kith::gossip {

bool ClosedIds::is_closed(Incarnation incarnation, std::uint64_t sequence) const {
  if (incarnation != incarnation_) return incarnation < incarnation_;
  return sequence < floor_ || std::binary_search(tombstones_.begin(), tombstones_.end(), sequence);
}

void ClosedIds::bury(Incarnation incarnation, std::uint64_t sequence) {
  if (incarnation != incarnation_ || sequence < floor_) return;
  const auto at = std::lower_bound(tombstones_.begin(), tombstones_.end(), sequence);
  if (at != tombstones_.end() && *at == sequence) return;
  tombstones_.insert(at, sequence);
  if (tombstones_.size() > kTombstonesMax) raise_floor(tombstones_[kTombstonesMax / 8] + 1);
}

void ClosedIds::raise_floor(std::uint64_t floor) {
  if (floor <= floor_) return;
  floor_ = floor;
  tombstones_.erase(tombstones_.begin(),
                    std::lower_bound(tombstones_.begin(), tombstones_.end(), floor));
}

void ClosedIds::advance(Incarnation incarnation) {
  if (incarnation <= incarnation_) return;
  incarnation_ = incarnation;
  floor_ = 0;
  tombstones_.clear();
}

void ClosedIds::condense() {
  if (!tombstones_.empty()) raise_floor(tombstones_.back() + 1);
  tombstones_.shrink_to_fit();
}

}  // namespace kith::gossip
