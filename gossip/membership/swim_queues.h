// Two small indexes that Swim's parts share: what is to be told to others and how often it has
// been, and which member has a timer running. Both bounded, both O(log size) per call. Thread: one
// owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"

namespace kith::gossip {

// What is told: the record of `subject`, or `accuser`'s accusation of it (a zero accuser: the
// record). The content is looked up when it is sent, so that it is always the newest.
struct Rumour {
  NodeId subject;
  NodeId accuser;
  auto operator<=>(const Rumour&) const = default;
};

// Rumours, least told first, among those the newest first; each is told `limit` times. When full,
// what was told most goes.
class RumourQueue {
 public:
  explicit RumourQueue(std::size_t size_max) : size_max_(size_max) {}

  // Enters it as new; one that is there already starts again.
  void add(const Rumour& rumour);
  void remove(const Rumour& rumour);
  // The next one after `previous` in the order in which they should be told (std::nullopt: the
  // first).
  struct Place {
    unsigned told = 0;
    std::uint64_t age = 0;  // falls with each entry: newest first
    Rumour rumour;
    auto operator<=>(const Place&) const = default;
  };
  [[nodiscard]] std::optional<Place> next(const std::optional<Place>& previous) const;
  // It has been told once more; at `limit` it goes.
  void told(const Place& place, unsigned limit);
  [[nodiscard]] std::size_t size() const { return order_.size(); }

 private:
  std::size_t size_max_;
  std::uint64_t next_age_ = ~std::uint64_t{0};
  std::set<Place> order_;
  std::map<Rumour, Place> index_;
};

// One deadline per member at most.
class MemberTimers {
 public:
  void set(const NodeId& id, TimePoint at);
  void clear(const NodeId& id);
  [[nodiscard]] std::optional<TimePoint> get(const NodeId& id) const;
  // Takes one whose time has come.
  std::optional<NodeId> take_due(TimePoint now);
  [[nodiscard]] TimePoint next() const {
    return order_.empty() ? TimePoint::max() : order_.begin()->first;
  }
  [[nodiscard]] std::size_t size() const { return order_.size(); }

 private:
  std::set<std::pair<TimePoint, NodeId>> order_;
  std::map<NodeId, TimePoint> index_;
};

}  // namespace kith::gossip
