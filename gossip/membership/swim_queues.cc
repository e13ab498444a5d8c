#include "gossip/membership/swim_queues.h"

#include <iterator>

namespace kith::gossip {

void RumourQueue::add(const Rumour& rumour) {
  remove(rumour);
  if (order_.size() >= size_max_) remove(std::prev(order_.end())->rumour);
  const Place place{0, next_age_--, rumour};
  order_.insert(place);
  index_.emplace(rumour, place);
}

void RumourQueue::remove(const Rumour& rumour) {
  const auto it = index_.find(rumour);
  if (it == index_.end()) return;
  order_.erase(it->second);
  index_.erase(it);
}

std::optional<RumourQueue::Place> RumourQueue::next(const std::optional<Place>& previous) const {
  const auto it = previous ? order_.upper_bound(*previous) : order_.begin();
  return it == order_.end() ? std::nullopt : std::optional(*it);
}

void RumourQueue::told(const Place& place, unsigned limit) {
  const auto it = index_.find(place.rumour);
  if (it == index_.end() || it->second != place) return;
  order_.erase(place);
  if (place.told + 1 >= limit) {
    index_.erase(it);
    return;
  }
  it->second.told = place.told + 1;
  order_.insert(it->second);
}

void MemberTimers::set(const NodeId& id, TimePoint at) {
  clear(id);
  order_.emplace(at, id);
  index_.emplace(id, at);
}

void MemberTimers::clear(const NodeId& id) {
  const auto it = index_.find(id);
  if (it == index_.end()) return;
  order_.erase({it->second, id});
  index_.erase(it);
}

std::optional<TimePoint> MemberTimers::get(const NodeId& id) const {
  const auto it = index_.find(id);
  return it == index_.end() ? std::nullopt : std::optional(it->second);
}

std::optional<NodeId> MemberTimers::take_due(TimePoint now) {
  if (order_.empty() || order_.begin()->first > now) return std::nullopt;
  const NodeId id = order_.begin()->second;
  clear(id);
  return id;
}

}  // namespace kith::gossip
