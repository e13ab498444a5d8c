// Around every call into a machine: what it sends goes into the network, what it says goes to the
// oracle, and the call itself is checked for having blocked nobody.
#include <algorithm>
#include <string>
#include <utility>

#include "gossip/sim/node_ids.h"
#include "gossip/sim/simulator.h"

namespace kith::sim {

void Simulator::drain(NodeIndex node) {
  gossip::ExchangeMachine& machine = nodes_[node]->machine();
  std::vector<gossip::Outgoing> outgoing = machine.take_outgoing();
  check_answered(node, outgoing);
  for (gossip::Outgoing& message : outgoing) post(node, message);
  for (const gossip::ExchangeEvent& event : machine.take_events()) note(node, event);
  check_bounded(node, outgoing.size());
  arm(node);
}

// Who is asked for an exchange that is open answers at once: RESULT, CREDIT, BUSY or ABORTED.
void Simulator::check_answered(NodeIndex node, const std::vector<gossip::Outgoing>& outgoing) {
  if (asked_ == nullptr) return;
  for (const gossip::Outgoing& answer : outgoing) {
    const ExchangeId* e = exchange_of(answer.message);
    if (e != nullptr && *e == asked_->e && answer.to == asked_->e.initiator) return;
  }
  oracle_.report("nobody waits", "node " + std::to_string(node) +
                                     " was asked for an open exchange and said nothing");
}

void Simulator::check_bounded(NodeIndex node, std::size_t outputs) {
  SimNode& n = *nodes_[node];
  const gossip::ExchangeMachine& machine = n.machine();
  const std::size_t before = std::exchange(n.held, machine.open_count() + machine.ledger_entries());
  const std::size_t bound =
      8 + (settings_.chunks + 2) * (std::max(before, n.held) + layout_.fragments + 1);
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

}  // namespace kith::sim
