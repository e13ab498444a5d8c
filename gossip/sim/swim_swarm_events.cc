// One handler per kind of event, and what is around every call into a machine.
#include <algorithm>
#include <string>
#include <utility>

#include "gossip/sim/node_ids.h"
#include "gossip/sim/swim_swarm.h"
#include "gossip/sim/wire_size.h"

namespace kith::sim {
namespace {

using schema::MemberState;

constexpr Duration kRetryJoin = std::chrono::seconds(1);
constexpr Duration kAskSeeds = std::chrono::seconds(5);
constexpr NodeIndex kSeeds = 3;
constexpr Duration kRetryDial = std::chrono::milliseconds(500);
constexpr Duration kFiguresEvery = std::chrono::seconds(1);
constexpr unsigned kDialBackOffMax = 16;
constexpr std::size_t kLieAccusations = 32;

}  // namespace

bool SwimSwarm::stale(const Event& event) const {
  if (event.kind == EventKind::kSwimDeliver) return false;
  const Node& node = nodes_[event.node];
  if (node.swim == nullptr || event.life != node.boot) return true;
  return event.kind == EventKind::kSwimTick && event.time != node.tick_at;
}

void SwimSwarm::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::kSwimTick:
      return on_tick(event.node);
    case EventKind::kSwimDeliver:
      return on_deliver(event.detail);
    case EventKind::kSwimJoin:
      return on_join(event.node);
    case EventKind::kSwimDial:
      return on_dial(event.node);
    case EventKind::kSwimLinkLost:
      return on_link_lost(event.node, event.detail);
    case EventKind::kSwimFigures:
      return on_figures(event.node);
    case EventKind::kSwimLie:
      return on_lie(event.node);
    default:
      return;
  }
}

void SwimSwarm::trace(const Event& event, TraceHash& hash) const {
  if (event.kind != EventKind::kSwimDeliver) return;
  const InFlight& flight = messages_[event.detail];
  hash.add((static_cast<std::uint64_t>(flight.message.index()) << 32) | flight.from);
  hash.add((static_cast<std::uint64_t>(flight.from_boot) << 32) | flight.to_boot);
}

std::string SwimSwarm::describe(const Event& event) const {
  if (event.kind != EventKind::kSwimDeliver || event.detail >= messages_.size()) return {};
  const InFlight& flight = messages_[event.detail];
  return " from node " + std::to_string(flight.from) + " to node " + std::to_string(flight.to);
}

void SwimSwarm::on_deliver(std::uint32_t slot) {
  const InFlight flight = std::move(messages_[slot]);
  free_slots_.push_back(slot);
  Node& to = nodes_[flight.to];
  if (to.swim == nullptr || to.boot != flight.to_boot ||
      nodes_[flight.from].boot != flight.from_boot)
    return;
  if (const auto* view = std::get_if<schema::View>(&flight.message)) {
    if (to.view != nullptr) to.view->on_view(host_.now(), node_id(flight.from), *view);
  } else {
    to.swim->on_message(host_.now(), node_id(flight.from), flight.message);
  }
  drain(flight.to);
}

void SwimSwarm::on_tick(NodeIndex node) {
  gossip::Swim& swim = *nodes_[node].swim;
  nodes_[node].tick_at = TimePoint::max();
  if (next_deadline(node) <= host_.now()) {
    swim.tick(host_.now());
    if (nodes_[node].view != nullptr) nodes_[node].view->tick(host_.now());
    if (next_deadline(node) <= host_.now()) {
      oracle_.report("no handler blocks", "the membership of node " + std::to_string(node) +
                                              " still has a deadline in the past after tick");
    }
  }
  if (swim.isolated()) join_soon(node, kRetryJoin);
  drain(node);
}

// ---- joining and links

void SwimSwarm::join_soon(NodeIndex node, Duration delay) {
  if (partial_ || std::exchange(nodes_[node].joining, true)) return;
  push(host_.now() + delay, EventKind::kSwimJoin, node);
}

// Whom a node was told to join: anybody as long as it knows nobody; later, for ever, one of the
// seeds in turn if that one is not a member, so that islands that started apart merge.
void SwimSwarm::on_join(NodeIndex node) {
  nodes_[node].joining = false;
  const auto count = static_cast<NodeIndex>(nodes_.size());
  const bool alone = nodes_[node].swim->count(MemberState::kAlive) == 0;
  if (never_again_ && !alone) return;
  const auto contact =
      static_cast<NodeIndex>(random_.below(alone ? count : std::min(count, kSeeds)));
  const gossip::SwimMember* member = nodes_[node].swim->find(node_id(contact));
  const bool known = member != nullptr && member->state() == MemberState::kAlive &&
                     !(views_ && nodes_[node].view->isolated());
  if (contact != node && !known && reachable(node, contact)) welcome(node, contact);
  join_soon(node, alone ? kRetryJoin / 4 : kAskSeeds);
}

// HELLO and WELCOME: both records, and up to 64 of those whom the contact knows.
void SwimSwarm::welcome(NodeIndex joiner, NodeIndex contact) {
  connect(joiner, contact);
  if (views_) nodes_[joiner].view->join(host_.now(), nodes_[contact].swim->own());
  const auto& members = nodes_[contact].swim->members();
  std::vector<NodeId> known;
  for (const auto& [id, member] : members) {
    if (member.state() == MemberState::kAlive && index_of(id) != joiner) known.push_back(id);
  }
  random_.shuffle(std::span(known));
  if (known.size() > schema::kWelcomeRecordsMax) known.resize(schema::kWelcomeRecordsMax);
  for (const NodeId& id : known)
    nodes_[joiner].swim->on_record(host_.now(), members.at(id).record(), false);
  drain(joiner);
}

void SwimSwarm::connect(NodeIndex a, NodeIndex b) {
  const TimePoint now = host_.now();
  for (const auto& [here, there] : {std::pair(a, b), std::pair(b, a)}) {
    nodes_[here].swim->on_record(now, nodes_[there].swim->own(), true);
    if (links_) {
      nodes_[here].linked[there] = true;
      nodes_[here].swim->on_link(now, node_id(there), true);
    }
    drain(here);
  }
}

void SwimSwarm::want_link(NodeIndex node, NodeIndex other) {
  Node& n = nodes_[node];
  if (!links_ || never_again_ || n.linked[other]) return;
  if (std::find(n.undialled.begin(), n.undialled.end(), other) == n.undialled.end())
    n.undialled.push_back(other);
  n.dial_failures = 0;
  if (std::exchange(n.dialling, true)) return;
  push(host_.now() + 2 * network_.delay_max(), EventKind::kSwimDial, node);
}

void SwimSwarm::on_dial(NodeIndex node) {
  Node& n = nodes_[node];
  n.dialling = false;
  const std::vector<NodeIndex> wanted = std::exchange(n.undialled, {});
  std::vector<NodeIndex> later;
  for (const NodeIndex other : wanted) {
    const gossip::SwimMember* member = n.swim->find(node_id(other));
    if (n.linked[other] || member == nullptr || member->state() == MemberState::kLeft) continue;
    if (reachable(node, other)) {
      connect(node, other);
    } else {
      later.push_back(other);
    }
  }
  for (const NodeIndex other : later) {
    if (std::find(n.undialled.begin(), n.undialled.end(), other) == n.undialled.end())
      n.undialled.push_back(other);
  }
  if (n.undialled.empty() || n.dialling) return;
  n.dialling = true;
  n.dial_failures = std::min(n.dial_failures + 1, kDialBackOffMax);
  push(host_.now() + kRetryDial * static_cast<int>(n.dial_failures), EventKind::kSwimDial, node);
}

void SwimSwarm::on_link_lost(NodeIndex node, NodeIndex other) {
  Node& n = nodes_[node];
  if (views_) {
    if (!reachable(node, other)) n.view->on_link_lost(host_.now(), node_id(other));
    return drain(node);
  }
  if (!n.linked[other]) return;
  if (reachable(node, other)) return connect(node, other);  // the transport has dialled again
  n.linked[other] = false;
  n.swim->on_link(host_.now(), node_id(other), false);
  want_link(node, other);
  drain(node);
}

// ---- figures and lies

void SwimSwarm::on_figures(NodeIndex node) {
  Node& n = nodes_[node];
  schema::MemberRecord own = n.swim->own();
  own.step += 20;
  own.samples += 640;
  own.steps_per_second = 20.0;
  n.swim->set_own(host_.now(), own);
  if (n.view != nullptr) n.view->set_own(n.swim->own());
  drain(node);
  push(host_.now() + kFiguresEvery, EventKind::kSwimFigures, node);
}

// Signed accusations of everybody, in turn so many, to everybody.
void SwimSwarm::on_lie(NodeIndex node) {
  if (!lying_) return;
  Node& n = nodes_[node];
  schema::Gossip gossip;
  gossip.news.records.push_back(n.swim->own());
  const auto count = static_cast<NodeIndex>(nodes_.size());
  for (NodeIndex i = 0; i < count && gossip.news.accusations.size() < kLieAccusations; ++i) {
    const NodeIndex subject = n.next_lie++ % count;
    const gossip::SwimMember* member = n.swim->find(node_id(subject));
    if (subject == node || member == nullptr) continue;
    schema::Accusation accusation{
        node_id(subject), member->record().incarnation, node_id(node), {}};
    authority_.sign(accusation);
    gossip.news.accusations.push_back(accusation);
  }
  for (NodeIndex to = 0; to < count; ++to) {
    if (to != node && up(to)) post(node, to, gossip);
  }
  push(host_.now() + swim_.probe_interval, EventKind::kSwimLie, node);
}

// ---- around every call

void SwimSwarm::drain(NodeIndex node) {
  gossip::Swim& swim = *nodes_[node].swim;
  std::vector<gossip::SwimOutgoing> outgoing = swim.take_outgoing();
  const std::size_t bound = 64 + nodes_.size();
  if (outgoing.size() > bound) {
    oracle_.report("no handler blocks", "one call into the membership of node " +
                                            std::to_string(node) + " produced " +
                                            std::to_string(outgoing.size()) +
                                            " messages, the bound is " + std::to_string(bound));
  }
  for (gossip::SwimOutgoing& out : outgoing) {
    const NodeIndex to = index_of(out.to);
    if (to >= nodes_.size() || to == node || node_id(to) != out.to) {
      oracle_.report("addresses", "the membership of node " + std::to_string(node) +
                                      " sent a message to " + out.to.short_hex() +
                                      ", which is no other node");
      continue;
    }
    post(node, to, std::move(out.message));
  }
  const std::vector<gossip::SwimEvent> events = swim.take_events();
  for (const gossip::SwimEvent& event : events) note(node, event);
  if (nodes_[node].view != nullptr) turn_view(node, events);
  arm(node);
}

void SwimSwarm::note(NodeIndex node, const gossip::SwimEvent& event) {
  using Kind = gossip::SwimEvent::Kind;
  if (event.kind == Kind::kRefuted) return;
  if (event.kind == Kind::kUsurped) {
    return oracle_.report("one life at a time", "node " + std::to_string(node) +
                                                    " believes that another process has its key");
  }
  const NodeIndex subject = index_of(event.id);
  believe(node, subject);
  if (event.kind == Kind::kJoined || event.kind == Kind::kReturned) {
    if (links_) {
      const gossip::SwimMember* member = nodes_[node].swim->find(event.id);
      const bool present = member != nullptr && up(subject) &&
                           boot_of(member->record().incarnation) == nodes_[subject].boot;
      if (!present) nodes_[node].linked[subject] = false;
    }
    want_link(node, subject);
  }
  if (event.kind != Kind::kRecord) host_.view_changed(node);
}

void SwimSwarm::believe(NodeIndex node, NodeIndex subject) {
  const gossip::SwimMember* member = nodes_[node].swim->find(node_id(subject));
  oracle_.saw(host_.now(), node, subject,
              member == nullptr ? std::nullopt : std::optional(belief_of(*member)));
}

void SwimSwarm::post(NodeIndex from, NodeIndex to, schema::Message message) {
  ++traffic_.messages;
  traffic_.bytes += control_bytes(message);
  const Network::Route route = network_.route(from, to);
  if (route.copies == 0 || !up(to)) return;
  if (route.copies == 2) fly(from, to, route.delay[1], message);
  fly(from, to, route.delay[0], std::move(message));
}

void SwimSwarm::fly(NodeIndex from, NodeIndex to, Duration delay, schema::Message message) {
  std::uint32_t slot = 0;
  if (free_slots_.empty()) {
    slot = static_cast<std::uint32_t>(messages_.size());
    messages_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  messages_[slot] = {from, to, nodes_[from].boot, nodes_[to].boot, std::move(message)};
  push(host_.now() + delay, EventKind::kSwimDeliver, to, slot);
}

TimePoint SwimSwarm::next_deadline(NodeIndex node) const {
  const Node& n = nodes_[node];
  const TimePoint swim = n.swim->next_deadline();
  return n.view == nullptr ? swim : std::min(swim, n.view->next_deadline());
}

void SwimSwarm::arm(NodeIndex node) {
  Node& n = nodes_[node];
  const TimePoint deadline = std::max(next_deadline(node), host_.now());
  if (deadline >= n.tick_at || deadline == TimePoint::max()) return;
  n.tick_at = deadline;
  push(deadline, EventKind::kSwimTick, node);
}

void SwimSwarm::push(TimePoint at, EventKind kind, NodeIndex node, std::uint32_t detail) {
  Event event;
  event.time = at;
  event.kind = kind;
  event.node = node;
  event.detail = detail;
  event.life = nodes_[node].boot;
  host_.schedule(event);
}

}  // namespace kith::sim
