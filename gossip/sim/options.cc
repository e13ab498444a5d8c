// The table of settings: command line, help and replay command come from it.
#include <charconv>
#include <cstdio>
#include <string>
#include <type_traits>

#include "gossip/sim/simulate.h"

namespace kith::sim {
namespace {

using S = SimulationSettings;

Status expected(std::string_view what, std::string_view value) {
  return fail(ErrorCode::kUsage,
              "expected " + std::string(what) + ", got '" + std::string(value) + "'");
}

template <typename T>
Status parse(T& to, std::string_view text, T low, T high) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= low && value <= high) {
    to = value;
    return {};
  }
  if constexpr (std::is_floating_point_v<T>) {
    return expected("a number from " + std::to_string(low) + " to " + std::to_string(high), text);
  } else {
    return expected("a whole number from " + std::to_string(low) + " to " + std::to_string(high),
                    text);
  }
}

std::string show(double value) {
  char text[32];
  const auto [end, error] =
      std::to_chars(text, text + sizeof text, value);  // shortest that reads back the same
  return error == std::errc{} ? std::string(text, end) : "?";
}
std::string show(std::uint64_t value) { return std::to_string(value); }
std::string show(std::uint32_t value) { return std::to_string(value); }
std::string show(bool value) { return value ? "true" : "false"; }
std::string show(const std::string& value) { return value; }

template <auto Member, std::uint64_t Low, std::uint64_t High>
Status set_count(S& s, std::string_view value) {
  using T = std::remove_reference_t<decltype(s.*Member)>;
  return parse<T>(s.*Member, value, static_cast<T>(Low), static_cast<T>(High));
}
// Bounds in thousandths: not every compiler takes floating-point template arguments.
template <auto Member, std::uint64_t Low, std::uint64_t High>
Status set_real(S& s, std::string_view value) {
  return parse<double>(s.*Member, value, static_cast<double>(Low) / 1000.0,
                       static_cast<double>(High) / 1000.0);
}
template <auto Member>
Status set_text(S& s, std::string_view value) {
  s.*Member = std::string(value);
  return {};
}
template <auto Member, bool On>
Status set_switch(S& s, std::string_view value) {
  if (value != "true" && value != "false") return expected("true or false", value);
  s.*Member = (value == "true") == On;
  return {};
}
template <auto Member>
std::string get(const S& s) {
  return show(s.*Member);
}
template <auto Member>
std::string get_off(const S& s) {
  return show(!(s.*Member));
}

struct MembershipPlant {
  std::string_view name;
  MembershipFault fault;
};
constexpr MembershipPlant kMembershipPlants[] = {
    {"one-accuser", MembershipFault::kOneAccuser},
    {"short-suspicion", MembershipFault::kShortSuspicion},
    {"long-suspicion", MembershipFault::kLongSuspicion},
    {"mute-gossip", MembershipFault::kMuteGossip},
    {"no-return", MembershipFault::kNoReturn},
};

Status set_plant(S& s, std::string_view value) {
  s.planted = {};
  s.membership_fault = MembershipFault::kNone;
  for (const MembershipPlant& plant : kMembershipPlants) {
    if (value != plant.name) continue;
    s.membership_fault = plant.fault;
    return {};
  }
  if (value == "apply-result-twice") {
    s.planted.apply_result_twice = true;
  } else if (value == "drop-tombstone") {
    s.planted.drop_tombstone = true;
  } else if (value == "quantise-sides-separately") {
    s.planted.quantise_sides_separately = true;
  } else if (!value.empty()) {
    return expected(
        "apply-result-twice, drop-tombstone, quantise-sides-separately, one-accuser, "
        "short-suspicion, long-suspicion, mute-gossip or no-return",
        value);
  }
  return {};
}
std::string get_plant(const S& s) {
  if (s.planted.apply_result_twice) return "apply-result-twice";
  if (s.planted.drop_tombstone) return "drop-tombstone";
  if (s.planted.quantise_sides_separately) return "quantise-sides-separately";
  for (const MembershipPlant& plant : kMembershipPlants) {
    if (s.membership_fault == plant.fault) return std::string(plant.name);
  }
  return "";
}

Status set_membership(S& s, std::string_view value) {
  if (value != "auto" && value != "swim" && value != "oracle")
    return expected("auto, swim or oracle", value);
  s.membership = std::string(value);
  return {};
}

constexpr std::uint64_t kAny = ~0ULL;

constexpr SimulationOption kOptions[] = {
    {"nodes", "how many nodes", set_count<&S::nodes, 1, 20000>, get<&S::nodes>},
    {"seconds", "simulated seconds with faults", set_real<&S::seconds, 100, 86400000>,
     get<&S::seconds>},
    {"seed", "the run's seed", set_count<&S::seed, 0, kAny>, get<&S::seed>},
    {"swarm", "draw faults, delays, budgets and method from the seed", set_switch<&S::swarm, true>,
     get<&S::swarm>, true},
    {"loss", "share of messages lost", set_real<&S::loss, 0, 900>, get<&S::loss>},
    {"duplicate", "share of messages that arrive twice", set_real<&S::duplicate, 0, 1000>,
     get<&S::duplicate>},
    {"reorder", "share of messages that arrive late", set_real<&S::reorder, 0, 1000>,
     get<&S::reorder>},
    {"latency-steps", "one-way delay in steps of 50 ms", set_real<&S::latency_steps, 0, 100000>,
     get<&S::latency_steps>},
    {"partition",
     "how often the network is cut in two during the run, every third time one way only",
     set_count<&S::partitions, 0, 1000>, get<&S::partitions>},
    {"churn", "crashes and leaves, each followed by a return, per node and minute; also joins",
     set_real<&S::churn, 0, 100000>, get<&S::churn>},
    {"pause", "processes stopped for a while, per node and minute", set_real<&S::pauses, 0, 100000>,
     get<&S::pauses>},
    {"adoptions", "states adopted from a donor, per node and minute",
     set_real<&S::adoptions, 0, 100000>, get<&S::adoptions>},
    {"slow", "share of nodes ten times slower", set_real<&S::slow, 0, 1000>, get<&S::slow>},
    {"slow-merge", "share of nodes whose merges take time", set_real<&S::slow_merge, 0, 1000>,
     get<&S::slow_merge>},
    {"busy", "share of snapshots and commits without a buffer", set_real<&S::busy, 0, 900>,
     get<&S::busy>},
    {"checkpoint-seconds", "time between checkpoints",
     set_real<&S::checkpoint_seconds, 50, 86400000>, get<&S::checkpoint_seconds>},
    {"detection-seconds", "time until a change of membership is seen",
     set_real<&S::detection_seconds, 0, 3600000>, get<&S::detection_seconds>},
    {"membership",
     "who knows whom: swim (each node's own machine), oracle (the truth, late), auto (swim up to "
     "256 "
     "nodes or with --method local)",
     set_membership, get<&S::membership>},
    {"liars", "nodes that accuse everybody each probe interval", set_count<&S::liars, 0, 20000>,
     get<&S::liars>},
    {"probe-seconds", "probe interval; 0: 0.2, or ten one-way delays if that is more",
     set_real<&S::probe_seconds, 0, 60000>, get<&S::probe_seconds>},
    {"table-max", "members that a node's machine knows; 0: all up to 2,000 nodes, else 96",
     set_count<&S::table_max, 0, 20000>, get<&S::table_max>},
    {"partial-view-above", "with more nodes than this they keep partial views",
     set_count<&S::partial_view_above, 0, 20000>, get<&S::partial_view_above>},
    {"fail", "share of nodes that die at once, for good, at two fifths of the run",
     set_real<&S::fail, 0, 950>, get<&S::fail>},
    {"permute", "nodes swap their fates; 0: they do not", set_count<&S::permute, 0, kAny>,
     get<&S::permute>},
    {"method", "training method; local: nothing is averaged, membership alone is simulated",
     set_text<&S::method>, get<&S::method>},
    {"topology", "with whom to average; empty: the method's", set_text<&S::topology>,
     get<&S::topology>},
    {"codec", "fp32: exact, bf16: stands for lossy; empty: the method's", set_text<&S::codec>,
     get<&S::codec>},
    {"alpha", "mixing weight; 0: the method's", set_real<&S::alpha, 0, 500>, get<&S::alpha>},
    {"every-steps", "steps between rounds; 0: the method's", set_count<&S::every_steps, 0, kAny>,
     get<&S::every_steps>},
    {"view-max", "peers a node knows; 0: chosen by size and topology",
     set_count<&S::view_max, 0, 20000>, get<&S::view_max>},
    {"fragments", "fragments of a replica", set_count<&S::fragments, 1, 1000>, get<&S::fragments>},
    {"values", "values of a fragment", set_count<&S::values, 1, 1000>, get<&S::values>},
    {"chunks", "chunks of a fragment", set_count<&S::chunks, 1, 1000>, get<&S::chunks>},
    {"no-training", "average start values only", set_switch<&S::training, false>,
     get_off<&S::training>, true},
    {"start-spread", "deviation of start values", set_real<&S::start_spread, 0, 1000000>,
     get<&S::start_spread>},
    {"window-chunks", "chunks under way per link; 0: default",
     set_count<&S::window_chunks, 0, 1000>, get<&S::window_chunks>},
    {"inbound-bytes", "budget for proposals of others; 0: default",
     set_count<&S::inbound_bytes_max, 0, kAny>, get<&S::inbound_bytes_max>},
    {"ledger-bytes", "budget for committed deltas; 0: default",
     set_count<&S::ledger_bytes_max, 0, kAny>, get<&S::ledger_bytes_max>},
    {"retry-seconds", "until an unanswered proposal is asked for again; 0: by latency",
     set_real<&S::retry_seconds, 0, 3600000>, get<&S::retry_seconds>},
    {"plant", "a defect for the invariants to find", set_plant, get_plant},
};

}  // namespace

std::span<const SimulationOption> simulation_options() { return kOptions; }

std::string replay_command(const SimulationSettings& settings) {
  const SimulationSettings defaults;
  std::string command = "kith simulate";
  for (const SimulationOption& option : kOptions) {
    const std::string value = option.get(settings);
    const bool always = option.name == "nodes" || option.name == "seconds" || option.name == "seed";
    if (!always && value == option.get(defaults)) continue;
    command += " --" + std::string(option.name);
    if (!option.is_switch) command += " " + value;
  }
  return command;
}

}  // namespace kith::sim
