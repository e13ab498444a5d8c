#include "gossip/sim/membership_truth.h"

#include <algorithm>

namespace kith::sim {

void MembershipTruth::came_up(TimePoint now, NodeIndex index, std::uint32_t boot) {
  Node& node = nodes_[index];
  node.up = true;
  node.boot = boot;
  node.up_since = now;
  node.pauses.clear();
  ++up_;
}

void MembershipTruth::went_down(TimePoint now, NodeIndex index) {
  Node& node = nodes_[index];
  node.up = false;
  node.down_since = now;
  node.up_before += now - node.up_since;
  --up_;
}

void MembershipTruth::paused(TimePoint now, NodeIndex index, Duration length) {
  std::vector<Pause>& pauses = nodes_[index].pauses;
  Pause pause{now, now + length};
  // One that begins during another makes it longer.
  if (!pauses.empty() && pauses.back().until >= now) {
    pause.from = pauses.back().from;
    pause.until = std::max(pause.until, pauses.back().until);
  }
  while (!pauses.empty() && pauses.back().length() <= pause.length()) pauses.pop_back();
  pauses.push_back(pause);
}

void MembershipTruth::healed(TimePoint now) {
  if (cuts_ > 0) --cuts_;
  ever_cut_ = true;
  last_heal_ = now;
}

void MembershipTruth::healed_all(TimePoint now) {
  while (cuts_ > 0) healed(now);
}

bool MembershipTruth::ran_since(NodeIndex index, TimePoint since, Duration longest) const {
  const Node& node = nodes_[index];
  if (!node.up || node.up_since > since) return false;
  return std::ranges::none_of(node.pauses, [&](const Pause& pause) {
    return pause.length() > longest && pause.until >= since;
  });
}

bool MembershipTruth::stands_still(NodeIndex index, TimePoint now) const {
  return std::ranges::any_of(nodes_[index].pauses,
                             [now](const Pause& pause) { return pause.until > now; });
}

double MembershipTruth::node_hours(TimePoint now) const {
  double seconds = 0.0;
  for (const Node& node : nodes_) {
    seconds += to_seconds(node.up_before);
    if (node.up) seconds += to_seconds(now - node.up_since);
  }
  return seconds / 3600.0;
}

namespace {

std::uint64_t pack(const Belief& b) {
  return ((b.incarnation << 2) | static_cast<std::uint64_t>(b.state)) + 1;
}
Belief unpack(std::uint64_t packed) {
  return {(packed - 1) >> 2, static_cast<schema::MemberState>((packed - 1) & 3)};
}

}  // namespace

Beliefs::Beliefs(std::uint32_t nodes, bool dense) : nodes_(nodes) {
  if (dense) {
    table_.resize(std::size_t{nodes} * nodes);
  } else {
    maps_.resize(nodes);
  }
}

std::optional<Belief> Beliefs::find(NodeIndex observer, NodeIndex subject) const {
  std::uint64_t packed = 0;
  if (maps_.empty()) {
    packed = table_[std::size_t{observer} * nodes_ + subject];
  } else if (const auto found = maps_[observer].find(subject); found != maps_[observer].end()) {
    packed = found->second;
  }
  return packed == 0 ? std::nullopt : std::optional(unpack(packed));
}

void Beliefs::set(NodeIndex observer, NodeIndex subject, Belief belief) {
  if (maps_.empty()) {
    table_[std::size_t{observer} * nodes_ + subject] = pack(belief);
  } else {
    maps_[observer][subject] = pack(belief);
  }
}

void Beliefs::forget(NodeIndex observer, NodeIndex subject) {
  if (maps_.empty()) {
    table_[std::size_t{observer} * nodes_ + subject] = 0;
  } else {
    maps_[observer].erase(subject);
  }
}

void Beliefs::forget_all(NodeIndex observer) {
  if (!maps_.empty()) return maps_[observer].clear();
  const auto first = table_.begin() + static_cast<std::ptrdiff_t>(std::size_t{observer} * nodes_);
  std::fill(first, first + nodes_, 0);
}

}  // namespace kith::sim
