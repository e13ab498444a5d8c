#include "monitoring/metrics.h"

#include <prometheus/histogram.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>
#include <vector>

#include "monitoring/exposition.h"
#include "monitoring/process_stats.h"

namespace kith::monitoring {
namespace {

using prometheus::Histogram;

// Half a millisecond to a minute, and zero to a hundred steps: wide enough for a small model on
// loopback as for a large one across a continent, and few enough to keep a scrape small.
const Histogram::BucketBoundaries kSecondsBuckets = {
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
const Histogram::BucketBoundaries kStepsBuckets = {0, 1, 2, 3, 5, 10, 20, 50, 100};

const char* compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

}  // namespace

struct Metrics::Impl {
  Impl(const Clock& c, std::unique_ptr<GpuStats> g) : clock(c), gpus(std::move(g)) {}

  void identity(Exposition& out, const NodeSnapshot& s) const;
  void training(Exposition& out, const NodeSnapshot& s) const;
  void evaluation(Exposition& out, const NodeSnapshot& s) const;
  void exchanges(Exposition& out, const NodeSnapshot& s) const;
  void traffic(Exposition& out, const NodeSnapshot& s) const;
  void members(Exposition& out, const NodeSnapshot& s);
  void safety(Exposition& out, const NodeSnapshot& s) const;
  void process(Exposition& out) const;
  void cards(Exposition& out) const;

  const Clock& clock;
  const std::unique_ptr<GpuStats> gpus;         // null: no NVML here
  Histogram step_seconds{kSecondsBuckets};      // locks itself
  Histogram exchange_seconds{kSecondsBuckets};  // likewise
  Histogram staleness_steps{kStepsBuckets};     // likewise

  std::mutex mutex;          // one render at a time
  CounterCarry carry;        // guarded by mutex
  MemberSeries peer_series;  // guarded by mutex
};

void Metrics::Impl::identity(Exposition& out, const NodeSnapshot& s) const {
  out.gauge("kith_build_info", "Version and compiler of this program; always 1.", 1,
            {{"version", s.version}, {"compiler", compiler()}});
  out.gauge("kith_node_info", "Who this node is and what it trains; always 1.", 1,
            {{"node", s.name}, {"id", s.id}, {"run", s.run}, {"model_hash", s.model_hash}});
  for (const char* state : kRunStateNames) {
    out.gauge("kith_node_state", "1 for what this node is doing, 0 for what it is not.",
              s.run_state == state ? 1 : 0, {{"state", state}});
  }
  out.gauge("kith_config_last_reload_successful",
            "1 if the configuration was read without an error, at the start or the last SIGHUP.",
            s.reload_successful ? 1 : 0);
}

void Metrics::Impl::training(Exposition& out, const NodeSnapshot& s) const {
  out.counter("kith_train_steps_total", "Optimiser steps of this node.", s.steps);
  out.counter("kith_train_samples_total", "Training samples that this node has done.", s.samples);
  out.counter("kith_train_tokens_total",
              "Tokens in those samples; 0 where samples are not sequences of tokens.", s.tokens);
  out.counter("kith_train_flops_total",
              "Floating-point operations of those samples: three forward passes' multiply-adds.",
              s.flops);
  out.gauge("kith_train_loss", "Training loss, exponential mean over recent steps.", s.loss);
  out.gauge("kith_train_learning_rate", "Learning rate of the latest step.", s.learning_rate);
  out.gauge("kith_train_grad_norm", "Euclidean norm of the latest gradient, before clipping.",
            s.grad_norm);
  for (std::size_t i = 0; i < kPhaseNames.size(); ++i) {
    out.counter("kith_train_step_phase_seconds_total",
                "Time that the trainer spent in each phase of its steps.", s.phase_seconds[i],
                {{"phase", kPhaseNames[i]}});
  }
  out.counter("kith_train_idle_seconds_total",
              "Time that the trainer idled because min_step_ms asks for it.", s.idle_seconds);
  out.gauge("kith_train_healthy",
            "1 while loss and parameters are finite, 0 while training is held.", s.healthy ? 1 : 0);
  out.counter("kith_train_nonfinite_total",
              "Times that the loss or the parameters were not finite.", s.nonfinite);
  out.counter("kith_train_clamped_values_total",
              "Running variances that had to be clamped after a merge.", s.clamped_values);
  out.counter("kith_train_merged_values_total", "Values that had a delta added at a safe point.",
              s.merged_values);
  out.counter("kith_train_published_values_total", "Values copied for peers to see.",
              s.published_values);
  out.counter("kith_train_skipped_fragments_total",
              "Fragments left for the next safe point because they were busy.",
              s.skipped_fragments);
  out.histogram("kith_train_step_duration_seconds",
                "Duration of optimiser steps, idling for min_step_ms left out.",
                step_seconds.Collect());
  out.gauge("kith_train_shard_samples",
            "Samples of the training file that this node trains on at present.",
            static_cast<double>(s.shard_samples));
  out.gauge("kith_train_model_depth_steps",
            "Optimiser steps that the model contains in sequence; far below others': adopt.",
            static_cast<double>(s.model_depth));
  out.counter("kith_adoptions_total", "States of the cluster that this node has taken.",
              s.adoptions);
  out.gauge("kith_run_progress_samples",
            "Samples that all nodes together have done, as known here.",
            static_cast<double>(s.progress_samples));
  out.gauge("kith_run_progress_epochs", "The same in passes over the cluster's data.",
            s.progress_epochs);
  out.gauge("kith_run_length_samples", "Samples after which the run is complete.",
            s.length_samples);
  if (s.step_log) {
    out.counter("kith_step_log_lines_total", "Lines written to the per-step log.",
                s.step_log->written);
    out.counter("kith_step_log_lost_lines_total",
                "Steps without a line: the file could not be written, or not fast enough.",
                s.step_log->lost);
  }
}

void Metrics::Impl::evaluation(Exposition& out, const NodeSnapshot& s) const {
  out.counter("kith_evaluations_total", "Evaluations on the test set.", s.evaluations);
  const std::initializer_list<std::pair<const char*, const Evaluation*>> both = {
      {"local", &s.local}, {"averaged", &s.averaged}};
  for (const auto& [params, result] : both) {
    out.gauge("kith_eval_loss", "Loss on the test set with these parameters.", result->loss,
              {{"params", params}});
    out.gauge("kith_eval_accuracy_ratio",
              "Share of the test set that is classified rightly with these parameters.",
              result->accuracy_ratio, {{"params", params}});
  }
}

void Metrics::Impl::exchanges(Exposition& out, const NodeSnapshot& s) const {
  constexpr const char* kHelp =
      "Exchanges of one fragment that ended in averaging, by this node's role.";
  out.counter("kith_exchanges_total", kHelp, s.exchanges_initiator, {{"role", "initiator"}});
  out.counter("kith_exchanges_total", kHelp, s.exchanges_responder, {{"role", "responder"}});
  std::map<std::pair<std::string, std::string>, std::uint64_t>
      failures;  // one series each, however they were listed
  for (const ExchangeFailures& f : s.failures) failures[{f.role, f.reason}] += f.count;
  for (const auto& [key, count] : failures) {
    out.counter("kith_exchanges_failed_total",
                "Exchanges that did not end in averaging, by role and reason.", count,
                {{"role", key.first}, {"reason", key.second}});
  }
  out.histogram("kith_exchange_duration_seconds",
                "From proposing a fragment to applying the result.", exchange_seconds.Collect());
  out.histogram("kith_exchange_staleness_steps",
                "Steps made between publishing what was proposed and applying the result.",
                staleness_steps.Collect());
  out.gauge("kith_consensus_distance",
            "Norm of the difference between two replicas, as seen in recent exchanges.",
            s.consensus_distance);
  out.gauge("kith_consensus_distance_relative",
            "The same, relative to the norm of the replicas' mean.", s.consensus_distance_relative);
  out.counter("kith_exchange_retries_total",
              "Times that an unanswered proposal was asked for again.", s.retries);
  out.counter("kith_exchange_replays_total", "Stored results that were sent again.", s.replays);
  out.counter("kith_exchange_duplicates_total", "Messages of closed exchanges that were ignored.",
              s.duplicates_ignored);
  out.counter("kith_exchange_invalid_total",
              "Messages that made no sense from the peer that sent them.", s.invalid_messages);
  out.counter("kith_exchange_forfeited_total",
              "Ledger entries dropped before the peer acknowledged them.", s.forfeited);
  out.gauge("kith_exchange_ledger_entries", "Committed results that no peer has acknowledged yet.",
            static_cast<double>(s.ledger_entries));
  out.gauge("kith_exchange_ledger_bytes", "Bytes held by those results.",
            static_cast<double>(s.ledger_bytes));
}

void Metrics::Impl::traffic(Exposition& out, const NodeSnapshot& s) const {
  constexpr const char* kNetwork = "Bytes of messages on the wire, by plane.";
  const auto network = [&](const char* direction, const char* kind, std::uint64_t bytes) {
    out.counter("kith_network_bytes_total", kNetwork, bytes,
                {{"direction", direction}, {"kind", kind}});
  };
  network("sent", "control", s.control_bytes_sent);
  network("received", "control", s.control_bytes_received);
  network("sent", "bulk", s.bulk_bytes_sent);
  network("received", "bulk", s.bulk_bytes_received);
  constexpr const char* kPayload = "Bytes of encoded parameters in exchanges.";
  out.counter("kith_exchange_payload_bytes_total", kPayload, s.payload_bytes_sent,
              {{"direction", "sent"}});
  out.counter("kith_exchange_payload_bytes_total", kPayload, s.payload_bytes_received,
              {{"direction", "received"}});
  out.counter("kith_network_queue_full_total",
              "Messages not sent because the queue to a peer had no room.", s.queue_full);
  constexpr const char* kRefused = "Connections ended by this node, by why.";
  const auto refused = [&](const char* reason, std::uint64_t count) {
    out.counter("kith_network_refused_total", kRefused, count, {{"reason", reason}});
  };
  refused("handshake", s.handshakes_refused);
  refused("key", s.connections_refused);
  refused("flood", s.connections_cut);
}

void Metrics::Impl::members(Exposition& out, const NodeSnapshot& s) {
  std::map<std::string, std::uint64_t> by_state = {
      {"alive", 0}, {"suspect", 0}, {"dead", 0}, {"left", 0}};
  for (const MemberSnapshot& m : s.members) {
    if (const auto state = by_state.find(m.state); state != by_state.end()) ++state->second;
  }
  for (const auto& [state, count] : by_state) {
    out.gauge("kith_members", "Members of the cluster as this node sees them, itself included.",
              static_cast<double>(count), {{"state", state}});
  }
  out.counter("kith_membership_probes_total", "Members asked whether they are there.", s.probes);
  out.counter("kith_membership_probes_failed_total",
              "Probes that neither the member nor a helper answered.", s.probes_failed);
  out.counter("kith_membership_suspicions_total", "Times that a member was held suspect.",
              s.suspicions);
  out.counter("kith_membership_convictions_total", "Times that a member was held dead.",
              s.convictions);
  out.counter("kith_membership_refutations_total",
              "Times that this node was called suspect or dead, and answered.", s.refutations);
  out.gauge("kith_membership_local_health",
            "How unwell this node finds itself (Lifeguard): 0 is well; its timeouts are stretched "
            "by one more than this.",
            static_cast<double>(s.local_health));
  out.gauge("kith_membership_isolated", "1 while no other member answers this node.",
            s.isolated ? 1 : 0);
  for (const MemberSnapshot& m : peer_series.update(clock.now(), s.id, s.members)) {
    const Labels labels = {{"id", m.id}, {"source", s.name}, {"target", m.name}};
    out.gauge("kith_peer_rtt_seconds", "Round trip of the latest probe of a peer.", m.rtt_seconds,
              labels);
    out.gauge("kith_peer_last_exchange_timestamp_seconds",
              "When the latest exchange with a peer ended.", m.last_exchange_timestamp_seconds,
              labels);
  }
}

void Metrics::Impl::safety(Exposition& out, const NodeSnapshot& s) const {
  out.gauge("kith_checkpoint_last_success_timestamp_seconds",
            "When the latest checkpoint was complete on disk.", s.checkpoint_timestamp_seconds);
  out.gauge("kith_checkpoint_interval_seconds", "Time between checkpoints, as configured.",
            s.checkpoint_interval_seconds);
  out.counter("kith_checkpoints_total", "Checkpoints written.", s.checkpoints);
  out.counter("kith_checkpoint_errors_total", "Checkpoints that could not be written.",
              s.checkpoint_errors);
}

void Metrics::Impl::process(Exposition& out) const {
  const ProcessStats p = read_process_stats();
  out.counter("process_cpu_seconds_total", "User and system CPU time.", p.cpu_seconds);
  out.gauge("process_resident_memory_bytes", "Resident memory.", p.resident_bytes);
  out.gauge("process_virtual_memory_bytes", "Virtual memory.", p.virtual_bytes);
  out.gauge("process_open_fds", "Open file descriptors.", p.open_fds);
  out.gauge("process_max_fds", "Most file descriptors that may be open.", p.max_fds);
  out.gauge("process_threads", "Threads.", p.threads);
  out.gauge("process_start_time_seconds", "When the process started, seconds since 1970.",
            p.start_time_seconds);
}

void Metrics::Impl::cards(Exposition& out) const {
  if (gpus == nullptr) return;
  for (const GpuSample& g : gpus->read()) {
    const Labels labels = {{"gpu", g.index}, {"uuid", g.uuid}};
    out.gauge("kith_gpu_info", "Graphics cards that this node sees; always 1.", 1,
              {{"gpu", g.index}, {"uuid", g.uuid}, {"name", g.name}});
    out.gauge("kith_gpu_utilization_ratio", "Share of the last moments in which a kernel ran.",
              g.utilization_ratio, labels);
    out.gauge("kith_gpu_memory_used_bytes", "Memory in use, by all processes.", g.memory_used_bytes,
              labels);
    out.gauge("kith_gpu_memory_size_bytes", "Memory that the card has.", g.memory_size_bytes,
              labels);
    out.counter("kith_gpu_energy_joules_total", "Energy used since the driver was loaded.",
                g.energy_joules, labels);
    out.gauge("kith_gpu_power_watts", "Power drawn at present.", g.power_watts, labels);
    out.gauge("kith_gpu_temperature_celsius", "Temperature of the chip.", g.temperature_celsius,
              labels);
  }
}

Metrics::Metrics(const Clock& clock, std::unique_ptr<GpuStats> gpus)
    : impl_(std::make_unique<Impl>(clock, std::move(gpus))) {}
Metrics::~Metrics() = default;

void Metrics::observe_step(double seconds) { impl_->step_seconds.Observe(seconds); }

void Metrics::observe_exchange(double seconds, std::uint64_t staleness_steps) {
  impl_->exchange_seconds.Observe(seconds);
  impl_->staleness_steps.Observe(static_cast<double>(staleness_steps));
}

std::string Metrics::render(const NodeSnapshot& snapshot) {
  const std::lock_guard lock(impl_->mutex);
  Exposition out(impl_->carry);
  impl_->identity(out, snapshot);
  impl_->training(out, snapshot);
  impl_->evaluation(out, snapshot);
  impl_->exchanges(out, snapshot);
  impl_->traffic(out, snapshot);
  impl_->members(out, snapshot);
  impl_->safety(out, snapshot);
  impl_->process(out);
  impl_->cards(out);
  return out.text();
}

}  // namespace kith::monitoring
