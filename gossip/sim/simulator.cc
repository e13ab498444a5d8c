#include "gossip/sim/simulator.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "gossip/sim/node_ids.h"
#include "gossip/sim/trace.h"

namespace kith::sim {
namespace {

constexpr std::uint64_t kProgressEvery = 1U << 16;
constexpr std::uint64_t kRecountEvery = 1U << 16;
constexpr std::uint64_t kLeftoversEvery = 200;  // samples

Duration steps(double count) {
  return Duration(static_cast<std::int64_t>(count * static_cast<double>(kStepTime.count())));
}

// A machine that sees only a sample of the others is enough for random partners; other topologies
// number everybody.
std::uint32_t view_size(const SimulationSettings& settings, const std::string& topology) {
  if (settings.view_max > 0) return settings.view_max;
  return settings.nodes > 512 && topology == "random" ? 64 : 0;
}

}  // namespace

Simulator::Simulator(const SimulationSettings& settings, const gossip::Composition& composition,
                     std::unique_ptr<gossip::PartnerChooser> chooser, std::string replay)
    : settings_(settings),
      composition_(composition),
      chooser_(std::move(chooser)),
      layout_{settings.fragments, settings.values},
      random_(settings.seed),
      plan_(draw_faults(settings)),
      network_(network_settings(settings), settings.seed),
      membership_(settings.nodes, network_, view_size(settings, composition.topology),
                  settings.seed),
      oracle_(layout_, settings.nodes, settings.churn > 0.0),
      replay_(std::move(replay)) {
  const std::vector<NodeIndex> place = places(settings_);
  Random draws = random_.fork("nodes");
  nodes_.resize(settings_.nodes);
  for (NodeIndex role = 0; role < settings_.nodes; ++role) {
    const NodeIndex i = place[role];
    nodes_[i] = std::make_unique<SimNode>(i, draw_node(draws), &oracle_,
                                          random_.fork("node" + std::to_string(role)));
    oracle_.start(i, nodes_[i]->store());
  }
  start();
  schedule_faults();
  push(TimePoint{}, EventKind::kSample, kNobody);
}

void Simulator::start() {
  std::vector<bool> late(settings_.nodes);
  for (const PlannedJoin& join : plan_.joins) late[join.node] = true;
  std::vector<NodeIndex> first;
  for (NodeIndex i = 0; i < settings_.nodes; ++i) {
    if (!late[i]) first.push_back(i);
  }
  for (const NodeIndex i : first) membership_.came_up(i, 1);
  if (uses_swim(settings_)) {
    views_ = std::make_unique<MembershipOracle>(membership_oracle_settings(settings_));
    SwarmHost& host = *this;
    swarm_ = std::make_unique<SwimSwarm>(settings_, network_, *views_, host);
    swarm_->start(first);
  }
  for (const NodeIndex i : first) boot(i);
}

NodePlan Simulator::draw_node(Random& random) const {
  NodePlan plan;
  plan.layout = layout_;
  for (std::size_t i = 0; i < layout_.total(); ++i) {
    plan.start.push_back(to_fixed(settings_.start_spread * random.normal()));
    plan.centre.push_back(to_fixed(random.normal()));
  }
  const double curvature = random.uniform(0.5, 2.0);
  plan.rate_curvature = settings_.training ? to_fixed(0.02 * curvature) : 0;
  plan.slow = random.chance(settings_.slow);
  plan.step_time = plan.slow ? 10 * kStepTime : kStepTime;
  plan.merge_time = random.chance(settings_.slow_merge) ? kStepTime / 5 : Duration{0};
  plan.busy = settings_.busy;
  plan.quantise_sides_separately = settings_.planted.quantise_sides_separately;
  return plan;
}

void Simulator::schedule_faults() {
  for (std::uint32_t i = 0; i < plan_.crashes.size(); ++i) {
    push(plan_.crashes[i].at, EventKind::kCrash, plan_.crashes[i].node, i);
  }
  for (std::uint32_t i = 0; i < plan_.pauses.size(); ++i) {
    push(plan_.pauses[i].at, EventKind::kPause, plan_.pauses[i].node, i);
  }
  for (const PlannedAdoption& adoption : plan_.adoptions) {
    push(adoption.at, EventKind::kAdopt, adoption.node);
  }
  for (const PlannedJoin& join : plan_.joins) push(join.at, EventKind::kRestart, join.node);
  for (NodeIndex i = 0; swarm_ != nullptr && i < nodes_.size(); ++i) {
    if (nodes_[i]->slow()) push(TimePoint{}, EventKind::kStall, i);
  }
  for (const PlannedCut& cut : plan_.cuts) {
    const std::uint32_t number = network_.add_cut(cut.cut);
    push(cut.from, EventKind::kCut, kNobody, number);
    push(cut.to, EventKind::kHeal, kNobody, number);
  }
}

gossip::ExchangeSettings Simulator::machine_settings() const {
  gossip::ExchangeSettings machine;
  machine.codec = composition_.codec;
  machine.weight = composition_.weight;
  machine.every_steps = composition_.every_steps;
  if (composition_.what == gossip::What::kNothing || composition_.when == gossip::When::kNever)
    machine.every_steps = 0;
  const std::size_t bytes = layout_.values * sizeof(Fixed);
  machine.chunk_bytes = (bytes + settings_.chunks - 1) / settings_.chunks;
  if (settings_.window_chunks > 0) machine.window_chunks = settings_.window_chunks;
  if (settings_.inbound_bytes_max > 0) machine.inbound_bytes_max = settings_.inbound_bytes_max;
  if (settings_.ledger_bytes_max > 0) machine.ledger_bytes_max = settings_.ledger_bytes_max;
  const Duration retry = settings_.retry_seconds > 0.0
                             ? from_seconds(settings_.retry_seconds)
                             : std::max(machine.retry_interval, steps(5 * settings_.latency_steps));
  machine.retry_interval = machine.suspend_after = retry;
  return machine;
}

void Simulator::boot(NodeIndex node) {
  SimNode& n = *nodes_[node];
  n.boot(machine_settings(), *chooser_, settings_.planted);
  n.view_version = 0;
  look_at_membership(node);
  n.machine().set_active(true);
  n.machine().set_draining(settling_);
  drain(node);
  const auto phase =
      static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(kStepTime.count())));
  push(now_ + Duration(phase), EventKind::kStep, node);
  if (settings_.churn > 0.0) {
    push(now_ + from_seconds(settings_.checkpoint_seconds * random_.uniform()),
         EventKind::kCheckpoint, node);
  }
}

// ---- the loop

SimulationReport Simulator::run(const ProgressCallback& progress) {
  report_.seed = settings_.seed;
  report_.variance_start = variance();
  if (swarm_ != nullptr) {
    run_until(TimePoint{from_seconds(settings_.seconds / 2)}, progress);
    meter_.at_half(*swarm_, views_->truth().node_hours(now_));
  }
  run_until(TimePoint{from_seconds(settings_.seconds)}, progress);
  measure();
  if (!oracle_.violation()) settle(progress);
  finish();
  return std::move(report_);
}

void Simulator::run_until(TimePoint end, const ProgressCallback& progress) {
  while (!oracle_.violation() && !queue_.empty() && queue_.next_time() <= end) {
    const Event event = queue_.pop();
    now_ = event.time;
    if (stale(event) || postponed(event)) continue;
    ++events_;
    trace(event);
    handle(event);
    if (swarm_ != nullptr) check_views();
    if (event.node != kNobody) oracle_.check(event.node, nodes_[event.node]->store());
    if (events_ % kRecountEvery == 0) {
      std::vector<const FixedPointStore*> stores;
      for (const auto& node : nodes_) stores.push_back(&node->store());
      oracle_.recount(stores);
    }
    if (oracle_.violation()) violated_at_ = describe_event(events_, event, delivery_);
    if (progress && events_ % kProgressEvery == 0)
      progress({to_seconds(now_.since_start), settings_.seconds, events_});
    if (settling_ && event.kind == EventKind::kSample) {
      if (all_at_rest()) return;
      if (++samples_ % kLeftoversEvery == 0) count_leftovers();
    }
  }
  now_ = std::max(now_, settling_ ? now_ : end);
}

// The liveness phase.
void Simulator::settle(const ProgressCallback& progress) {
  const TimePoint begin = now_;
  settling_ = true;
  network_.heal();
  membership_.network_changed();
  if (swarm_ != nullptr) swarm_->stop_lying();
  for (const PlannedCrash& crash : plan_.crashes) {
    if (!nodes_[crash.node]->up() && !nodes_[crash.node]->gone_for_good) on_restart(crash.node);
  }
  for (const PlannedJoin& join : plan_.joins) {
    if (!nodes_[join.node]->up() && !nodes_[join.node]->gone_for_good) on_restart(join.node);
  }
  count_leftovers();
  for (NodeIndex i = 0; i < nodes_.size(); ++i) {
    nodes_[i]->trainer().freeze();
    if (!nodes_[i]->up()) continue;
    look_at_membership(i);
    nodes_[i]->machine().set_draining(true);
    drain(i);
    oracle_.check(i, nodes_[i]->store());
  }
  // Questions of long suspended exchanges come every 10 s at last, reminders of the ledger every 30
  // s.
  Duration bound =
      std::chrono::seconds(60) + 40 * (machine_settings().retry_interval + network_.delay_max());
  if (swarm_ != nullptr) bound += agreement_bound(settings_);
  if (!all_at_rest()) run_until(begin + bound, progress);
  report_.settle_seconds = to_seconds(now_ - begin);
  if (oracle_.violation()) return;
  report_restless(bound);
  oracle_.check_settled();
  if (oracle_.violation()) violated_at_ = "the end";
}

// Again and again: what the gone had sent last is still committed after the faults have ended.
void Simulator::count_leftovers() {
  std::vector<bool> gone;
  for (const auto& node : nodes_) gone.push_back(node->gone_for_good);
  leftovers_ = oracle_.leftovers(gone);
}

bool Simulator::at_rest(NodeIndex node) const {
  const SimNode& n = *nodes_[node];
  return !n.up() || (n.machine().open_count() <= leftovers_[node].open &&
                     n.machine().ledger_entries() <= leftovers_[node].ledger);
}

bool Simulator::all_at_rest() const {
  if (!oracle_.all_landed()) return false;
  if (swarm_ != nullptr && !swarm_->views_agree()) return false;
  for (NodeIndex i = 0; i < nodes_.size(); ++i) {
    if (!at_rest(i)) return false;
  }
  return true;
}

void Simulator::report_restless(Duration bound) {
  const std::string difference = swarm_ != nullptr ? swarm_->disagreement() : std::string{};
  if (!difference.empty())
    oracle_.report("views agree",
                   std::to_string(to_seconds(bound)) + " s after the last fault " + difference);
  for (NodeIndex i = 0; i < nodes_.size(); ++i) {
    if (at_rest(i)) continue;
    const gossip::ExchangeMachine& machine = nodes_[i]->machine();
    oracle_.report("liveness", std::to_string(to_seconds(bound)) + " s after the last fault node " +
                                   std::to_string(i) + " still has " +
                                   std::to_string(machine.open_count()) + " open exchanges and " +
                                   std::to_string(machine.ledger_entries()) +
                                   " ledger entries; nodes that are gone for "
                                   "good explain " +
                                   std::to_string(leftovers_[i].open) + " and " +
                                   std::to_string(leftovers_[i].ledger));
  }
}

bool Simulator::stale(const Event& event) const {
  if (event.node == kNobody) return false;
  const SimNode& node = *nodes_[event.node];
  switch (event.kind) {
    case EventKind::kStep:
    case EventKind::kMergeDone:
    case EventKind::kCheckpoint:
    case EventKind::kView:
      return !node.up() || event.life != node.boots();
    case EventKind::kTick:
      return !node.up() || event.life != node.boots() || event.time != node.tick_at;
    case EventKind::kCrash:
    case EventKind::kPause:
    case EventKind::kAdopt:
      return settling_ || !node.up();
    case EventKind::kRestart:
      return node.up();
    case EventKind::kStall:
      return settling_;
    case EventKind::kResume:
      return !node.up() || event.time != node.paused_until;
    case EventKind::kSwimTick:
    case EventKind::kSwimDeliver:
    case EventKind::kSwimJoin:
    case EventKind::kSwimDial:
    case EventKind::kSwimLinkLost:
    case EventKind::kSwimFigures:
    case EventKind::kSwimLie:
      return swarm_->stale(event);
    default:
      return false;
  }
}

bool Simulator::postponed(Event event) {
  if (event.node == kNobody || event.kind == EventKind::kCrash || event.kind == EventKind::kStall)
    return false;
  SimNode& node = *nodes_[event.node];
  if (node.paused_until <= now_) return false;
  event.time = node.paused_until;
  if (event.kind == EventKind::kTick) node.tick_at = event.time;
  if (event.kind == EventKind::kSwimTick) swarm_->postpone_tick(event.node, event.time);
  queue_.push(event);
  return true;
}

void Simulator::trace(const Event& event) {
  hash_.add(static_cast<std::uint64_t>(event.time.since_start.count()));
  hash_.add((static_cast<std::uint64_t>(event.kind) << 32) | event.node);
  if (swarm_ != nullptr) swarm_->trace(event, hash_);
  if (event.kind != EventKind::kDeliver) return;
  const InFlight& flight = messages_[event.detail];
  hash_.add((static_cast<std::uint64_t>(flight.message.index()) << 32) | flight.from);
  if (const ExchangeId* e = exchange_of(flight.message)) {
    hash_.add((static_cast<std::uint64_t>(boot_of(e->incarnation)) << 32) | index_of(e->initiator));
    hash_.add(e->sequence);
  }
}

void Simulator::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::kStep:
      return on_step(event.node);
    case EventKind::kMergeDone:
      nodes_[event.node]->finish_merges();
      return on_safe_point(event.node);
    case EventKind::kDeliver:
      return on_deliver(event.detail);
    case EventKind::kTick:
      return on_tick(event.node);
    case EventKind::kView:
      nodes_[event.node]->view_pending = false;
      return look_at_membership(event.node);
    case EventKind::kCrash:
      return on_crash(plan_.crashes[event.detail]);
    case EventKind::kRestart:
      return on_restart(event.node);
    case EventKind::kCheckpoint:
      return on_checkpoint(event.node);
    case EventKind::kPause:
      return on_pause(plan_.pauses[event.detail]);
    case EventKind::kAdopt:
      return on_adopt(event.node);
    case EventKind::kCut:
    case EventKind::kHeal:
      return on_cut(event.detail, event.kind == EventKind::kCut);
    case EventKind::kSample:
      return on_sample();
    case EventKind::kStall:
      return on_stall(event.node);
    case EventKind::kResume:
      return swarm_->resumed(event.node, std::chrono::milliseconds(event.detail));
    case EventKind::kSwimTick:
    case EventKind::kSwimDeliver:
    case EventKind::kSwimJoin:
    case EventKind::kSwimDial:
    case EventKind::kSwimLinkLost:
    case EventKind::kSwimFigures:
    case EventKind::kSwimLie:
      return swarm_->handle(event);
  }
}

}  // namespace kith::sim
