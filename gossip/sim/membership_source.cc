#include "gossip/sim/membership_source.h"

#include <algorithm>
#include <numeric>

#include "gossip/sim/node_ids.h"

namespace kith::sim {

OracleMembership::OracleMembership(std::uint32_t nodes, const Network& network,
                                   std::uint32_t view_max, std::uint64_t seed)
    : network_(network), nodes_(nodes), by_id_(nodes) {
  for (NodeIndex i = 0; i < nodes; ++i) nodes_[i].id = node_id(i);
  std::iota(by_id_.begin(), by_id_.end(), NodeIndex{0});
  const auto lower = [&](NodeIndex a, NodeIndex b) { return nodes_[a].id < nodes_[b].id; };
  std::sort(by_id_.begin(), by_id_.end(), lower);
  if (view_max == 0 || view_max + 1 >= nodes) return;
  // A union of random cycles through all nodes: connected, mutual, two neighbours each per cycle.
  neighbours_.resize(nodes);
  Random random = Random(seed).fork("views");
  std::vector<NodeIndex> cycle = by_id_;
  for (std::uint32_t c = 0; c < (view_max + 1) / 2; ++c) {
    random.shuffle(std::span(cycle));
    for (std::uint32_t i = 0; i < nodes; ++i) {
      const NodeIndex next = cycle[(i + 1) % nodes];
      neighbours_[cycle[i]].push_back(next);
      neighbours_[next].push_back(cycle[i]);
    }
  }
  for (auto& list : neighbours_) {
    std::sort(list.begin(), list.end(), lower);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
}

void OracleMembership::came_up(NodeIndex node, std::uint32_t boot) {
  nodes_[node].up = true;
  nodes_[node].boot = boot;
  nodes_[node].since = ++version_;
}

void OracleMembership::went_down(NodeIndex node) {
  nodes_[node].up = false;
  ++version_;
}

std::vector<gossip::ExchangeMachine::Peer> OracleMembership::view(NodeIndex observer) const {
  const std::vector<NodeIndex>& others = neighbours_.empty() ? by_id_ : neighbours_[observer];
  std::vector<gossip::ExchangeMachine::Peer> peers;
  peers.reserve(others.size());
  for (const NodeIndex other : others) append(peers, observer, other);
  return peers;
}

void OracleMembership::append(std::vector<gossip::ExchangeMachine::Peer>& peers, NodeIndex observer,
                              NodeIndex other) const {
  const Node& node = nodes_[other];
  if (other == observer || !node.up || network_.separated(observer, other)) return;
  peers.push_back({node.id, incarnation_of(node.boot), true});
}

}  // namespace kith::sim
