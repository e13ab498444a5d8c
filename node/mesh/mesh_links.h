// LinkTable: through which connections each node can be reached. A node may have several (both
// sides dialled); messages to it keep to one of them as long as that one lives, so that none
// overtakes another on a faster path. Pure bookkeeping, no socket. Thread: the Mesh's owner.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"

namespace kith::node {

// One connection: a DEALER of ours (by number), or a connection to our ROUTER (by routing id).
struct LinkKey {
  std::uint64_t dealer = 0;  // 0: a route
  std::string routing_id;
  bool operator==(const LinkKey&) const = default;
  static LinkKey of_dealer(std::uint64_t number) { return {number, {}}; }
  static LinkKey of_route(std::string routing_id) { return {0, std::move(routing_id)}; }
};

class LinkTable {
 public:
  // True: the node had no link before.
  bool bind(const LinkKey& key, const NodeId& peer);
  // Nullopt: unknown key, or the node has another link left. Else the node that is unreachable now.
  std::optional<NodeId> unbind(const LinkKey& key);

  [[nodiscard]] const NodeId* peer_of_dealer(std::uint64_t number) const;
  [[nodiscard]] const NodeId* peer_of_route(const std::string& routing_id) const;
  // The link that messages to this node take; null: none.
  [[nodiscard]] const LinkKey* link_to(const NodeId& peer) const;
  [[nodiscard]] std::size_t links_of(const NodeId& peer) const;
  [[nodiscard]] std::size_t route_count() const { return routes_.size(); }

 private:
  std::unordered_map<std::uint64_t, NodeId> dealers_;
  std::unordered_map<std::string, NodeId> routes_;
  std::unordered_map<NodeId, std::vector<LinkKey>, NodeIdHasher>
      peers_;  // never empty; the first one is in use
};

}  // namespace kith::node
