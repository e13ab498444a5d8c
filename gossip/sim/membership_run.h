// MembershipRun: a swarm that does nothing but membership (`--method local`), so that ten thousand
// nodes fit: the event loop around SwimSwarm, with the same faults, the same report and the same
// end as a full simulation: after the last planned second faults stop, and all views must agree
// within a bound.
//
// Thread: one. Costs: about 40 events per node and simulated second, one to a few microseconds
// each.
#pragma once

#include <string>
#include <vector>

#include "gossip/sim/event_queue.h"
#include "gossip/sim/fault_plan.h"
#include "gossip/sim/membership_oracle.h"
#include "gossip/sim/network.h"
#include "gossip/sim/simulate.h"
#include "gossip/sim/swim_swarm.h"

namespace kith::sim {

NetworkSettings network_settings(const SimulationSettings& settings);
MembershipOracle::Settings membership_oracle_settings(const SimulationSettings& settings);
// How long all views may take to agree once faults have ended: a last suspicion, the longest wait
// before a dead member is asked again, and the asking.
Duration agreement_bound(const SimulationSettings& settings);
// What both kinds of simulation report of their membership.
void report_membership(const SwimSwarm& swarm, const MembershipOracle& oracle,
                       const SimulationSettings& settings, SimulationReport& report);

// Control bytes per node and second over the second half of a run: what a swarm costs once it has
// settled.
class TrafficMeter {
 public:
  void at_half(const SwimSwarm& swarm, double node_hours);
  void at_end(const SwimSwarm& swarm, double node_hours, SimulationReport& report);

 private:
  SwimSwarm::Traffic half_;
  double node_hours_ = 0.0;
};

class MembershipRun final : private SwarmHost {
 public:
  MembershipRun(const SimulationSettings& settings, std::string replay);
  SimulationReport run(const ProgressCallback& progress);  // once

 private:
  // SwarmHost
  [[nodiscard]] TimePoint now() const override { return now_; }
  void schedule(const Event& event) override { queue_.push(event); }
  void view_changed(NodeIndex) override {}

  void push(TimePoint at, EventKind kind, NodeIndex node, std::uint32_t detail = 0);
  void schedule_faults();
  void run_until(TimePoint end, const ProgressCallback& progress);
  void settle(const ProgressCallback& progress);
  [[nodiscard]] bool stale(const Event& event) const;
  bool postponed(Event event);
  void handle(const Event& event);
  void on_crash(const PlannedCrash& crash);
  void on_restart(NodeIndex node);
  void on_pause(NodeIndex node, Duration length, bool counts);
  void on_stall(NodeIndex node);
  void on_sample();
  void finish();
  [[nodiscard]] bool up(NodeIndex node) const { return swarm_.machine(node) != nullptr; }

  SimulationSettings settings_;
  FaultPlan plan_;
  Network network_;
  MembershipOracle oracle_;
  SwimSwarm swarm_;
  EventQueue queue_;
  TraceHash hash_;
  TimePoint now_;
  bool settling_ = false;
  std::uint64_t events_ = 0;
  std::vector<TimePoint> paused_until_;  // [node]
  std::vector<bool> gone_;               // [node] for good
  NodeIndex inspected_ = 0;
  Random random_;
  TrafficMeter meter_;
  std::string violated_at_, replay_;
  SimulationReport report_;
};

}  // namespace kith::sim
