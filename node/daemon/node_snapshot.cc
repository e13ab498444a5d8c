#include "node/daemon/node_snapshot.h"

#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

namespace kith::node {

using compute::TrainerStats;
using monitoring::NodeSnapshot;

namespace {

constexpr const char* kReasons[] = {"unknown",  "crossing",  "lag",      "nonfinite",
                                    "mismatch", "not_ready", "withdrawn"};

std::optional<double> finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

void show_self(const NodeStatus& s, NodeSnapshot& out) {
  out.name = s.self.name;
  out.id = s.self.id.hex();
  out.version = s.self.version_text;
  out.run_state = schema::name_of(s.self.run_state);
  out.waiting_for = s.waiting_for;
  out.trouble = s.trouble;
  out.isolated = s.isolated;
  out.adoptions = s.adoptions;
  out.model_depth = s.self.depth;
  out.shard_samples = s.self.shard_samples;
}

void show_training(const TrainerStats& t, NodeSnapshot& out) {
  out.steps = t.steps;
  out.samples = t.samples;
  out.flops = t.flops;
  out.loss = finite(t.loss);
  out.learning_rate = finite(t.learning_rate);
  out.grad_norm = finite(t.grad_norm);
  out.steps_per_second = finite(t.steps_per_second);
  for (std::size_t i = 0; i < out.phase_seconds.size(); ++i)
    out.phase_seconds[i] = t.phase_seconds[i];
  out.idle_seconds = t.idle_seconds;
  out.local = {finite(t.eval_loss), finite(t.eval_accuracy)};
  out.healthy = t.healthy;
  out.evaluations = t.evaluations;
  out.nonfinite = t.nonfinite;
  out.clamped_values = t.clamped_values;
  out.merged_values = t.merged_values;
  out.published_values = t.published_values;
  out.skipped_fragments = t.skipped_fragments;
}

void show_progress(const NodeStatus& s, NodeSnapshot& out) {
  out.progress_samples = s.progress;
  out.progress_epochs = s.epoch;
  if (s.length_samples > 0) out.length_samples = s.length_samples;
  if (s.final_accuracy >= 0) out.averaged.accuracy_ratio = s.final_accuracy;
}

void show_failures(const NodeStatus& s, NodeSnapshot& out) {
  const auto& c = s.exchange.counters;
  out.failures.push_back({"initiator", "busy", c.refused_busy});
  out.failures.push_back({"initiator", "timeout", c.suspended});
  out.failures.push_back({"responder", "busy", s.refused_others_busy});
  for (std::size_t i = 0; i < std::size(kReasons); ++i) {
    out.failures.push_back({"initiator", kReasons[i], s.refused_by_reason[i]});
    out.failures.push_back({"responder", kReasons[i], s.refused_others_by_reason[i]});
  }
}

void show_exchanges(const NodeStatus& s, NodeSnapshot& out) {
  const auto& c = s.exchange.counters;
  out.exchanges_initiator = c.completed_initiator;
  out.exchanges_responder = c.completed_responder;
  show_failures(s, out);
  out.retries = c.retries;
  out.replays = c.replays;
  out.duplicates_ignored = c.duplicates_ignored;
  out.invalid_messages =
      c.invalid + s.exchange.mesh.dropped_malformed + s.control.dropped_malformed;
  out.forfeited = c.forfeited;
  out.payload_bytes_sent = c.payload_bytes_sent;
  out.payload_bytes_received = c.payload_bytes_received;
  if (s.consensus_relative >= 0) out.consensus_distance_relative = s.consensus_relative;
  if (s.consensus_absolute >= 0) out.consensus_distance = s.consensus_absolute;
  if (s.staleness_steps >= 0) out.staleness_steps = s.staleness_steps;
  out.ledger_entries = s.exchange.ledger_entries;
  out.ledger_bytes = s.exchange.ledger_bytes;
}

void show_links(const NodeStatus& s, NodeSnapshot& out) {
  const auto& control = s.control;
  const auto& bulk = s.exchange.mesh;
  out.control_bytes_sent = control.bytes_sent;
  out.control_bytes_received = control.bytes_received;
  out.bulk_bytes_sent = bulk.bytes_sent;
  out.bulk_bytes_received = bulk.bytes_received;
  out.queue_full = control.dropped_no_room + bulk.dropped_no_room;
  out.handshakes_refused = control.handshakes_refused + bulk.handshakes_refused;
  out.connections_refused = control.connections_refused + bulk.connections_refused;
  out.connections_cut = control.connections_cut + bulk.connections_cut;
}

// `rtt_seconds` below 0: not known.
monitoring::MemberSnapshot member_of(const NodeStatus& s, const schema::MemberRecord& r,
                                     double rtt_seconds) {
  monitoring::MemberSnapshot member;
  member.name = r.name;
  member.id = r.id.hex();
  member.state = schema::name_of(r.state);
  if (rtt_seconds >= 0) member.rtt_seconds = rtt_seconds;
  member.run_state = schema::name_of(r.run_state);
  member.address = r.control_address;
  member.http_address = r.http_address;
  member.steps = r.step;
  member.loss = finite(r.loss);
  member.accuracy_ratio = finite(r.accuracy);
  member.steps_per_second = finite(r.steps_per_second);
  if (const auto last = s.last_exchange_wall_seconds.find(r.id);
      last != s.last_exchange_wall_seconds.end())
    member.last_exchange_timestamp_seconds = last->second;
  return member;
}

void show_members(const NodeStatus& s, NodeSnapshot& out) {
  out.members.push_back(member_of(s, s.self, -1.0));
  for (const auto& member : s.members)
    out.members.push_back(member_of(s, member.record(), member.rtt_seconds));
  out.probes = s.swim.probes;
  out.probes_failed = s.swim.probes_failed;
  out.suspicions = s.swim.suspicions;
  out.convictions = s.swim.convictions;
  out.refutations = s.swim.refutations;
  out.local_health = s.local_health;
  out.neighbours = s.neighbours;
}

void show_checkpoints(const NodeStatus& s, NodeSnapshot& out) {
  out.checkpoints = s.checkpoints.written;
  out.checkpoint_errors = s.checkpoints.failed;
  if (s.checkpoints.written == 0) return;
  out.checkpoint_step = s.checkpoints.last_step;
  out.checkpoint_timestamp_seconds = s.checkpoints.last_success_wall_seconds;
}

}  // namespace

NodeSnapshot snapshot_of(const NodeStatus& status, const TrainerStats& trainer) {
  NodeSnapshot out;
  show_self(status, out);
  show_training(trainer, out);
  show_progress(status, out);
  show_exchanges(status, out);
  show_links(status, out);
  show_members(status, out);
  show_checkpoints(status, out);
  return out;
}

}  // namespace kith::node
