// ExchangePairs: with whom this node has exchanged, how often and how stale, since it started. Only
// its own: no node knows the exchanges of others, since nobody tells them. Bounded: above kPeersMax
// peers the one heard from longest ago is forgotten.
// Thread: one owner (Journal guards it). Units: seconds on the node's monotonic clock.
#pragma once

#include <cstdint>
#include <map>

#include "base/ids.h"

namespace kith::monitoring {

struct PairCounts {
  std::uint64_t started = 0;              // by this node, ended in averaging
  std::uint64_t answered = 0;             // started by the peer
  std::uint64_t failed = 0;               // started by this node, did not end in averaging
  std::uint64_t staleness_steps_sum = 0;  // over `started`
  double last_at = 0.0;                   // when one last ended, well or not
};

class ExchangePairs {
 public:
  static constexpr std::size_t kPeersMax = 1024;

  void started(const NodeId& peer, std::uint64_t staleness_steps, double at);
  void answered(const NodeId& peer, double at);
  void failed(const NodeId& peer, double at);

  [[nodiscard]] const std::map<NodeId, PairCounts>& counts() const { return counts_; }

 private:
  PairCounts& of(const NodeId& peer, double at);

  std::map<NodeId, PairCounts> counts_;
};

}  // namespace kith::monitoring
