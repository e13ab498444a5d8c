// MembershipSource: who a simulated node may exchange with, as it sees it. The place where a real
// membership protocol takes over; until then OracleMembership knows the truth and nodes look at it
// with a delay. Thread: the simulation's.
#pragma once

#include <cstdint>
#include <vector>

#include "gossip/exchange/exchange.h"
#include "gossip/sim/event_queue.h"
#include "gossip/sim/network.h"

namespace kith::sim {

class MembershipSource {
 public:
  virtual ~MembershipSource() = default;
  virtual void came_up(NodeIndex node, std::uint32_t boot) = 0;
  virtual void went_down(NodeIndex node) = 0;
  // The network was cut or healed.
  virtual void network_changed() = 0;
  // Rises with every change of anybody's view.
  [[nodiscard]] virtual std::uint64_t version() const = 0;
  // The version at which this node's present boot became known: who has seen less does not know it
  // yet.
  [[nodiscard]] virtual std::uint64_t known_since(NodeIndex node) const = 0;
  // Sorted by id, the observer excluded.
  [[nodiscard]] virtual std::vector<gossip::ExchangeMachine::Peer> view(
      NodeIndex observer) const = 0;
};

class OracleMembership final : public MembershipSource {
 public:
  // `network` outlives this. `view_max` > 0: a node knows about so many others only, a fixed random
  // graph in which knowing is mutual (as the active and passive views of a large swarm); 0:
  // everybody.
  OracleMembership(std::uint32_t nodes, const Network& network, std::uint32_t view_max,
                   std::uint64_t seed);

  void came_up(NodeIndex node, std::uint32_t boot) override;
  void went_down(NodeIndex node) override;
  void network_changed() override { ++version_; }
  [[nodiscard]] std::uint64_t version() const override { return version_; }
  [[nodiscard]] std::uint64_t known_since(NodeIndex node) const override {
    return nodes_[node].since;
  }
  [[nodiscard]] std::vector<gossip::ExchangeMachine::Peer> view(NodeIndex observer) const override;

 private:
  struct Node {
    NodeId id;
    std::uint32_t boot = 0;
    bool up = false;
    std::uint64_t since = 0;
  };
  void append(std::vector<gossip::ExchangeMachine::Peer>& peers, NodeIndex observer,
              NodeIndex other) const;

  const Network& network_;
  std::vector<Node> nodes_;
  std::vector<NodeIndex> by_id_;  // all, sorted by id
  std::vector<std::vector<NodeIndex>>
      neighbours_;  // empty: everybody knows everybody; else sorted by id
  std::uint64_t version_ = 1;
};

}  // namespace kith::sim
