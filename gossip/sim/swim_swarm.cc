// Set-up, lives, and what others may ask of the swarm.
#include "gossip/sim/swim_swarm.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "gossip/sim/node_ids.h"

namespace kith::sim {
namespace {

using schema::MemberState;

constexpr std::uint32_t kFullTableNodes = 2000;
constexpr std::uint32_t kPartialTable = 96;
// A link that says nothing is given up after so long (the transport's heartbeats).
constexpr Duration kHeartbeatTimeout = std::chrono::seconds(10);
constexpr Duration kFiguresEvery = std::chrono::seconds(1);
// The loop notices by itself that it stood still when a turn took so many probe intervals.
constexpr int kPauseIntervals = 5;

double log10_at_least_1(double n) { return std::max(1.0, std::log10(n)); }

unsigned scaled(unsigned mult, double ratio) {
  return static_cast<unsigned>(std::ceil(mult * ratio - 1e-9));
}

void plant(gossip::SwimSettings& swim, MembershipFault fault) {
  switch (fault) {
    case MembershipFault::kNone:
      return;
    case MembershipFault::kOneAccuser:
      swim.accusers_to_convict = 1;
      swim.suspicion_mult = 1;
      return;
    case MembershipFault::kShortSuspicion:
      swim.suspicion_mult = 1;
      swim.suspicion_max_factor = 1;
      swim.accusers_to_convict = 1;
      return;
    case MembershipFault::kLongSuspicion:
      swim.suspicion_mult *= 4;
      return;
    case MembershipFault::kMuteGossip:
      swim.news_bytes_max = 0;
      swim.gossip_interval *= 50;
      swim.sync_interval *= 10;
      return;
    case MembershipFault::kNoReturn:
      swim.dead_retry = std::chrono::hours(24);
      swim.forget_after = std::chrono::hours(48);
      return;
  }
}

}  // namespace

std::uint32_t table_size(const SimulationSettings& settings) {
  const std::uint32_t all = settings.nodes - 1;
  if (settings.table_max > 0) return std::min(settings.table_max, all);
  return settings.nodes <= kFullTableNodes ? all : kPartialTable;
}

gossip::SwimSettings swim_settings(const SimulationSettings& settings) {
  const double delay = settings.latency_steps * to_seconds(kStepTime);
  const double probe =
      settings.probe_seconds > 0.0 ? settings.probe_seconds : std::max(0.2, 10.0 * delay);
  gossip::SwimSettings swim = gossip::SwimSettings::preset(from_seconds(probe));
  const double nodes = settings.nodes;
  const double table = 1.0 + table_size(settings);
  if (table < nodes) {
    swim.suspicion_mult =
        scaled(swim.suspicion_mult, log10_at_least_1(nodes) / log10_at_least_1(table));
    swim.retransmit_mult = scaled(
        swim.retransmit_mult, std::ceil(std::log10(nodes + 1)) / std::ceil(std::log10(table + 1)));
    // Tables differ by design: digests would repair what is not broken.
    swim.sync_interval = std::chrono::hours(1000);
  }
  return swim;
}

MembershipBounds membership_bounds(const SimulationSettings& settings) {
  const gossip::SwimSettings swim = swim_settings(settings);
  const double table = 1.0 + table_size(settings);
  MembershipBounds bounds;
  bounds.tick = swim.gossip_interval;
  bounds.suspicion_min =
      from_seconds(swim.suspicion_mult * log10_at_least_1(table) * to_seconds(swim.probe_interval));
  bounds.suspicion_max = bounds.suspicion_min * static_cast<int>(swim.suspicion_max_factor);
  bounds.pause_survived = swim.probe_interval * static_cast<int>(swim.suspicion_mult) * 3 / 4;
  bounds.pause_noticed = kPauseIntervals * swim.probe_interval;
  bounds.log2_nodes = std::log2(std::max(2.0, static_cast<double>(settings.nodes)));
  bounds.log10_nodes = std::log10(static_cast<double>(settings.nodes));
  return bounds;
}

SwimSwarm::SwimSwarm(const SimulationSettings& settings, Network& network, MembershipOracle& oracle,
                     SwarmHost& host)
    : settings_(settings),
      swim_(swim_settings(settings)),
      partial_(table_size(settings) + 1 < settings.nodes),
      links_(settings.nodes <= settings.partial_view_above && !partial_),
      views_(!links_ && !partial_),
      lying_(settings.liars > 0),
      never_again_(settings.membership_fault == MembershipFault::kNoReturn),
      network_(network),
      oracle_(oracle),
      host_(host),
      authority_(settings.seed),
      random_(Random(settings.seed).fork("membership")),
      nodes_(settings.nodes) {
  plant(swim_, settings.membership_fault);
  if (partial_) draw_contacts();
}

SwimSwarm::~SwimSwarm() = default;

// A union of random cycles through all nodes: connected, mutual, two contacts each per cycle.
void SwimSwarm::draw_contacts() {
  const std::uint32_t wanted =
      table_size(settings_) - std::min(kWatched, table_size(settings_) / 2);
  std::vector<NodeIndex> cycle(settings_.nodes);
  std::iota(cycle.begin(), cycle.end(), NodeIndex{0});
  for (std::uint32_t c = 0; c < (wanted + 1) / 2; ++c) {
    random_.shuffle(std::span(cycle));
    for (std::uint32_t i = 0; i < settings_.nodes; ++i) {
      const NodeIndex next = cycle[(i + 1) % settings_.nodes];
      nodes_[cycle[i]].contacts.push_back(next);
      nodes_[next].contacts.push_back(cycle[i]);
    }
  }
  for (Node& node : nodes_) {
    std::sort(node.contacts.begin(), node.contacts.end());
    node.contacts.erase(std::unique(node.contacts.begin(), node.contacts.end()),
                        node.contacts.end());
  }
}

// ---- lives

schema::MemberRecord SwimSwarm::first_record(NodeIndex node) const {
  char text[24];
  schema::MemberRecord record;
  record.id = node_id(node);
  record.incarnation = incarnation_of(nodes_[node].boot);
  record.boot_nonce = (std::uint64_t{nodes_[node].boot} << 32) | node;
  std::snprintf(text, sizeof text, "node-%u", node);
  record.name = text;
  std::snprintf(text, sizeof text, "[::%x]:7400", node);
  record.control_address = text;
  std::snprintf(text, sizeof text, "[::%x]:7401", node);
  record.bulk_address = text;
  std::snprintf(text, sizeof text, "[::%x]:7480", node);
  record.http_address = text;
  record.run_state = schema::RunState::kTraining;
  record.loss = record.accuracy = std::numeric_limits<double>::quiet_NaN();
  record.version_text = "0.1.0";
  return record;
}

void SwimSwarm::make_machine(NodeIndex node) {
  Node& n = nodes_[node];
  ++n.boot;
  gossip::SwimSettings swim = swim_;
  if (partial_) {
    std::size_t watched = kWatched;
    for (const NodeIndex contact : n.contacts) watched -= contact < kWatched ? 1 : 0;
    swim.members_max = n.contacts.size() + watched - (node < kWatched ? 1 : 0);
  }
  const std::string label = "swim" + std::to_string(node) + "." + std::to_string(n.boot);
  n.swim = std::make_unique<gossip::Swim>(swim, first_record(node), authority_, random_.fork(label),
                                          host_.now());
  if (views_) make_view(node);
  if (links_) n.linked.assign(settings_.nodes, false);
  oracle_.came_up(host_.now(), node, n.boot);
  const Duration phase(
      static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(kFiguresEvery.count()))));
  push(host_.now() + phase, EventKind::kSwimFigures, node);
  if (node < settings_.liars) push(host_.now() + swim_.probe_interval, EventKind::kSwimLie, node);
}

void SwimSwarm::know(NodeIndex node, NodeIndex other) {
  if (node == other || !up(other)) return;
  if (links_) {  // first: a link to somebody known would be tried out at once
    nodes_[node].linked[other] = true;
    nodes_[node].swim->on_link(host_.now(), node_id(other), true);
  }
  nodes_[node].swim->on_record(host_.now(), nodes_[other].swim->own(), false);
}

void SwimSwarm::know_contacts(NodeIndex node) {
  for (const NodeIndex contact : nodes_[node].contacts) know(node, contact);
  for (NodeIndex watched = 0; watched < kWatched; ++watched) know(node, watched);
  std::vector<NodeId> neighbours;
  for (const NodeIndex contact : nodes_[node].contacts) neighbours.push_back(node_id(contact));
  nodes_[node].swim->set_neighbours(std::move(neighbours));
}

void SwimSwarm::start(const std::vector<NodeIndex>& nodes) {
  for (const NodeIndex node : nodes) make_machine(node);
  std::vector<NodeIndex> by_id = nodes;
  std::sort(by_id.begin(), by_id.end(),
            [](NodeIndex a, NodeIndex b) { return node_id(a) < node_id(b); });
  for (const NodeIndex node : nodes) {
    if (partial_) {
      know_contacts(node);
    } else {
      for (const NodeIndex other : by_id) know(node, other);
    }
    if (views_) join_views(node, nodes);
    join_soon(node, network_.delay_max() + kFiguresEvery * static_cast<int>(1 + node % 5));
    drain(node);
  }
}

// As if they had come one after the other: through somebody who was there before.
void SwimSwarm::join_views(NodeIndex node, const std::vector<NodeIndex>& nodes) {
  const auto before =
      static_cast<std::uint64_t>(std::find(nodes.begin(), nodes.end(), node) - nodes.begin());
  if (before == 0) return;
  const NodeIndex contact = nodes[random_.below(before)];
  nodes_[node].view->join(host_.now(), nodes_[contact].swim->own());
}

void SwimSwarm::boot(NodeIndex node) {
  make_machine(node);
  if (partial_) {  // its data directory remembers whom it knew
    know_contacts(node);
    const auto& contacts = nodes_[node].contacts;
    const NodeIndex contact = contacts[random_.below(contacts.size())];
    if (up(contact)) connect(node, contact);
  }
  drain(node);
  join_soon(node, network_.delay_max());
}

void SwimSwarm::crash(NodeIndex node, bool silent) {
  Node& n = nodes_[node];
  const gossip::SwimCounters c = n.swim->counters();
  ended_.suspicions += c.suspicions;
  ended_.convictions += c.convictions;
  ended_.refutations += c.refutations;
  ended_.accusations_dropped += c.accusations_dropped;
  ended_.bad_signatures += c.bad_signatures;
  n.swim.reset();
  n.view.reset();
  n.tick_at = TimePoint::max();
  n.undialled.clear();
  n.dialling = n.joining = false;
  n.dial_failures = 0;
  if (views_) lose_view_links(node, silent ? kHeartbeatTimeout : network_.delay_max());
  if (links_) lose_links(node, silent ? kHeartbeatTimeout : network_.delay_max());
}

void SwimSwarm::lose_links(NodeIndex node, Duration noticed_after) {
  for (NodeIndex i = 0; i < nodes_.size(); ++i) {
    if (up(i) && nodes_[i].linked[node])
      push(host_.now() + noticed_after, EventKind::kSwimLinkLost, i, node);
  }
}

void SwimSwarm::leave(NodeIndex node) {
  nodes_[node].swim->leave(host_.now());
  drain(node);
}

void SwimSwarm::paused(NodeIndex node, Duration length) {
  if (links_ && length > kHeartbeatTimeout) lose_links(node, kHeartbeatTimeout);
}

void SwimSwarm::resumed(NodeIndex node, Duration length) {
  if (!up(node) || length < kPauseIntervals * swim_.probe_interval) return;
  nodes_[node].swim->on_own_pause(host_.now());
  drain(node);
}

// Links across the cut die when their heartbeats have been missing for long enough.
void SwimSwarm::network_cut() {
  if (!links_) return;
  for (NodeIndex a = 0; a < nodes_.size(); ++a) {
    for (NodeIndex b = 0; b < nodes_.size(); ++b) {
      if (a == b || !up(a) || !nodes_[a].linked[b] || reachable(a, b)) continue;
      push(host_.now() + kHeartbeatTimeout, EventKind::kSwimLinkLost, a, b);
    }
  }
}

bool SwimSwarm::reachable(NodeIndex a, NodeIndex b) const {
  return up(a) && up(b) && !oracle_.truth().stands_still(b, host_.now()) &&
         !network_.is_cut(a, b) && !network_.is_cut(b, a);
}

// ---- asked by others

std::vector<gossip::ExchangeMachine::Peer> SwimSwarm::view(NodeIndex observer) const {
  std::vector<gossip::ExchangeMachine::Peer> peers;
  if (!up(observer)) return peers;
  peers.reserve(nodes_[observer].swim->members().size());
  for (const auto& [id, member] : nodes_[observer].swim->members()) {
    if (!believed_here(member.state())) continue;
    peers.push_back({id, member.record().incarnation, member.state() == MemberState::kAlive});
  }
  return peers;
}

void SwimSwarm::greet(NodeIndex to, NodeIndex from) {
  if (!up(from)) return;  // its last words
  const gossip::SwimMember* member = nodes_[to].swim->find(node_id(from));
  if (member != nullptr && boot_of(member->record().incarnation) == nodes_[from].boot) return;
  nodes_[to].swim->on_record(host_.now(), nodes_[from].swim->own(), true);
  drain(to);
}

std::string SwimSwarm::disagreement_of(NodeIndex node) const {
  const std::string who = "node " + std::to_string(node);
  std::uint32_t here = 0;
  for (const auto& [id, member] : nodes_[node].swim->members()) {
    const NodeIndex other = index_of(id);
    const bool alive = member.state() == MemberState::kAlive;
    here += alive ? 1 : 0;
    const bool right = !up(other)
                           ? !believed_here(member.state())
                           : alive && boot_of(member.record().incarnation) == nodes_[other].boot;
    if (!right)
      return who + " sees node " + std::to_string(other) + " as " +
             schema::name_of(member.state()) + " in life " +
             std::to_string(boot_of(member.record().incarnation)) + ", which is " +
             (up(other) ? "up in life " + std::to_string(nodes_[other].boot) : "down");
  }
  if (!partial_ && here + 1 != oracle_.truth().up_count())
    return who + " knows " + std::to_string(here) + " of " +
           std::to_string(oracle_.truth().up_count() - 1) + " others that are up";
  return {};
}

std::string SwimSwarm::disagreement() {
  const auto count = static_cast<NodeIndex>(nodes_.size());
  for (NodeIndex i = 0; i < count; ++i) {
    const NodeIndex node = (suspect_view_ + i) % count;
    if (!up(node)) continue;
    std::string found = disagreement_of(node);
    if (found.empty()) continue;
    suspect_view_ = node;
    return found;
  }
  return views_ ? views_at_rest() : std::string{};
}

bool SwimSwarm::views_agree() { return disagreement().empty(); }

void SwimSwarm::inspect(NodeIndex node) {
  if (!up(node)) return;
  for (const auto& [id, member] : nodes_[node].swim->members()) {
    oracle_.saw(host_.now(), node, index_of(id), belief_of(member));
  }
}

gossip::SwimCounters SwimSwarm::counters() const {
  gossip::SwimCounters sum = ended_;
  for (const Node& node : nodes_) {
    if (node.swim == nullptr) continue;
    const gossip::SwimCounters& c = node.swim->counters();
    sum.suspicions += c.suspicions;
    sum.convictions += c.convictions;
    sum.refutations += c.refutations;
    sum.accusations_dropped += c.accusations_dropped;
    sum.bad_signatures += c.bad_signatures;
  }
  return sum;
}

}  // namespace kith::sim
