#include "gossip/sim/simulate.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include "gossip/method.h"
#include "gossip/sim/membership_run.h"
#include "gossip/sim/simulator.h"
#include "gossip/topology.h"

namespace kith::sim {
namespace {

constexpr std::uint32_t kAutoSwimNodes = 256;

template <typename... Args>
std::string format(const char* pattern, Args... args) {
  char text[512];
  const int length = std::snprintf(text, sizeof text, pattern, args...);
  return {text, static_cast<std::size_t>(std::min<int>(length, sizeof text - 1))};
}

gossip::MethodOverrides overrides_of(const SimulationSettings& settings) {
  gossip::MethodOverrides overrides;
  if (!settings.topology.empty()) overrides.topology = settings.topology;
  if (!settings.codec.empty()) overrides.codec = settings.codec;
  if (settings.alpha > 0.0) overrides.alpha = settings.alpha;
  if (settings.every_steps > 0) overrides.every_steps = settings.every_steps;
  return overrides;
}

Status check(const SimulationSettings& settings) {
  if (settings.nodes == 0) return fail(ErrorCode::kUsage, "--nodes: at least one node is needed");
  if (settings.chunks > settings.values) {
    return fail(ErrorCode::kUsage, "--chunks " + std::to_string(settings.chunks) +
                                       ": a fragment of " + std::to_string(settings.values) +
                                       " values has no more chunks than values");
  }
  if (settings.liars >= settings.nodes && settings.liars > 0)
    return fail(ErrorCode::kUsage, "--liars: at least one node must be honest");
  if (!uses_swim(settings) && (settings.liars > 0 || settings.fail > 0.0 ||
                               settings.membership_fault != MembershipFault::kNone))
    return fail(
        ErrorCode::kUsage,
        "--liars, --fail and defects of membership need --membership swim (or --method local)");
  if (settings.fail > 0.0 && table_size(settings) + 1 < settings.nodes)
    return fail(ErrorCode::kUsage, "--fail needs tables that hold everybody: --table-max " +
                                       std::to_string(settings.nodes));
  return {};
}

// Variance falls geometrically until what training and restarts add holds it up.
double decay_per_step(const SimulationReport& report) {
  const std::vector<double>& v = report.variance;
  if (v.size() < 4 || report.variance_start <= 0.0) return 0.0;
  const double rest =
      quantile({v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end()}, 0.5);
  const double level = std::max(4.0 * rest, 1e-15 * report.variance_start);
  const auto there = std::find_if(v.begin() + 1, v.end(), [&](double x) { return x <= level; });
  if (there == v.end() || *there <= 0.0) return 0.0;
  return std::pow(*there / report.variance_start, 1.0 / static_cast<double>(there - v.begin()));
}

double factor_per_step(const SimulationReport& report) {
  if (report.variance_start <= 0.0 || report.variance_end <= 0.0 || report.variance.size() < 2)
    return 0.0;
  return std::pow(report.variance_end / report.variance_start,
                  1.0 / static_cast<double>(report.variance.size()));
}

std::string head(const SimulationSettings& settings, const SimulationReport& r) {
  return format("%" PRIu32 " nodes, %.1f s simulated (%.1f s until all was quiet)", settings.nodes,
                r.simulated_seconds, r.settle_seconds);
}

std::string fault_lines(const SimulationSettings& settings, const SimulationReport& r) {
  std::string text =
      format("faults     loss %.1f %%, duplicates %.1f %%, reordered %.1f %%, %" PRIu64
             " partitions; %" PRIu64 " crashes (%" PRIu64 " lost their disk, %" PRIu64
             " for good), %" PRIu64 " pauses, %" PRIu64 " adoptions",
             100 * settings.loss, 100 * settings.duplicate, 100 * settings.reorder, r.partitions,
             r.crashes, r.crashes_disk_lost, r.crashes_for_good, r.pauses, r.adoptions);
  if (r.swim)
    text += format(", %" PRIu64 " joins and returns, %" PRIu64 " leaves, %" PRIu32 " liars",
                   r.joins, r.leaves, settings.liars);
  return text + "\n";
}

std::string membership_lines(const SimulationSettings& settings, const SimulationReport& r) {
  if (!r.swim)
    return "membership the truth, seen late (--membership swim: each node's own machine)\n";
  const gossip::SwimSettings swim = swim_settings(settings);
  std::string text =
      format("membership SWIM, a probe each %.2f s, ", to_seconds(swim.probe_interval));
  text += r.table + 1 < settings.nodes ? format("each node knows %" PRIu32 " others", r.table)
                                       : std::string("everybody knows everybody");
  if (r.partial_views)
    text += format(", links with six (in-degrees: chi-square %.2f a degree of freedom)",
                   r.view_chi_square);
  text += format("; %" PRIu64 " suspicions, %" PRIu64 " refuted\n", r.suspicions, r.refutations);
  if (r.deaths > 0) {
    text +=
        format("detection  %" PRIu64
               " deaths: first known after %.1f s (median), to a node after %.1f s (median) and "
               "%.1f s (p99); bound %.1f s\n",
               r.deaths, r.detection_first_seconds, r.detection_median_seconds,
               r.detection_p99_seconds, r.removal_bound_seconds);
  } else {
    text += format(
        "detection  nobody was dead for the %.1f s in which all must know (more --seconds, "
        "--churn)\n",
        r.removal_bound_seconds);
  }
  text +=
      format("accuracy   %" PRIu64 " false deaths in %.2f node-hours (%" PRIu64 " views of them)\n",
             r.false_deaths, r.node_hours, r.false_death_views);
  if (r.dissemination_samples > 0)
    text += format(
        "news       of who joins or returns: 99 %% know after %.0f gossip ticks, bound %.0f\n",
        r.dissemination_p99_ticks, r.dissemination_bound_ticks);
  return text;
}

std::string traffic_line(const SimulationReport& r) {
  return format(
      "traffic    per node and second: bulk %.0f bytes in %.1f messages, control %.0f bytes "
      "in %.1f messages\n",
      r.bytes_per_node_second, r.messages_per_node_second, r.control_bytes_per_node_second,
      r.control_messages_per_node_second);
}

std::string exchange_lines(const SimulationReport& r) {
  std::string text;
  text += format("exchanges  %" PRIu64 " proposed, %" PRIu64
                 " completed: %.3f per node, step and fragment; %.2f %% refused"
                 " (busy %" PRIu64 ", crossing %" PRIu64 ", other %" PRIu64 "); %" PRIu64
                 " suspended\n",
                 r.proposed, r.completed, r.completed_per_node_step, 100 * r.refused_share,
                 r.refused_busy, r.refused_crossing, r.refused_other, r.suspended);
  text += format("mass       exact after every event; %" PRIu64
                 " deltas left on one side by crashes, adoptions and forfeits (%" PRIu64
                 " forfeited)\n",
                 r.one_sided, r.forfeited);
  text += format("consensus  variance %.3e -> %.3e, times %.4f per round (step) while it falls\n",
                 r.variance_start, r.variance_end, r.variance_decay_per_step);
  return text;
}

std::string summary(const SimulationSettings& settings, const gossip::Composition& composition,
                    const SimulationReport& r) {
  std::string text = head(settings, r) + ", method " + settings.method + ": " +
                     gossip::describe(composition) + "\n" + fault_lines(settings, r);
  if (!membership_only(settings)) text += exchange_lines(r);
  return text + membership_lines(settings, r) + traffic_line(r);
}

SimulationReport run(const SimulationSettings& settings, const gossip::Composition& composition,
                     const gossip::TopologyInfo& topology, std::string replay,
                     const ProgressCallback& progress) {
  if (membership_only(settings)) return MembershipRun(settings, std::move(replay)).run(progress);
  Simulator simulator(settings, composition, topology.make(), std::move(replay));
  return simulator.run(progress);
}

}  // namespace

bool uses_swim(const SimulationSettings& settings) {
  if (settings.nodes < 2 || settings.membership == "oracle") return false;
  return settings.membership == "swim" || settings.nodes <= kAutoSwimNodes ||
         settings.method == "local";
}

bool membership_only(const SimulationSettings& settings) {
  return settings.method == "local" && uses_swim(settings);
}

Result<SimulationReport> try_simulation(const SimulationSettings& given,
                                        const ProgressCallback& progress) {
  const SimulationSettings settings = given.swarm ? draw_swarm(given) : given;
  KITH_TRY(check(settings));
  KITH_ASSIGN(const gossip::Composition composition,
              gossip::compose(settings.method, overrides_of(settings)));
  KITH_ASSIGN(const gossip::TopologyInfo* topology, gossip::find_topology(composition.topology));
  SimulationReport report = run(settings, composition, *topology, replay_command(given), progress);
  report.variance_factor_per_step = factor_per_step(report);
  report.variance_decay_per_step = decay_per_step(report);
  report.last_line =
      format("seed=%" PRIu64 " events=%" PRIu64 " hash=%016" PRIx64 " violations=%" PRIu64,
             report.seed, report.events, report.hash, report.violations);
  report.text = summary(settings, composition, report);
  if (!report.ok) report.text += "VIOLATION  " + report.violation + "\n";
  report.text += report.last_line + "\n";
  return report;
}

SimulationReport run_simulation(const SimulationSettings& settings,
                                const ProgressCallback& progress) {
  auto result = try_simulation(settings, progress);
  if (result) return std::move(*result);
  SimulationReport report;
  report.seed = settings.seed;
  report.violation = result.error().message;
  report.text = result.error().message + "\n";
  return report;
}

}  // namespace kith::sim
