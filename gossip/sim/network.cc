#include "gossip/sim/network.h"

#include <algorithm>
#include <utility>

namespace kith::sim {

Network::Network(NetworkSettings settings, std::uint64_t seed)
    : settings_(settings), seed_(seed), random_(Random(seed).fork("network")) {}

Duration Network::link_delay(NodeIndex from, NodeIndex to) const {
  const double spread = settings_.jitter * static_cast<double>(settings_.latency.count());
  const auto width = static_cast<std::int64_t>(2.0 * spread);
  if (width <= 0) return settings_.latency;
  TraceHash hash;
  hash.add(seed_);
  hash.add((std::uint64_t{from} << 32) | to);
  const auto offset = static_cast<std::int64_t>(hash.value() % static_cast<std::uint64_t>(width));
  return settings_.latency - Duration(width / 2) + Duration(offset);
}

Duration Network::delay_max() const {
  const double spread = settings_.jitter * static_cast<double>(settings_.latency.count());
  return settings_.latency + Duration(static_cast<std::int64_t>(spread) + 1) +
         settings_.reorder_delay_max;
}

Duration Network::late() {
  if (!random_.chance(settings_.reorder)) return Duration{0};
  ++counts_.delayed;
  return Duration(static_cast<std::int64_t>(
      random_.below(static_cast<std::uint64_t>(settings_.reorder_delay_max.count()) + 1)));
}

Network::Route Network::route(NodeIndex from, NodeIndex to) {
  Route route;
  if (active_cuts_ > 0 && is_cut(from, to)) {
    ++counts_.cut;
    return route;
  }
  if (settings_.loss > 0.0 && random_.chance(settings_.loss)) {
    ++counts_.dropped;
    return route;
  }
  const Duration delay = link_delay(from, to);
  route.delay[route.copies++] = settings_.reorder > 0.0 ? delay + late() : delay;
  if (settings_.duplicate > 0.0 && random_.chance(settings_.duplicate)) {
    ++counts_.duplicated;
    route.delay[route.copies++] = settings_.reorder > 0.0 ? delay + late() : delay;
  }
  return route;
}

std::uint32_t Network::add_cut(Cut cut) {
  active_cuts_ += cut.active ? 1 : 0;
  cuts_.push_back(std::move(cut));
  return static_cast<std::uint32_t>(cuts_.size() - 1);
}

void Network::set_cut(std::uint32_t cut, bool active) {
  if (cuts_[cut].active == active) return;
  cuts_[cut].active = active;
  if (active) {
    ++active_cuts_;
  } else {
    --active_cuts_;
  }
}

bool Network::is_cut(NodeIndex from, NodeIndex to) const {
  return std::any_of(cuts_.begin(), cuts_.end(), [&](const Cut& cut) {
    if (!cut.active || cut.side[from] == cut.side[to]) return false;
    return !cut.one_way || cut.side[from] == 1;
  });
}

bool Network::separated(NodeIndex a, NodeIndex b) const {
  return active_cuts_ > 0 && std::any_of(cuts_.begin(), cuts_.end(), [&](const Cut& cut) {
           return cut.active && !cut.one_way && cut.side[a] != cut.side[b];
         });
}

void Network::heal() {
  settings_.loss = settings_.duplicate = settings_.reorder = 0.0;
  for (Cut& cut : cuts_) cut.active = false;
  active_cuts_ = 0;
}

}  // namespace kith::sim
