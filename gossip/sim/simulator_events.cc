// One handler per kind of event, and what nodes know of each other.
#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "gossip/sim/node_ids.h"
#include "gossip/sim/simulator.h"

namespace kith::sim {
namespace {}  // namespace

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
  n.machine().set_depth(n.trainer().steps(), n.trainer().steps());
  n.machine().on_step(now_, n.trainer().steps());
  drain(node);
  n.trainer().begin_step();
  push(now_ + n.next_step_time(), EventKind::kStep, node);
}

void Simulator::on_deliver(std::uint32_t slot) {
  InFlight flight = std::move(messages_[slot]);
  free_slots_.push_back(slot);
  SimNode& to = *nodes_[flight.to];
  const SimNode& from = *nodes_[flight.from];
  if (!to.up() || to.boots() != flight.to_boot || from.boots() != flight.from_boot) return;
  delivery_ = {flight.from, schema::name_of(flight.message), {}};
  if (const ExchangeId* e = exchange_of(flight.message)) delivery_.key = key_of(*e);
  if (swarm_ != nullptr) {
    swarm_->greet(flight.to, flight.from);
  } else if (membership_.known_since(flight.from) > to.view_version) {
    look_at_membership(flight.to);
  }
  const auto* propose = std::get_if<schema::Propose>(&flight.message);
  asked_ =
      propose != nullptr && propose->attempt > 0 && oracle_.is_open(propose->e) ? propose : nullptr;
  to.machine().on_message(now_, node_id(flight.from), flight.message, flight.payload);
  drain(flight.to);
  asked_ = nullptr;
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

void Simulator::on_pause(const PlannedPause& pause) {
  ++report_.pauses;
  if (swarm_ == nullptr) {
    nodes_[pause.node]->paused_until = now_ + pause.length;
    return;
  }
  if (nodes_[pause.node]->paused_until >= now_ + pause.length) return;
  stand_still(pause.node, pause.length);
  views_->paused(now_, pause.node, pause.length);
  swarm_->paused(pause.node, pause.length);
}

// A slow node gets the processor for a fifth of the time, in pieces.
void Simulator::on_stall(NodeIndex node) {
  const double still = random_.uniform(0.05, 0.6);
  const double runs = random_.uniform(0.01, 0.15);
  if (nodes_[node]->up() && nodes_[node]->paused_until < now_ + from_seconds(still))
    stand_still(node, from_seconds(still));
  push(now_ + from_seconds(still + runs), EventKind::kStall, node);
}

void Simulator::stand_still(NodeIndex node, Duration length) {
  nodes_[node]->paused_until = now_ + length;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(length);
  push(now_ + length, EventKind::kResume, node, static_cast<std::uint32_t>(ms.count()));
}

void Simulator::on_cut(std::uint32_t cut, bool active) {
  if (settling_) return;
  network_.set_cut(cut, active);
  report_.partitions += active ? 1 : 0;
  if (swarm_ == nullptr) return membership_changed();
  active ? views_->cut(now_) : views_->healed(now_);
  if (active) swarm_->network_cut();
}

// What node/ does with a node that lags: everything open is given up, a donor's state replaces its
// own.
void Simulator::on_adopt(NodeIndex node) {
  SimNode& n = *nodes_[node];
  ++report_.adoptions;
  oracle_.abandoned(node);
  n.machine().set_active(false);
  n.machine().abandon_open(now_);
  n.active = 0;
  drain(node);
  const std::vector<Fixed> state = donor_state(node);
  n.adopt(state);
  oracle_.adopted(node, n.store(), state);
  n.machine().set_active(true);
}

void Simulator::on_checkpoint(NodeIndex node) {
  SimNode& n = *nodes_[node];
  n.write_checkpoint();
  oracle_.checkpointed(node, n.boots(), n.store().published());
  push(now_ + from_seconds(settings_.checkpoint_seconds), EventKind::kCheckpoint, node);
}

void Simulator::on_sample() {
  if (!settling_) report_.variance.push_back(variance());
  if (swarm_ != nullptr) {
    views_->poll(now_);
    swarm_->inspect(inspected_++ % settings_.nodes);
  }
  push(now_ + kStepTime, EventKind::kSample, kNobody);
}

void Simulator::on_crash(const PlannedCrash& crash) {
  using Disk = PlannedCrash::Disk;
  SimNode& n = *nodes_[crash.node];
  const bool disk = (crash.disk == Disk::kKept || crash.disk == Disk::kTorn) && n.checkpoints() > 0;
  if (swarm_ != nullptr) {
    if (crash.leaves) swarm_->leave(crash.node);
    report_.leaves += crash.leaves ? 1 : 0;
    swarm_->crash(crash.node, crash.silent);
    views_->went_down(now_, crash.node, crash.leaves);
  }
  report_.crashes += crash.leaves ? 0 : 1;
  report_.crashes_disk_lost += disk ? 0 : 1;
  add_counters(ended_, n.machine().counters());
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
  ++report_.joins;
  if (swarm_ != nullptr) swarm_->boot(node);
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
  if (settling_ || swarm_ != nullptr) return;
  for (NodeIndex i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i]->up() || nodes_[i]->view_pending) continue;
    nodes_[i]->view_pending = true;
    const double delay = settings_.detection_seconds * random_.uniform(0.9, 1.1);
    push(now_ + from_seconds(delay), EventKind::kView, i);
  }
}

void Simulator::view_changed(NodeIndex node) {
  if (!nodes_[node]->up() || nodes_[node]->view_pending) return;
  nodes_[node]->view_pending = true;
  push(now_, EventKind::kView, node);
}

void Simulator::check_views() {
  if (const auto& violation = views_->violation())
    oracle_.report(violation->invariant, violation->text);
}

void Simulator::look_at_membership(NodeIndex node) {
  SimNode& n = *nodes_[node];
  if (swarm_ != nullptr) {
    n.machine().set_peers(now_, swarm_->view(node));
    return drain(node);
  }
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

}  // namespace kith::sim
