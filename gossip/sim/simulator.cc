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
constexpr Samples kSamplesPerStep = 32;

Duration steps(double count) {
  return Duration(static_cast<std::int64_t>(count * static_cast<double>(kStepTime.count())));
}

NetworkSettings network_settings(const SimulationSettings& settings) {
  NetworkSettings network;
  network.loss = settings.loss;
  network.duplicate = settings.duplicate;
  network.reorder = settings.reorder;
  network.latency = steps(settings.latency_steps);
  network.reorder_delay_max = 4 * network.latency + kStepTime;
  return network;
}

void add(gossip::ExchangeCounters& sum, const gossip::ExchangeCounters& c) {
  sum.proposed += c.proposed;
  sum.completed_initiator += c.completed_initiator;
  sum.refused_busy += c.refused_busy;
  sum.refused_crossing += c.refused_crossing;
  sum.refused_other += c.refused_other;
  sum.suspended += c.suspended;
  sum.forfeited += c.forfeited;
  sum.invalid += c.invalid;
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
  Random draws = random_.fork("nodes");
  for (NodeIndex i = 0; i < settings_.nodes; ++i) {
    nodes_.push_back(std::make_unique<SimNode>(i, draw_node(i, draws), &oracle_,
                                               random_.fork("node" + std::to_string(i))));
    oracle_.start(i, nodes_[i]->store());
  }
  for (NodeIndex i = 0; i < settings_.nodes; ++i) membership_.came_up(i, 1);
  for (NodeIndex i = 0; i < settings_.nodes; ++i) boot(i);
  schedule_faults();
  push(TimePoint{}, EventKind::kSample, kNobody);
}

NodePlan Simulator::draw_node(NodeIndex, Random& random) const {
  NodePlan plan;
  plan.layout = layout_;
  for (std::size_t i = 0; i < layout_.total(); ++i) {
    plan.start.push_back(to_fixed(settings_.start_spread * random.normal()));
    plan.centre.push_back(to_fixed(random.normal()));
  }
  const double curvature = random.uniform(0.5, 2.0);
  plan.rate_curvature = settings_.training ? to_fixed(0.02 * curvature) : 0;
  plan.step_time = random.chance(settings_.slow) ? 10 * kStepTime : kStepTime;
  plan.merge_time = random.chance(settings_.slow_merge) ? kStepTime / 5 : Duration{0};
  plan.busy = settings_.busy;
  plan.quantise_sides_separately = settings_.planted.quantise_sides_separately;
  return plan;
}

void Simulator::schedule_faults() {
  for (std::uint32_t i = 0; i < plan_.crashes.size(); ++i) {
    push(plan_.crashes[i].at, EventKind::kCrash, plan_.crashes[i].node, i);
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
    if (stale(event)) continue;
    ++events_;
    trace(event);
    handle(event);
    if (event.node != kNobody) oracle_.check(event.node, nodes_[event.node]->store());
    if (events_ % kRecountEvery == 0) {
      std::vector<const FixedPointStore*> stores;
      for (const auto& node : nodes_) stores.push_back(&node->store());
      oracle_.recount(stores);
    }
    if (oracle_.violation()) violated_at_ = describe_event(events_, event, delivery_);
    if (progress && events_ % kProgressEvery == 0)
      progress({to_seconds(now_.since_start), settings_.seconds, events_});
    if (settling_ && event.kind == EventKind::kSample && all_at_rest()) return;
  }
  now_ = std::max(now_, settling_ ? now_ : end);
}

// The liveness phase.
void Simulator::settle(const ProgressCallback& progress) {
  const TimePoint begin = now_;
  settling_ = true;
  network_.heal();
  membership_.network_changed();
  for (const PlannedCrash& crash : plan_.crashes) {
    if (!nodes_[crash.node]->up() && !nodes_[crash.node]->gone_for_good) on_restart(crash.node);
  }
  std::vector<bool> gone;
  for (const auto& node : nodes_) gone.push_back(node->gone_for_good);
  leftovers_ = oracle_.leftovers(gone);
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
  const Duration bound =
      std::chrono::seconds(60) + 40 * (machine_settings().retry_interval + network_.delay_max());
  if (!all_at_rest()) run_until(begin + bound, progress);
  report_.settle_seconds = to_seconds(now_ - begin);
  if (oracle_.violation()) return;
  report_restless(bound);
  oracle_.check_settled();
  if (oracle_.violation()) violated_at_ = "the end";
}

bool Simulator::at_rest(NodeIndex node) const {
  const SimNode& n = *nodes_[node];
  return !n.up() || (n.machine().open_count() <= leftovers_[node].open &&
                     n.machine().ledger_entries() <= leftovers_[node].ledger);
}

bool Simulator::all_at_rest() const {
  if (!oracle_.all_landed()) return false;
  for (NodeIndex i = 0; i < nodes_.size(); ++i) {
    if (!at_rest(i)) return false;
  }
  return true;
}

void Simulator::report_restless(Duration bound) {
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
      return settling_ || !node.up();
    case EventKind::kRestart:
      return node.up();
    default:
      return false;
  }
}

void Simulator::trace(const Event& event) {
  hash_.add(static_cast<std::uint64_t>(event.time.since_start.count()));
  hash_.add((static_cast<std::uint64_t>(event.kind) << 32) | event.node);
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
    case EventKind::kCut:
    case EventKind::kHeal:
      if (settling_) return;
      network_.set_cut(event.detail, event.kind == EventKind::kCut);
      report_.partitions += event.kind == EventKind::kCut ? 1 : 0;
      return membership_changed();
    case EventKind::kSample:
      return on_sample();
  }
}

// ---- handlers

void Simulator::on_step(NodeIndex node) {
  SimNode& n = *nodes_[node];
  const std::span<const Fixed> change = n.trainer().end_step();
  if (!change.empty()) {
    oracle_.trained(change);
    ++report_.steps;
  }
  if (n.begin_merges()) return push(now_ + n.merge_time(), EventKind::kMergeDone, node);
  on_safe_point(node);
}

void Simulator::on_safe_point(NodeIndex node) {
  SimNode& n = *nodes_[node];
  n.machine().set_progress(report_.steps * kSamplesPerStep, n.trainer().steps());
  n.machine().on_step(now_, n.trainer().steps());
  drain(node);
  n.trainer().begin_step();
  push(now_ + n.next_step_time(), EventKind::kStep, node);
}

void Simulator::on_deliver(std::uint32_t slot) {
  InFlight flight = std::move(messages_[slot]);
  messages_[slot] = InFlight{};
  free_slots_.push_back(slot);
  SimNode& to = *nodes_[flight.to];
  const SimNode& from = *nodes_[flight.from];
  if (!to.up() || to.boots() != flight.to_boot || from.boots() != flight.from_boot) return;
  delivery_ = {flight.from, schema::name_of(flight.message), {}};
  if (const ExchangeId* e = exchange_of(flight.message)) delivery_.key = key_of(*e);
  if (membership_.known_since(flight.from) > to.view_version) look_at_membership(flight.to);
  to.machine().on_message(now_, node_id(flight.from), flight.message, flight.payload);
  drain(flight.to);
}

void Simulator::on_tick(NodeIndex node) {
  SimNode& n = *nodes_[node];
  n.tick_at = TimePoint::max();
  if (n.machine().next_deadline() <= now_) {
    n.machine().tick(now_);
    if (n.machine().next_deadline() <= now_) {
      oracle_.report("no handler blocks", "node " + std::to_string(node) +
                                              " still has a deadline in the past after tick");
    }
  }
  drain(node);
}

void Simulator::on_checkpoint(NodeIndex node) {
  SimNode& n = *nodes_[node];
  n.write_checkpoint();
  oracle_.checkpointed(node, n.boots(), n.store().published());
  push(now_ + from_seconds(settings_.checkpoint_seconds), EventKind::kCheckpoint, node);
}

void Simulator::on_sample() {
  if (!settling_) report_.variance.push_back(variance());
  push(now_ + kStepTime, EventKind::kSample, kNobody);
}

void Simulator::on_crash(const PlannedCrash& crash) {
  using Disk = PlannedCrash::Disk;
  SimNode& n = *nodes_[crash.node];
  const bool disk = (crash.disk == Disk::kKept || crash.disk == Disk::kTorn) && n.checkpoints() > 0;
  ++report_.crashes;
  report_.crashes_disk_lost += disk ? 0 : 1;
  add(ended_, n.machine().counters());
  n.crash();
  membership_.went_down(crash.node);
  if (crash.disk == Disk::kForGood) {
    n.gone_for_good = true;
    ++report_.crashes_for_good;
    oracle_.crashed(crash.node, std::nullopt);
  } else {
    const std::size_t generation = crash.disk == Disk::kTorn && n.checkpoints() > 1 ? 1 : 0;
    oracle_.crashed(crash.node, disk ? std::optional(generation) : std::nullopt);
    n.plan_restart(disk ? std::optional(generation) : std::nullopt);
    push(now_ + crash.away, EventKind::kRestart, crash.node);
  }
  membership_changed();
}

void Simulator::on_restart(NodeIndex node) {
  SimNode& n = *nodes_[node];
  std::vector<Fixed> adopted;
  if (!n.restore_from_disk()) {
    adopted = donor_state(node);
    n.adopt(adopted);
  }
  oracle_.restarted(node, n.store(), adopted);
  membership_.came_up(node, n.boots() + 1);
  boot(node);
  membership_changed();
}

// The first live node from a random place on; alone, a node begins again from its start.
std::vector<Fixed> Simulator::donor_state(NodeIndex node) {
  const auto count = static_cast<NodeIndex>(nodes_.size());
  const auto first = static_cast<NodeIndex>(random_.below(count));
  for (NodeIndex i = 0; i < count; ++i) {
    const SimNode& donor = *nodes_[(first + i) % count];
    if (donor.up()) return donor.store().published();
  }
  return nodes_[node]->start_values();
}

// ---- membership

void Simulator::membership_changed() {
  if (settling_) return;
  for (NodeIndex i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i]->up() || nodes_[i]->view_pending) continue;
    nodes_[i]->view_pending = true;
    const double delay = settings_.detection_seconds * random_.uniform(0.9, 1.1);
    push(now_ + from_seconds(delay), EventKind::kView, i);
  }
}

void Simulator::look_at_membership(NodeIndex node) {
  SimNode& n = *nodes_[node];
  if (n.view_version == membership_.version()) return;
  n.view_version = membership_.version();
  n.machine().set_peers(now_, membership_.view(node));
  drain(node);
}

void Simulator::push(TimePoint time, EventKind kind, NodeIndex node, std::uint32_t detail) {
  Event event;
  event.time = time;
  event.kind = kind;
  event.node = node;
  event.detail = detail;
  event.life = node == kNobody ? 0 : nodes_[node]->boots();
  queue_.push(event);
}

// ---- around the machines

void Simulator::drain(NodeIndex node) {
  gossip::ExchangeMachine& machine = nodes_[node]->machine();
  std::vector<gossip::Outgoing> outgoing = machine.take_outgoing();
  for (gossip::Outgoing& message : outgoing) post(node, message);
  for (const gossip::ExchangeEvent& event : machine.take_events()) note(node, event);
  check_bounded(node, outgoing.size());
  arm(node);
}

void Simulator::check_bounded(NodeIndex node, std::size_t outputs) {
  const SimNode& n = *nodes_[node];
  const gossip::ExchangeMachine& machine = n.machine();
  const std::size_t each = settings_.chunks + 2;
  const std::size_t bound =
      8 + each * (machine.open_count() + machine.ledger_entries() + layout_.fragments + 1);
  if (outputs > bound) {
    oracle_.report("no handler blocks", "one call into node " + std::to_string(node) +
                                            " produced " + std::to_string(outputs) +
                                            " messages, the bound is " + std::to_string(bound));
  }
  if (n.active > 0 && machine.next_deadline() == TimePoint::max()) {
    oracle_.report("nobody waits", "node " + std::to_string(node) + " holds " +
                                       std::to_string(n.active) +
                                       " fragments for open exchanges and has no deadline");
  }
}

void Simulator::arm(NodeIndex node) {
  SimNode& n = *nodes_[node];
  const TimePoint deadline = std::max(n.machine().next_deadline(), now_);
  if (deadline >= n.tick_at || deadline == TimePoint::max()) return;
  n.tick_at = deadline;
  push(deadline, EventKind::kTick, node);
}

void Simulator::post(NodeIndex from, gossip::Outgoing& outgoing) {
  const NodeIndex to = index_of(outgoing.to);
  if (to >= nodes_.size() || to == from || node_id(to) != outgoing.to) {
    return oracle_.report("addresses", "node " + std::to_string(from) + " sent a message to " +
                                           outgoing.to.short_hex() + ", which is no other node");
  }
  note_proposal(from, outgoing);
  ++report_.messages;
  report_.payload_bytes += outgoing.payload.size();
  const Network::Route route = network_.route(from, to);
  if (route.copies == 0 || !nodes_[to]->up()) return;
  if (route.copies == 2) fly(from, to, route.delay[1], outgoing.message, outgoing.payload);
  fly(from, to, route.delay[0], std::move(outgoing.message), std::move(outgoing.payload));
}

void Simulator::fly(NodeIndex from, NodeIndex to, Duration delay, schema::Message message,
                    Slice payload) {
  std::uint32_t slot = 0;
  if (free_slots_.empty()) {
    slot = static_cast<std::uint32_t>(messages_.size());
    messages_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  messages_[slot] = {
      from, to, nodes_[from]->boots(), nodes_[to]->boots(), std::move(message), std::move(payload)};
  push(now_ + delay, EventKind::kDeliver, to, slot);
}

void Simulator::note_proposal(NodeIndex node, const gossip::Outgoing& outgoing) {
  const auto* propose = std::get_if<schema::Propose>(&outgoing.message);
  if (propose == nullptr || propose->attempt > 0) return;
  oracle_.proposed(propose->e, index_of(outgoing.to), propose->fragment);
  ++nodes_[node]->active;
}

void Simulator::note(NodeIndex node, const gossip::ExchangeEvent& event) {
  using Kind = gossip::ExchangeEvent::Kind;
  if (event.kind == Kind::kForfeited) return oracle_.forfeited(event.e);
  if (event.kind != Kind::kCompletedInitiator && event.kind != Kind::kRefused &&
      event.kind != Kind::kSuspended)
    return;
  ExchangeRecord* record = oracle_.book().find(key_of(event.e));
  if (record != nullptr && record->has(ExchangeRecord::kActive)) {
    record->clear(ExchangeRecord::kActive);
    if (boot_of(event.e.incarnation) == nodes_[node]->boots()) --nodes_[node]->active;
  }
  if (event.kind == Kind::kRefused) oracle_.closed(event.e);
}

// ---- the report

gossip::ExchangeCounters Simulator::totals() const {
  gossip::ExchangeCounters sum = ended_;
  for (const auto& node : nodes_) {
    if (node->up()) add(sum, node->machine().counters());
  }
  return sum;
}

double Simulator::variance() const {
  double sum = 0.0;
  for (std::size_t i = 0; i < layout_.total(); ++i) {
    double mean = 0.0;
    double square = 0.0;
    std::uint64_t count = 0;
    Fixed origin = 0;  // of the first live node: differences of close values keep their digits
    for (const auto& node : nodes_) {
      if (!node->up()) continue;
      if (count == 0) origin = node->store().published(i);
      const double value = to_double(node->store().published(i) - origin);
      const double delta = value - mean;
      mean += delta / static_cast<double>(++count);
      square += delta * (value - mean);
    }
    if (count > 0) sum += square / static_cast<double>(count);
  }
  return sum / static_cast<double>(layout_.total());
}

void Simulator::measure() {
  const gossip::ExchangeCounters sum = totals();
  report_.variance_end = variance();
  const double node_steps = static_cast<double>(report_.steps) * layout_.fragments;
  if (node_steps > 0)
    report_.completed_per_node_step = static_cast<double>(sum.completed_initiator) / node_steps;
  const std::uint64_t refused = sum.refused_busy + sum.refused_crossing + sum.refused_other;
  if (sum.proposed > 0)
    report_.refused_share = static_cast<double>(refused) / static_cast<double>(sum.proposed);
  report_.bytes_per_node_second =
      static_cast<double>(report_.payload_bytes) / settings_.nodes / settings_.seconds;
  report_.messages_per_node_second =
      static_cast<double>(report_.messages) / settings_.nodes / settings_.seconds;
}

void Simulator::finish() {
  const gossip::ExchangeCounters sum = totals();
  report_.proposed = sum.proposed;
  report_.completed = sum.completed_initiator;
  report_.refused_busy = sum.refused_busy;
  report_.refused_crossing = sum.refused_crossing;
  report_.refused_other = sum.refused_other;
  report_.suspended = sum.suspended;
  report_.forfeited = sum.forfeited;
  report_.invalid = sum.invalid;
  for (const auto& node : nodes_) {
    for (std::size_t i = 0; i < layout_.total(); ++i)
      hash_.add(static_cast<std::uint64_t>(node->store().mass(i)));
  }
  report_.events = events_;
  report_.hash = hash_.value();
  report_.simulated_seconds = to_seconds(now_.since_start);
  report_.one_sided = oracle_.excused();
  report_.dropped = network_.counts().dropped + network_.counts().cut;
  report_.duplicated = network_.counts().duplicated;
  report_.reordered = network_.counts().delayed;
  if (const auto& violation = oracle_.violation()) {
    report_.violations = 1;
    report_.violation = violation->invariant + ": " + violation->text + "\n  at " + violated_at_ +
                        "\n  replay: " + replay_;
  }
  report_.ok = report_.violations == 0;
}

}  // namespace kith::sim
