#include "gossip/sim/membership_run.h"

#include <algorithm>
#include <utility>

#include "gossip/sim/trace.h"

namespace kith::sim {
namespace {

constexpr std::uint64_t kProgressEvery = 1U << 16;
constexpr Duration kSampleEvery = std::chrono::milliseconds(200);

Duration steps(double count) {
  return Duration(static_cast<std::int64_t>(count * static_cast<double>(kStepTime.count())));
}

}  // namespace

NetworkSettings network_settings(const SimulationSettings& settings) {
  NetworkSettings network;
  network.loss = settings.loss;
  network.duplicate = settings.duplicate;
  network.reorder = settings.reorder;
  network.latency = steps(settings.latency_steps);
  network.reorder_delay_max = 4 * network.latency + kStepTime;
  return network;
}

MembershipOracle::Settings membership_oracle_settings(const SimulationSettings& s) {
  MembershipOracle::Settings oracle;
  oracle.nodes = s.nodes;
  oracle.dense = table_size(s) + 1 >= s.nodes;
  oracle.bounds = membership_bounds(s);
  // Where a third of the nodes stand still at any time, nobody can promise a bound.
  const bool ordinary = s.loss <= 0.1 && s.reorder <= 0.3 && s.slow <= 0.15 && s.pauses <= 0.5 &&
                        s.churn <= 2.0 && s.fail <= 0.5;
  oracle.judge_completeness = ordinary;
  oracle.judge_accuracy = ordinary && s.loss <= 0.05;
  oracle.judge_dissemination = ordinary && s.loss <= 0.01 && s.reorder <= 0.1 && s.pauses <= 0.0 &&
                               s.partitions == 0 && s.slow <= 0.0 && s.liars == 0;
  oracle.lies_cannot_win =
      ordinary && s.liars > 0 && s.liars < swim_settings(s).accusers_to_convict;
  return oracle;
}

Duration agreement_bound(const SimulationSettings& settings) {
  const gossip::SwimSettings swim = swim_settings(settings);
  return membership_bounds(settings).removal() + 11 * swim.dead_retry + 20 * swim.probe_interval;
}

void report_membership(const SwimSwarm& swarm, const MembershipOracle& oracle,
                       const SimulationSettings& settings, SimulationReport& report) {
  const gossip::SwimCounters counters = swarm.counters();
  report.swim = true;
  report.control_messages = swarm.traffic().messages;
  report.deaths = oracle.completeness().deaths();
  report.detection_first_seconds = quantile(oracle.completeness().first(), 0.5);
  report.detection_median_seconds = quantile(oracle.completeness().delays(), 0.5);
  report.detection_p99_seconds = quantile(oracle.completeness().delays(), 0.99);
  report.removal_bound_seconds = to_seconds(membership_bounds(settings).removal());
  report.false_deaths = oracle.accuracy().false_deaths();
  report.false_death_views = oracle.accuracy().views();
  report.node_hours = oracle.node_hours();
  report.dissemination_p99_ticks = oracle.dissemination().p99_ticks();
  report.dissemination_bound_ticks = membership_bounds(settings).dissemination_ticks();
  report.dissemination_samples = oracle.dissemination().samples();
  report.suspicions = counters.suspicions;
  report.refutations = counters.refutations;
  report.table = table_size(settings);
  report.partial_views = swarm.has_views();
  if (!report.partial_views) return;
  report.view_violation = swarm.views_at_rest();
  report.view_chi_square = in_degree_chi_square(swarm.view_graph(false, true));
}

void TrafficMeter::at_half(const SwimSwarm& swarm, double node_hours) {
  half_ = swarm.traffic();
  node_hours_ = node_hours;
}

void TrafficMeter::at_end(const SwimSwarm& swarm, double node_hours, SimulationReport& report) {
  const double node_seconds = 3600.0 * (node_hours - node_hours_);
  if (node_seconds <= 0.0) return;
  const SwimSwarm::Traffic& all = swarm.traffic();
  report.control_bytes_per_node_second =
      static_cast<double>(all.bytes - half_.bytes) / node_seconds;
  report.control_messages_per_node_second =
      static_cast<double>(all.messages - half_.messages) / node_seconds;
}

MembershipRun::MembershipRun(const SimulationSettings& settings, std::string replay)
    : settings_(settings),
      plan_(draw_faults(settings)),
      network_(network_settings(settings), settings.seed),
      oracle_(membership_oracle_settings(settings)),
      swarm_(settings, network_, oracle_, *this),
      paused_until_(settings.nodes),
      gone_(settings.nodes),
      random_(Random(settings.seed).fork("membership run")),
      replay_(std::move(replay)) {
  std::vector<bool> late(settings.nodes);
  for (const PlannedJoin& join : plan_.joins) late[join.node] = true;
  std::vector<NodeIndex> first;
  for (NodeIndex i = 0; i < settings.nodes; ++i) {
    if (!late[i]) first.push_back(i);
  }
  swarm_.start(first);
  schedule_faults();
  push(TimePoint{}, EventKind::kSample, kNobody);
}

void MembershipRun::push(TimePoint at, EventKind kind, NodeIndex node, std::uint32_t detail) {
  Event event;
  event.time = at;
  event.kind = kind;
  event.node = node;
  event.detail = detail;
  queue_.push(event);
}

void MembershipRun::schedule_faults() {
  for (std::uint32_t i = 0; i < plan_.crashes.size(); ++i)
    push(plan_.crashes[i].at, EventKind::kCrash, plan_.crashes[i].node, i);
  for (std::uint32_t i = 0; i < plan_.pauses.size(); ++i)
    push(plan_.pauses[i].at, EventKind::kPause, plan_.pauses[i].node, i);
  for (const PlannedJoin& join : plan_.joins) push(join.at, EventKind::kRestart, join.node);
  for (const PlannedCut& cut : plan_.cuts) {
    const std::uint32_t number = network_.add_cut(cut.cut);
    push(cut.from, EventKind::kCut, kNobody, number);
    push(cut.to, EventKind::kHeal, kNobody, number);
  }
  const std::vector<NodeIndex> place = places(settings_);
  Random draws = random_.fork("slow");
  for (NodeIndex role = 0; role < settings_.nodes; ++role) {
    if (draws.chance(settings_.slow)) push(TimePoint{}, EventKind::kStall, place[role]);
  }
}

// ---- the loop

SimulationReport MembershipRun::run(const ProgressCallback& progress) {
  report_.seed = settings_.seed;
  const TimePoint end{from_seconds(settings_.seconds)};
  run_until(TimePoint{from_seconds(settings_.seconds / 2)}, progress);
  meter_.at_half(swarm_, oracle_.truth().node_hours(now_));
  run_until(end, progress);
  meter_.at_end(swarm_, oracle_.truth().node_hours(now_), report_);
  oracle_.end_of_faults(now_);
  if (oracle_.violation() && violated_at_.empty()) violated_at_ = "the end of the faults";
  if (!oracle_.violation()) settle(progress);
  finish();
  return std::move(report_);
}

void MembershipRun::run_until(TimePoint end, const ProgressCallback& progress) {
  while (!oracle_.violation() && !queue_.empty() && queue_.next_time() <= end) {
    const Event event = queue_.pop();
    now_ = event.time;
    if (stale(event) || postponed(event)) continue;
    ++events_;
    hash_.add(static_cast<std::uint64_t>(event.time.since_start.count()));
    hash_.add((static_cast<std::uint64_t>(event.kind) << 32) | event.node);
    swarm_.trace(event, hash_);
    const std::string which = swarm_.describe(event);
    handle(event);
    if (oracle_.violation()) violated_at_ = describe_event(events_, event, {}) + which;
    if (progress && events_ % kProgressEvery == 0)
      progress({to_seconds(now_.since_start), settings_.seconds, events_});
    if (settling_ && event.kind == EventKind::kSample && swarm_.views_agree()) return;
  }
  if (!settling_) now_ = std::max(now_, end);
}

// The liveness phase.
void MembershipRun::settle(const ProgressCallback& progress) {
  const TimePoint begin = now_;
  settling_ = true;
  network_.heal();
  swarm_.stop_lying();
  for (NodeIndex i = 0; i < settings_.nodes; ++i) {
    if (!up(i) && !gone_[i]) on_restart(i);
  }
  const Duration bound = agreement_bound(settings_);
  if (!swarm_.views_agree()) run_until(begin + bound, progress);
  report_.settle_seconds = to_seconds(now_ - begin);
  if (oracle_.violation()) return;
  const std::string difference = swarm_.disagreement();
  if (difference.empty()) return;
  violated_at_ = "the end";
  oracle_.report("views agree",
                 std::to_string(to_seconds(bound)) + " s after the last fault " + difference);
}

bool MembershipRun::stale(const Event& event) const {
  switch (event.kind) {
    case EventKind::kCrash:
    case EventKind::kPause:
      return settling_ || !up(event.node);
    case EventKind::kStall:
      return settling_;
    case EventKind::kRestart:
      return up(event.node);
    case EventKind::kResume:
      return !up(event.node) || event.time != paused_until_[event.node];
    case EventKind::kSample:
    case EventKind::kCut:
    case EventKind::kHeal:
      return false;
    default:
      return swarm_.stale(event);
  }
}

bool MembershipRun::postponed(Event event) {
  if (event.node == kNobody || event.kind == EventKind::kCrash ||
      event.kind == EventKind::kRestart || event.kind == EventKind::kPause ||
      event.kind == EventKind::kStall || paused_until_[event.node] <= now_)
    return false;
  if (event.kind == EventKind::kSwimTick) {
    swarm_.postpone_tick(event.node, paused_until_[event.node]);
  }
  event.time = paused_until_[event.node];
  queue_.push(event);
  return true;
}

void MembershipRun::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::kCrash:
      return on_crash(plan_.crashes[event.detail]);
    case EventKind::kRestart:
      return on_restart(event.node);
    case EventKind::kPause:
      return on_pause(event.node, plan_.pauses[event.detail].length, true);
    case EventKind::kResume:
      return swarm_.resumed(event.node, std::chrono::milliseconds(event.detail));
    case EventKind::kStall:
      return on_stall(event.node);
    case EventKind::kCut:
    case EventKind::kHeal: {
      if (settling_) return;
      const bool cut = event.kind == EventKind::kCut;
      network_.set_cut(event.detail, cut);
      report_.partitions += cut ? 1 : 0;
      cut ? oracle_.cut(now_) : oracle_.healed(now_);
      if (cut) swarm_.network_cut();
      return;
    }
    case EventKind::kSample:
      return on_sample();
    default:
      return swarm_.handle(event);
  }
}

void MembershipRun::on_crash(const PlannedCrash& crash) {
  if (crash.leaves) swarm_.leave(crash.node);
  crash.leaves ? ++report_.leaves : ++report_.crashes;
  swarm_.crash(crash.node, crash.silent);
  oracle_.went_down(now_, crash.node, crash.leaves);
  paused_until_[crash.node] = TimePoint{};
  if (crash.disk == PlannedCrash::Disk::kForGood) {
    gone_[crash.node] = true;
    ++report_.crashes_for_good;
  } else {
    push(now_ + crash.away, EventKind::kRestart, crash.node);
  }
}

void MembershipRun::on_restart(NodeIndex node) {
  ++report_.joins;
  swarm_.boot(node);
}

void MembershipRun::on_pause(NodeIndex node, Duration length, bool counts) {
  if (paused_until_[node] >= now_ + length) return;
  paused_until_[node] = now_ + length;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(length);
  push(paused_until_[node], EventKind::kResume, node, static_cast<std::uint32_t>(ms.count()));
  if (!counts) return;
  ++report_.pauses;
  oracle_.paused(now_, node, length);
  swarm_.paused(node, length);
}

// A slow node gets the processor for a fifth of the time, in pieces.
void MembershipRun::on_stall(NodeIndex node) {
  const double still = random_.uniform(0.05, 0.6);
  const double runs = random_.uniform(0.01, 0.15);
  if (up(node)) on_pause(node, from_seconds(still), false);
  push(now_ + from_seconds(still + runs), EventKind::kStall, node);
}

void MembershipRun::on_sample() {
  oracle_.poll(now_);
  swarm_.inspect(inspected_++ % settings_.nodes);
  push(now_ + kSampleEvery, EventKind::kSample, kNobody);
}

void MembershipRun::finish() {
  report_.events = events_;
  report_.hash = hash_.value();
  report_.simulated_seconds = to_seconds(now_.since_start);
  report_.dropped = network_.counts().dropped + network_.counts().cut;
  report_.duplicated = network_.counts().duplicated;
  report_.reordered = network_.counts().delayed;
  report_membership(swarm_, oracle_, settings_, report_);
  if (const auto& violation = oracle_.violation()) {
    report_.violations = 1;
    report_.violation = violation->invariant + ": " + violation->text + "\n  at " + violated_at_ +
                        "\n  replay: " + replay_;
  }
  report_.ok = report_.violations == 0;
}

}  // namespace kith::sim
