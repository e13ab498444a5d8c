// The deterministic simulator's front: settings in, report out. `kith simulate` is a thin wrapper
// around this.
//
// Runs the production ExchangeMachine of every node in one thread, over a simulated clock, network,
// trainer and disk, and checks the oracle's invariants after every event. The same settings give
// the same events, the same hash and the same report on every machine and compiler. A violation
// names the invariant, the event, the nodes and the command that replays it. Costs: about a
// microsecond per event; memory grows with nodes, views and exchanges (12 bytes each).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "gossip/exchange/exchange.h"

namespace kith::sim {

// The nominal time of one optimiser step.
inline constexpr Duration kStepTime = std::chrono::milliseconds(50);

// Defects of membership that its properties must find (planted in settings of the machines only).
enum class MembershipFault : std::uint8_t {
  kNone,
  kOneAccuser,      // one accuser convicts, and soon: a liar removes whom it likes
  kShortSuspicion,  // no time to refute: the slow are declared dead
  kLongSuspicion,   // four times the time: the dead stay too long
  kMuteGossip,      // nodes tell of nobody but themselves, and seldom compare what they know
  kNoReturn,        // who was dead or out of reach is never looked for again
};

struct SimulationSettings {
  std::uint32_t nodes = 64;
  double seconds = 20.0;  // simulated; then faults end and all must come to rest
  std::uint64_t seed = 1;
  bool swarm = false;  // draw faults, delays, budgets and method from the seed; the rest below is
                       // then ignored

  // Network, per message.
  double loss = 0.0;
  double duplicate = 0.0;
  double reorder =
      0.0;  // share of messages that are late by up to four times the latency and a step
  double latency_steps = 0.4;  // mean one-way delay in nominal steps; links differ by 10 %
  std::uint32_t partitions =
      0;  // how many times during the run the network is cut in two, every third only one way

  // Nodes.
  double churn = 0.0;      // crashes per node and simulated minute
  double pauses = 0.0;     // a process stands still for 0.1 to 3 s, per node and simulated minute
  double adoptions = 0.0;  // a node gives up what it has open and takes a donor\'s state, likewise
  double slow = 0.0;       // share of nodes whose steps take ten times as long
  double slow_merge =
      0.1;            // share of nodes whose merges take a fifth of a step (a copy from a GPU)
  double busy = 0.0;  // share of snapshots and commits that find no buffer
  double checkpoint_seconds = 2.0;
  double detection_seconds = 1.0;  // until others look at the membership after a change (oracle)

  // Membership. oracle: the truth with a delay. swim: each node's own machine. auto: swim up to 256
  // nodes and whenever nothing is averaged, else oracle (at 1,000 nodes full of exchanges, machines
  // that know everybody take five times the memory and three times the time).
  std::string membership = "auto";
  double probe_seconds = 0.0;   // 0: 0.2 (preset local), or ten one-way delays if that is more
  std::uint32_t liars = 0;      // nodes that accuse everybody each probe interval (the first ones)
  std::uint32_t table_max = 0;  // members that a machine knows; 0: all up to 2,000 nodes, else 96
  std::uint32_t partial_view_above = 512;  // more nodes than this keep partial views, as daemons do
  double fail = 0.0;          // share of nodes that die at once, for good, at two fifths of the run
  std::uint64_t permute = 0;  // other than 0: nodes swap places, fates and start values; no
                              // aggregate may notice

  // Method: as in the configuration.
  std::string method = "ad-psgd";
  std::string topology;           // empty: the method's
  std::string codec;              // empty: the method's; bf16 stands for lossy
  double alpha = 0.0;             // 0: the method's
  std::uint64_t every_steps = 0;  // 0: the method's
  std::uint32_t view_max =
      0;  // peers a node knows; 0: all up to 512 nodes or with a topology that counts them, else 64

  // Model.
  std::uint32_t fragments = 2;
  std::uint32_t values = 4;   // per fragment
  std::uint32_t chunks = 2;   // per fragment, at most `values`
  bool training = true;       // false: h = 0, only start values are averaged
  double start_spread = 1.0;  // deviation of the nodes' start values

  // Exchange machine; 0 = its default.
  std::uint32_t window_chunks = 0;
  std::uint64_t inbound_bytes_max = 0;
  std::uint64_t ledger_bytes_max = 0;
  double retry_seconds = 0.0;  // 0: 0.4 s, or 2.5 round trips if that is more

  gossip::PlantedFaults planted;
  MembershipFault membership_fault = MembershipFault::kNone;
};

// Whether the nodes run Swim machines, and whether they do nothing else.
bool uses_swim(const SimulationSettings& settings);
bool membership_only(const SimulationSettings& settings);

// Every setting that the command line can set, by its flag's name without dashes: one table for the
// parser, the help and replay_command().
struct SimulationOption {
  std::string_view name;
  std::string_view help;
  // Parses and sets; kUsage with what was expected.
  Status (*set)(SimulationSettings&, std::string_view value);
  std::string (*get)(const SimulationSettings&);
  bool is_switch = false;  // takes no value on the command line; set() gets "true"
};
std::span<const SimulationOption> simulation_options();

// "kith simulate --nodes 64 --seconds 20 --seed 7 --loss 0.1": every setting that is not the
// default.
std::string replay_command(const SimulationSettings& settings);

struct SimulationReport {
  bool ok = false;               // no violation
  std::string violation;         // invariant, event, nodes and replay command; empty if none
  std::uint64_t violations = 0;  // 0 or 1: a run stops at the first
  std::uint64_t seed = 0;
  std::uint64_t events = 0;
  std::uint64_t hash = 0;
  // Counts over all nodes and lives.
  std::uint64_t steps = 0, messages = 0, payload_bytes = 0;
  std::uint64_t proposed = 0, completed = 0, refused_busy = 0, refused_crossing = 0,
                refused_other = 0;
  std::uint64_t suspended = 0, forfeited = 0, one_sided = 0, invalid = 0;
  std::uint64_t crashes = 0, crashes_disk_lost = 0, crashes_for_good = 0, partitions = 0;
  std::uint64_t pauses = 0, adoptions = 0;
  std::uint64_t dropped = 0, duplicated = 0, reordered = 0;
  double simulated_seconds = 0.0;        // rest included
  double settle_seconds = 0.0;           // from the end of faults until all was quiet
  double completed_per_node_step = 0.0;  // exchanges of one fragment, per node, step and fragment
  double refused_share = 0.0;            // of proposals
  double variance_start = 0.0, variance_end = 0.0;  // over live nodes, mean over values, of R
  double variance_factor_per_step = 0.0;            // geometric mean over the run
  double variance_decay_per_step = 0.0;  // ... while it falls: until it is near where it stays
  double bytes_per_node_second = 0.0,
         messages_per_node_second = 0.0;  // payload; headers are about 100 bytes each
  // Membership by Swim machines; zero with the oracle.
  bool swim = false;
  std::uint64_t control_messages = 0;
  double control_bytes_per_node_second = 0.0;  // encoded headers, second half of the run
  double control_messages_per_node_second = 0.0;
  std::uint64_t joins = 0, leaves = 0;
  std::uint64_t deaths = 0;               // crashes that lasted until everybody had to know
  double detection_first_seconds = 0.0;   // median: until the first node knows
  double detection_median_seconds = 0.0;  // ... until a node knows
  double detection_p99_seconds = 0.0;
  double removal_bound_seconds = 0.0;   // suspicion max + 3 log2 n ticks
  std::uint64_t false_deaths = 0;       // of nodes that were well
  std::uint64_t false_death_views = 0;  // observers that believed one
  double node_hours = 0.0;
  double dissemination_p99_ticks = 0.0, dissemination_bound_ticks = 0.0;
  std::uint64_t dissemination_samples = 0;
  std::uint64_t suspicions = 0, refutations = 0;
  std::uint32_t table = 0;  // members that a machine knows at most
  bool partial_views = false;
  std::string view_violation;    // at the end: active views not symmetric, or not connected
  double view_chi_square = 0.0;  // of in-degrees of passive views over its degrees of freedom
  std::vector<double> variance;  // one entry per nominal step of the run
  std::string text;              // for people; ends with last_line
  std::string last_line;         // "seed=7 events=123 hash=0123456789abcdef violations=0"
};

struct SimulationProgress {
  double simulated_seconds = 0.0;
  double of_seconds = 0.0;
  std::uint64_t events = 0;
};
// Called now and then (about every 65,536 events); whoever passes it decides by its own clock when
// to print.
using ProgressCallback = std::function<void(const SimulationProgress&)>;

// kUsage if the settings make no sense together (unknown method, 0 nodes, a topology that does not
// fit ...). A violation is not an error here: see the report.
Result<SimulationReport> try_simulation(const SimulationSettings& settings,
                                        const ProgressCallback& progress = {});
// The same for settings that are known to be good: the error becomes the report's violation.
SimulationReport run_simulation(const SimulationSettings& settings,
                                const ProgressCallback& progress = {});

// What `swarm` draws for this seed (nodes, seconds and planted faults kept).
SimulationSettings draw_swarm(const SimulationSettings& settings);

}  // namespace kith::sim
