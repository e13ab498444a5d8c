// NodeSnapshot: what one node looks like at one moment, as plain values: the only thing that
// monitoring sees of the rest of the house. Components count in structs of their own; node/ copies
// those into a snapshot whenever somebody asks, and monitoring/ turns it into metrics. An empty
// optional means "not known (yet)": the series is then absent, since a zero would be read as a
// measurement. Thread: a value; the node makes it from copies of its components' counters. Units:
// seconds, bytes, ratios of 0 to 1.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kith::monitoring {

// The phases of a training step, in the order of NodeSnapshot::phase_seconds; values of the label
// `phase`.
inline constexpr std::array<const char*, 6> kPhaseNames = {"data",      "forward", "backward",
                                                           "optimizer", "merge",   "wait"};

// What a node is doing; values of the label `state` of kith_node_state.
inline constexpr std::array<const char*, 6> kRunStateNames = {"waiting",   "joining",  "training",
                                                              "finishing", "complete", "leaving"};

// A result on the test set, with this node's own parameters ("local") or the cluster's final model
// ("averaged").
struct Evaluation {
  std::optional<double> loss;
  std::optional<double> accuracy_ratio;
};

// Exchanges of one fragment that did not end in averaging.
struct ExchangeFailures {
  std::string role;    // "initiator" | "responder"
  std::string reason;  // a small closed set of words: "busy", "timeout", "crossing", "lag", ...
  std::uint64_t count = 0;
};

struct MemberSnapshot {
  std::string name;
  std::string id;     // hexadecimal, unique; the name need not be
  std::string state;  // "alive" | "suspect" | "dead" | "left"
  std::optional<double> rtt_seconds;
  std::optional<double> last_exchange_timestamp_seconds;  // seconds since 1970
  // What it last said of itself.
  std::string run_state, address, http_address;
  std::uint64_t steps = 0;
  std::optional<double> loss, accuracy_ratio, steps_per_second;
};

// What became of the lines of the per-step log.
struct StepLogCounts {
  std::uint64_t written = 0, lost = 0;
};

struct NodeSnapshot {
  // identity
  std::string name, id, run, model_hash, version;
  bool reload_successful = true;  // of the configuration, at the start or the last SIGHUP
  std::string cluster, method;
  std::string run_state;             // one of kRunStateNames
  std::string waiting_for, trouble;  // sentences; "" if there is nothing to say

  // training; counters since the process started
  std::uint64_t steps = 0, samples = 0, tokens = 0;
  double flops = 0.0;
  std::optional<double> loss, learning_rate, grad_norm;
  std::optional<double> steps_per_second;
  std::array<double, kPhaseNames.size()> phase_seconds{};
  double idle_seconds = 0.0;  // only what min_step_ms adds
  bool healthy = true;        // loss and parameters are finite
  std::uint64_t evaluations = 0;
  Evaluation local, averaged;
  std::uint64_t nonfinite = 0, clamped_values = 0, merged_values = 0, published_values = 0;
  std::uint64_t skipped_fragments = 0;

  // the cluster's progress as this node knows it
  std::uint64_t progress_samples = 0;
  std::optional<double> progress_epochs;
  std::optional<double>
      length_samples;  // of the whole run; empty: it has no end, or is counted in steps
  std::optional<StepLogCounts> step_log;  // empty: there is none

  // exchanges
  std::uint64_t exchanges_initiator = 0, exchanges_responder = 0;  // ended in averaging
  std::vector<ExchangeFailures> failures;
  std::uint64_t retries = 0, replays = 0, duplicates_ignored = 0, invalid_messages = 0;
  std::uint64_t forfeited = 0;
  std::uint64_t payload_bytes_sent = 0, payload_bytes_received = 0;
  std::uint64_t control_bytes_sent = 0, control_bytes_received = 0;
  std::uint64_t bulk_bytes_sent = 0, bulk_bytes_received = 0;
  std::uint64_t queue_full = 0;  // messages not sent, since a peer's queue had no room
  std::uint64_t handshakes_refused = 0, connections_refused = 0, connections_cut = 0;
  std::optional<double> consensus_distance;           // norm of the difference of two replicas
  std::optional<double> consensus_distance_relative;  // the same over the norm of the mean
  std::optional<double> staleness_steps;              // median of recent exchanges
  std::uint64_t ledger_entries = 0, ledger_bytes = 0;

  // membership: all that this node knows, itself included
  std::vector<MemberSnapshot> members;
  std::uint64_t probes = 0, probes_failed = 0, suspicions = 0, convictions = 0, refutations = 0;
  std::optional<std::size_t> neighbours;  // links kept with a partial view; empty: links with all
  unsigned local_health = 0;  // 0 = well; above, this node is slow to answer and blames others less
  bool isolated = false;      // no member answers
  std::uint64_t adoptions = 0;      // states taken from other members
  std::uint64_t model_depth = 0;    // optimiser steps that the model contains in sequence
  std::uint64_t shard_samples = 0;  // of the training file, trained on by this node

  // safety
  std::optional<double> checkpoint_timestamp_seconds;  // last success, seconds since 1970
  std::optional<std::uint64_t> checkpoint_step;
  std::uint64_t checkpoints = 0, checkpoint_errors = 0;
  std::optional<double> checkpoint_interval_seconds;  // empty: only when leaving
};

}  // namespace kith::monitoring
