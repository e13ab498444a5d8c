#include "monitoring/exchange_pairs.h"

#include <algorithm>

namespace kith::monitoring {

PairCounts& ExchangePairs::of(const NodeId& peer, double at) {
  if (counts_.size() >= kPeersMax && !counts_.contains(peer)) {
    counts_.erase(std::ranges::min_element(counts_, {},
                                           [](const auto& entry) { return entry.second.last_at; }));
  }
  PairCounts& counts = counts_[peer];
  counts.last_at = at;
  return counts;
}

void ExchangePairs::started(const NodeId& peer, std::uint64_t staleness_steps, double at) {
  PairCounts& counts = of(peer, at);
  ++counts.started;
  counts.staleness_steps_sum += staleness_steps;
}

void ExchangePairs::answered(const NodeId& peer, double at) { ++of(peer, at).answered; }

void ExchangePairs::failed(const NodeId& peer, double at) { ++of(peer, at).failed; }

}  // namespace kith::monitoring
