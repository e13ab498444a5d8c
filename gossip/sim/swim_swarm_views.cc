// Partial views around the machines of a large swarm, as the daemon has them above
// `partial_view_above` members: links only with the active view, which alone is probed and gossiped
// with.
#include <string>
#include <utility>

#include "gossip/sim/aggregates.h"
#include "gossip/sim/node_ids.h"
#include "gossip/sim/swim_swarm.h"

namespace kith::sim {

void SwimSwarm::make_view(NodeIndex node) {
  Node& n = nodes_[node];
  const std::string label = "view" + std::to_string(node) + "." + std::to_string(n.boot);
  n.view = std::make_unique<gossip::PartialView>(
      gossip::PartialViewSettings::preset(swim_.probe_interval), n.swim->own(), authority_,
      random_.fork(label), host_.now());
  n.swim->set_neighbours(std::vector<NodeId>{});
}

// What the daemon tells the view after each turn, and what it takes from it.
void SwimSwarm::turn_view(NodeIndex node, const std::vector<gossip::SwimEvent>& events) {
  using Kind = gossip::SwimEvent::Kind;
  Node& n = nodes_[node];
  for (const gossip::SwimEvent& event : events) {
    const gossip::SwimMember* member = n.swim->find(event.id);
    if (member == nullptr) continue;
    if (!believed_here(member->state())) {
      n.view->on_gone(host_.now(), event.id, member->record().incarnation);
    } else if (event.kind == Kind::kJoined || event.kind == Kind::kReturned) {
      n.view->offer(member->record());
    }
  }
  if (n.view->take_changed()) n.swim->set_neighbours(n.view->active());
  for (gossip::SwimOutgoing& out : n.view->take_outgoing()) {
    const NodeIndex to = index_of(out.to);
    if (to < nodes_.size() && to != node) post(node, to, std::move(out.message));
  }
  if (n.view->isolated()) join_soon(node, std::chrono::seconds(1));
}

void SwimSwarm::lose_view_links(NodeIndex node, Duration noticed_after) {
  const NodeId id = node_id(node);
  for (NodeIndex i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].view == nullptr || i == node) continue;
    for (const NodeId& neighbour : nodes_[i].view->active()) {
      if (neighbour != id) continue;
      push(host_.now() + noticed_after, EventKind::kSwimLinkLost, i, node);
    }
  }
}

ViewGraph SwimSwarm::view_graph(bool active, bool passive) const {
  // Numbered among those who are up.
  std::vector<NodeIndex> number(nodes_.size(), kNobody);
  NodeIndex count = 0;
  for (NodeIndex i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].view != nullptr) number[i] = count++;
  }
  ViewGraph graph(count);
  const auto add = [&](NodeIndex from, const std::vector<NodeId>& ids) {
    for (const NodeId& id : ids) {
      if (number[index_of(id)] != kNobody) graph[number[from]].push_back(number[index_of(id)]);
    }
  };
  for (NodeIndex i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].view == nullptr) continue;
    if (active) add(i, nodes_[i].view->active());
    if (passive) add(i, nodes_[i].view->passive());
  }
  return graph;
}

std::string SwimSwarm::views_at_rest() const {
  Random unused(1);
  const ViewGraph active = view_graph(true, false);
  if (const auto found = check_symmetric(active)) return found->invariant + ": " + found->text;
  if (const auto found = check_connected(active, 0.0, unused))
    return found->invariant + ": " + found->text;
  return {};
}

}  // namespace kith::sim
