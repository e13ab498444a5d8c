// Deadlines: when each of many entries wants to be looked at. An entry keeps `queued`, the time
// under which it stands here; one that made progress leaves it and is put back when its time comes
// (lazily), so that progress costs nothing. Thread: one owner. Cost: O(log n) per change.
#pragma once

#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"

namespace kith::gossip {

template <typename Key>
class Deadlines {
 public:
  static constexpr TimePoint kNever = TimePoint::max();

  void set(TimePoint& queued, const Key& key, TimePoint at) {
    if (queued == at) return;
    clear(queued, key);
    queued = at;
    if (at != kNever) times_.emplace(at, key);
  }
  void clear(TimePoint& queued, const Key& key) {
    if (queued != kNever) times_.erase({queued, key});
    queued = kNever;
  }
  [[nodiscard]] TimePoint next() const { return times_.empty() ? kNever : times_.begin()->first; }
  // The first key that is due; the caller clears or sets it again, later than `now`.
  [[nodiscard]] std::optional<Key> due(TimePoint now) const {
    if (times_.empty() || times_.begin()->first > now) return std::nullopt;
    return times_.begin()->second;
  }
  [[nodiscard]] std::size_t size() const { return times_.size(); }

 private:
  std::set<std::pair<TimePoint, Key>> times_;
};

}  // namespace kith::gossip
