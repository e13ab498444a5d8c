// SwimSwarm: the production Swim machine of every node over the simulated network, and what the
// daemon does around it: joining through somebody known, dialling members, noticing lost links, new
// figures each second, leaving in order. Also nodes that lie.
//
// A part of a simulation: the host owns time, the event queue, the network and the faults; it hands
// over the events whose kinds begin with kSwim and says who starts, dies and stands still. Rules of
// the simulated world as in simulator.h: messages never cross lives of a node.
//
// Tables: each machine knows everybody up to `table_max` = 0; else only `table_max` others, as a
// node with partial views does: contacts in a fixed random graph in which knowing is mutual, plus
// the watched nodes, which everybody knows and which alone come and go. Formulas that count members
// are scaled so that they come out as in a swarm of that size. With full tables and more than
// `partial_view_above` nodes each node keeps a PartialView beside its machine, as the daemon does.
//
// Thread: the simulation's. Costs: about 30 messages per node and simulated second at the preset
// `local`; memory about 140 bytes per entry of a table.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gossip/exchange/exchange.h"
#include "gossip/membership/partial_view.h"
#include "gossip/membership/swim.h"
#include "gossip/sim/aggregates.h"
#include "gossip/sim/event_queue.h"
#include "gossip/sim/membership_oracle.h"
#include "gossip/sim/network.h"
#include "gossip/sim/sim_authority.h"
#include "gossip/sim/simulate.h"

namespace kith::sim {

// Left is who said so itself, signed; by hearsay it is dead like others.
inline Belief belief_of(const gossip::SwimMember& member) {
  const bool hearsay = member.state() == schema::MemberState::kLeft && !member.record().left;
  return {member.record().incarnation, hearsay ? schema::MemberState::kDead : member.state()};
}

class SwarmHost {
 public:
  virtual ~SwarmHost() = default;
  [[nodiscard]] virtual TimePoint now() const = 0;
  virtual void schedule(const Event& event) = 0;
  // Who this node may exchange with has changed.
  virtual void view_changed(NodeIndex node) = 0;
};

// Watched nodes, with tables that do not hold everybody.
inline constexpr NodeIndex kWatched = 32;
// Members in a machine's table besides itself.
std::uint32_t table_size(const SimulationSettings& settings);
// Of the preset, with planted faults, for a table that stands for a swarm of `settings.nodes`.
gossip::SwimSettings swim_settings(const SimulationSettings& settings);
// What the properties are measured by: planted faults do not change it.
MembershipBounds membership_bounds(const SimulationSettings& settings);

class SwimSwarm {
 public:
  // All but `settings` outlive this.
  SwimSwarm(const SimulationSettings& settings, Network& network, MembershipOracle& oracle,
            SwarmHost& host);
  ~SwimSwarm();

  // The nodes that are up when the simulation begins: they know each other already.
  void start(const std::vector<NodeIndex>& nodes);
  // A new life, which knows nobody but whom it was told to join.
  void boot(NodeIndex node);
  // `silent`: the others' links die by their heartbeats only, as when a machine loses its power.
  void crash(NodeIndex node, bool silent);
  // It says LEAVE; the crash that follows is its end.
  void leave(NodeIndex node);
  // It stands still from now on for `length`, and runs on.
  void paused(NodeIndex node, Duration length);
  void resumed(NodeIndex node, Duration length);
  void network_cut();

  [[nodiscard]] bool stale(const Event& event) const;
  void handle(const Event& event);
  void postpone_tick(NodeIndex node, TimePoint until) { nodes_[node].tick_at = until; }
  void trace(const Event& event, TraceHash& hash) const;
  [[nodiscard]] std::string describe(const Event& event) const;

  // For the exchange. Sorted by id, the observer excluded.
  [[nodiscard]] std::vector<gossip::ExchangeMachine::Peer> view(NodeIndex observer) const;
  // A first message of `from` to `to` is always preceded by its record, as in HELLO.
  void greet(NodeIndex to, NodeIndex from);

  // Every live node sees exactly the live ones as alive, in their present lives.
  [[nodiscard]] bool views_agree();
  // The first difference, in words; empty: none.
  [[nodiscard]] std::string disagreement();
  // Views of those who are up, renumbered among them; empty without partial views.
  [[nodiscard]] ViewGraph view_graph(bool active, bool passive) const;
  [[nodiscard]] bool has_views() const { return views_; }
  // Property 8, when all is quiet: active views symmetric and connected. What differs, in words.
  [[nodiscard]] std::string views_at_rest() const;
  // Looks through one node's whole table: a change without an event is found too.
  void inspect(NodeIndex node);

  struct Traffic {
    std::uint64_t messages = 0, bytes = 0;  // sent, encoded headers
  };
  [[nodiscard]] const Traffic& traffic() const { return traffic_; }
  [[nodiscard]] gossip::SwimCounters counters() const;  // over all nodes and lives
  [[nodiscard]] const gossip::Swim* machine(NodeIndex node) const {
    return nodes_[node].swim.get();
  }
  [[nodiscard]] bool is_watched(NodeIndex node) const { return !partial_ || node < kWatched; }
  void stop_lying() { lying_ = false; }

 private:
  struct Node {
    std::unique_ptr<gossip::Swim> swim;         // null: down
    std::unique_ptr<gossip::PartialView> view;  // null: down, or links with all
    std::uint32_t boot = 0;
    TimePoint tick_at = TimePoint::max();
    std::vector<NodeIndex> undialled;  // known, without a link
    bool dialling = false;             // an event is under way
    bool joining = false;              // ... likewise
    unsigned dial_failures = 0;
    std::vector<bool> linked;         // [node]; empty: links are not simulated
    std::vector<NodeIndex> contacts;  // with partial tables
    std::uint64_t figures = 0;
    NodeIndex next_lie = 0;
  };
  struct InFlight {
    NodeIndex from = 0, to = 0;
    std::uint32_t from_boot = 0, to_boot = 0;
    schema::Message message;
  };

  void draw_contacts();
  void make_machine(NodeIndex node);
  void join_views(NodeIndex node, const std::vector<NodeIndex>& nodes);
  void know(NodeIndex node, NodeIndex other);  // from the start on
  void know_contacts(NodeIndex node);
  [[nodiscard]] schema::MemberRecord first_record(NodeIndex node) const;
  [[nodiscard]] bool up(NodeIndex node) const { return nodes_[node].swim != nullptr; }
  [[nodiscard]] bool reachable(NodeIndex a, NodeIndex b) const;

  void on_deliver(std::uint32_t slot);
  void on_tick(NodeIndex node);
  void on_join(NodeIndex node);
  void on_dial(NodeIndex node);
  void on_link_lost(NodeIndex node, NodeIndex other);
  void on_figures(NodeIndex node);
  void on_lie(NodeIndex node);
  void join_soon(NodeIndex node, Duration delay);
  void welcome(NodeIndex joiner, NodeIndex contact);
  void connect(NodeIndex a, NodeIndex b);
  void want_link(NodeIndex node, NodeIndex other);
  void lose_links(NodeIndex node, Duration noticed_after);

  void make_view(NodeIndex node);
  void turn_view(NodeIndex node, const std::vector<gossip::SwimEvent>& events);
  void lose_view_links(NodeIndex node, Duration noticed_after);
  [[nodiscard]] TimePoint next_deadline(NodeIndex node) const;

  void drain(NodeIndex node);
  void note(NodeIndex node, const gossip::SwimEvent& event);
  void believe(NodeIndex node, NodeIndex subject);
  void post(NodeIndex from, NodeIndex to, schema::Message message);
  void fly(NodeIndex from, NodeIndex to, Duration delay, schema::Message message);
  void arm(NodeIndex node);
  void push(TimePoint at, EventKind kind, NodeIndex node, std::uint32_t detail = 0);
  [[nodiscard]] std::string disagreement_of(NodeIndex node) const;

  SimulationSettings settings_;
  gossip::SwimSettings swim_;
  bool partial_;
  bool links_;
  bool views_;
  bool lying_;
  bool never_again_;  // planted
  Network& network_;
  MembershipOracle& oracle_;
  SwarmHost& host_;
  SimAuthority authority_;
  Random random_;
  std::vector<Node> nodes_;
  std::vector<InFlight> messages_;  // slots
  std::vector<std::uint32_t> free_slots_;
  Traffic traffic_;
  gossip::SwimCounters ended_;
  NodeIndex suspect_view_ = 0;  // who disagreed last
};

}  // namespace kith::sim
