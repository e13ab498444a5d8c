#include "node/daemon/peer_links.h"

#include <algorithm>
#include <utility>

#include "node/mesh/mesh.h"

namespace kith::node {

PeerLinks::Wires PeerLinks::wires_of(Mesh& mesh) {
  return {[&mesh](const NodeId& id) { return mesh.linked(id); },
          [&mesh] { return mesh.links_max(); },
          [&mesh](const std::string& address) { mesh.dial(address); },
          [&mesh](const std::string& address) { mesh.undial(address); }};
}

void PeerLinks::keep_all(const std::vector<Peer>& peers, TimePoint now) {
  std::set<NodeId> wanted;
  for (const Peer& peer : peers) wanted.insert(peer.id);
  std::vector<NodeId> gone;
  for (const auto& [id, link] : links_)
    if (!wanted.contains(id)) gone.push_back(id);
  for (const NodeId& id : gone) drop(id);
  for (const bool living : {true, false})
    for (const Peer& peer : peers)
      if (peer.living == living) keep(peer, now);
  next_ = TimePoint::max();
  for (const auto& [id, link] : links_)
    if (link.dial_at) next_ = std::min(next_, *link.dial_at);
}

void PeerLinks::keep(const Peer& peer, TimePoint now) {
  Link& link = links_[peer.id];
  if (!link.dialled.empty() && link.dialled != peer.address) hang_up(peer.id, link);
  if (peer.living) dead_.erase(peer.id);
  if (!peer.living && !link.dialled.empty()) dead_.insert(peer.id);
  if (!link.dialled.empty() || wires_.linked(peer.id)) {
    link.dial_at.reset();
    return;
  }
  if (!link.dial_at) link.dial_at = peer.at_once ? now : now + kDialPatience;
  const bool due = now >= *link.dial_at;
  if (due && (dials_ < wires_.links_max() || (peer.living && make_room()))) return dial(link, peer);
  if (due) link.dial_at = now + kDialPatience;
  next_ = std::min(next_, *link.dial_at);
}

void PeerLinks::dial(Link& link, const Peer& peer) {
  link.dialled = peer.address;
  link.dial_at.reset();
  ++dials_;
  ++users_[peer.address];
  if (!peer.living) dead_.insert(peer.id);
  wires_.dial(peer.address);
}

void PeerLinks::hang_up(const NodeId& id, Link& link) {
  dead_.erase(id);
  const std::string address = std::exchange(link.dialled, std::string());
  --dials_;
  const auto users = users_.find(address);
  if (--users->second > 0) return;
  users_.erase(users);
  wires_.undial(address);
}

void PeerLinks::drop(const NodeId& id) {
  const auto it = links_.find(id);
  if (it == links_.end()) return;
  if (!it->second.dialled.empty()) hang_up(id, it->second);
  links_.erase(it);
}

// Of one who is dead.
bool PeerLinks::make_room() {
  if (dead_.empty()) return false;
  const NodeId id = *dead_.begin();
  hang_up(id, links_.at(id));
  return true;
}

}  // namespace kith::node
