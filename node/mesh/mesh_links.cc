#include "node/mesh/mesh_links.h"

#include <algorithm>

namespace kith::node {

bool LinkTable::bind(const LinkKey& key, const NodeId& peer) {
  if (key.dealer != 0)
    dealers_[key.dealer] = peer;
  else
    routes_[key.routing_id] = peer;
  auto& links = peers_[peer];
  if (std::find(links.begin(), links.end(), key) == links.end()) links.push_back(key);
  return links.size() == 1;
}

std::optional<NodeId> LinkTable::unbind(const LinkKey& key) {
  const NodeId* found =
      key.dealer != 0 ? peer_of_dealer(key.dealer) : peer_of_route(key.routing_id);
  if (found == nullptr) return std::nullopt;
  const NodeId peer = *found;
  if (key.dealer != 0)
    dealers_.erase(key.dealer);
  else
    routes_.erase(key.routing_id);
  auto& links = peers_[peer];
  links.erase(std::remove(links.begin(), links.end(), key), links.end());
  if (!links.empty()) return std::nullopt;
  peers_.erase(peer);
  return peer;
}

const NodeId* LinkTable::peer_of_dealer(std::uint64_t number) const {
  const auto it = dealers_.find(number);
  return it == dealers_.end() ? nullptr : &it->second;
}

const NodeId* LinkTable::peer_of_route(const std::string& routing_id) const {
  const auto it = routes_.find(routing_id);
  return it == routes_.end() ? nullptr : &it->second;
}

const LinkKey* LinkTable::link_to(const NodeId& peer) const {
  const auto it = peers_.find(peer);
  return it == peers_.end() ? nullptr : &it->second.front();
}

std::size_t LinkTable::links_of(const NodeId& peer) const {
  const auto it = peers_.find(peer);
  return it == peers_.end() ? 0 : it->second.size();
}

}  // namespace kith::node
