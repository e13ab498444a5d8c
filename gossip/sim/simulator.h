// Simulator: the event loop. One thread, one seed, virtual time; see simulate.h for the front.
//
// Rules of the simulated world:
// - A connection dies with either of its ends: what was sent to a life of a node never reaches the
// next one, and what a
//   dead node had sent arrives only until its successor is up. Before the first message of a new
//   life is delivered, the receiver has learnt of it (as through HELLO).
// - Handlers must not block: each call produces a bounded number of messages, a deadline that has
// passed is over after
//   tick(), and a node that holds a fragment for an exchange always has a deadline. So nobody waits
//   for anybody: the wait-for graph has no edges.
// - Who may be averaged with comes from each node's own Swim machine (the same network carries
// both),
//   or from an oracle that tells the truth late.
// - After the last planned second faults end, learning stops, nobody proposes, and all must come to
// rest in a bound.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gossip/method.h"
#include "gossip/sim/event_queue.h"
#include "gossip/sim/fault_plan.h"
#include "gossip/sim/membership_oracle.h"
#include "gossip/sim/membership_run.h"
#include "gossip/sim/membership_source.h"
#include "gossip/sim/network.h"
#include "gossip/sim/oracle.h"
#include "gossip/sim/sim_node.h"
#include "gossip/sim/simulate.h"
#include "gossip/sim/swim_swarm.h"
#include "gossip/sim/trace.h"

namespace kith::sim {

// Adds the counts that the report shows.
void add_counters(gossip::ExchangeCounters& sum, const gossip::ExchangeCounters& counters);

class Simulator final : private SwarmHost {
 public:
  Simulator(const SimulationSettings& settings, const gossip::Composition& composition,
            std::unique_ptr<gossip::PartnerChooser> chooser, std::string replay);

  // Once. Stops at the first violation.
  SimulationReport run(const ProgressCallback& progress);

 private:
  // SwarmHost
  [[nodiscard]] TimePoint now() const override { return now_; }
  void schedule(const Event& event) override { queue_.push(event); }
  void view_changed(NodeIndex node) override;

  struct InFlight {
    NodeIndex from = 0, to = 0;
    std::uint32_t from_boot = 0, to_boot = 0;
    schema::Message message;
    Slice payload;
  };

  // Set-up.
  NodePlan draw_node(Random& random) const;
  void start();
  void schedule_faults();
  void boot(NodeIndex node);

  // The loop.
  void run_until(TimePoint end, const ProgressCallback& progress);
  void settle(const ProgressCallback& progress);
  void count_leftovers();
  [[nodiscard]] bool at_rest(NodeIndex node) const;
  [[nodiscard]] bool all_at_rest() const;
  void report_restless(Duration bound);
  void handle(const Event& event);
  [[nodiscard]] bool stale(const Event& event) const;
  bool postponed(Event event);  // its node is paused: it comes again
  void trace(const Event& event);

  // One handler per kind of event.
  void on_step(NodeIndex node);
  void on_safe_point(NodeIndex node);
  void on_deliver(std::uint32_t slot);
  void on_tick(NodeIndex node);
  void on_crash(const PlannedCrash& crash);
  void on_restart(NodeIndex node);
  [[nodiscard]] std::vector<Fixed> donor_state(NodeIndex node);
  void on_adopt(NodeIndex node);
  void on_pause(const PlannedPause& pause);
  void on_stall(NodeIndex node);
  void stand_still(NodeIndex node, Duration length);
  void on_cut(std::uint32_t cut, bool active);
  void on_checkpoint(NodeIndex node);
  void on_sample();

  // Around every call into a machine.
  void drain(NodeIndex node);
  void check_answered(NodeIndex node, const std::vector<gossip::Outgoing>& outgoing);
  void post(NodeIndex from, gossip::Outgoing& outgoing);
  void fly(NodeIndex from, NodeIndex to, Duration delay, schema::Message message, Slice payload);
  void note(NodeIndex node, const gossip::ExchangeEvent& event);
  void note_proposal(NodeIndex node, const gossip::Outgoing& outgoing);
  void arm(NodeIndex node);
  void check_bounded(NodeIndex node, std::size_t outputs);
  void check_views();
  [[nodiscard]] gossip::ExchangeCounters totals() const;

  void membership_changed();
  void look_at_membership(NodeIndex node);
  void push(TimePoint time, EventKind kind, NodeIndex node, std::uint32_t detail = 0);
  [[nodiscard]] double variance() const;
  [[nodiscard]] gossip::ExchangeSettings machine_settings() const;
  void measure();  // rates, at the end of the run proper
  void finish();   // totals, at the end of all

  SimulationSettings settings_;
  gossip::Composition composition_;
  std::unique_ptr<gossip::PartnerChooser> chooser_;
  Layout layout_;
  Random random_;
  FaultPlan plan_;
  Network network_;
  OracleMembership membership_;
  Oracle oracle_;
  // Null with the oracle source of membership.
  std::unique_ptr<MembershipOracle> views_;
  std::unique_ptr<SwimSwarm> swarm_;
  TrafficMeter meter_;
  NodeIndex inspected_ = 0;
  EventQueue queue_;
  TraceHash hash_;
  TimePoint now_;
  bool settling_ = false;
  std::vector<Oracle::Leftover> leftovers_;  // while settling
  std::uint64_t samples_ = 0;                // likewise
  std::vector<std::unique_ptr<SimNode>> nodes_;
  std::vector<InFlight> messages_;  // slots
  std::vector<std::uint32_t> free_slots_;
  std::uint64_t events_ = 0;
  Delivery delivery_;                       // of the event that is handled
  const schema::Propose* asked_ = nullptr;  // while a PROPOSE that asks again is handled
  std::string violated_at_;                 // which event, once there is a violation
  gossip::ExchangeCounters ended_;          // of lives that have ended
  std::string replay_;
  SimulationReport report_;
};

}  // namespace kith::sim
