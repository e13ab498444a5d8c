#include "gossip/exchange/exchange_context.h"

#include <algorithm>

namespace kith::gossip {

const Peer* ExchangeContext::find_peer(const NodeId& id) const {
  const auto it =
      std::lower_bound(peers.begin(), peers.end(), id,
                       [](const Peer& peer, const NodeId& key) { return peer.id < key; });
  return it != peers.end() && it->id == id ? &*it : nullptr;
}

void ExchangeContext::invalid(const NodeId& from, const ExchangeId& e, FragmentIndex fragment) {
  ++counters.invalid;
  ExchangeEvent event;
  event.kind = ExchangeEvent::Kind::kInvalid;
  event.e = e;
  event.peer = from;
  event.fragment = fragment;
  events.push_back(event);
}

}  // namespace kith::gossip
