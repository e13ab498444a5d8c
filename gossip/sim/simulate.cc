#include "gossip/sim/simulate.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include "gossip/method.h"
#include "gossip/sim/simulator.h"
#include "gossip/topology.h"

namespace kith::sim {
namespace {

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
  return {};
}

double factor_per_step(const SimulationReport& report) {
  if (report.variance_start <= 0.0 || report.variance_end <= 0.0 || report.variance.size() < 2)
    return 0.0;
  return std::pow(report.variance_end / report.variance_start,
                  1.0 / static_cast<double>(report.variance.size()));
}

std::string summary(const SimulationSettings& settings, const gossip::Composition& composition,
                    const SimulationReport& r) {
  std::string text;
  text +=
      format("%" PRIu32 " nodes, %.1f s simulated (%.1f s until all was quiet), method %s: %s\n",
             settings.nodes, r.simulated_seconds, r.settle_seconds, settings.method.c_str(),
             gossip::describe(composition).c_str());
  text +=
      format("faults     loss %.1f %%, duplicates %.1f %%, reordered %.1f %%, %" PRIu64
             " partitions; %" PRIu64 " crashes (%" PRIu64 " lost their disk, %" PRIu64
             " for good), %" PRIu64 " pauses, %" PRIu64 " adoptions\n",
             100 * settings.loss, 100 * settings.duplicate, 100 * settings.reorder, r.partitions,
             r.crashes, r.crashes_disk_lost, r.crashes_for_good, r.pauses, r.adoptions);
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
  text += format("consensus  variance %.3e -> %.3e, times %.4f per step\n", r.variance_start,
                 r.variance_end, r.variance_factor_per_step);
  text += format("traffic    %.0f messages and %.0f payload bytes per node and second\n",
                 r.messages_per_node_second, r.bytes_per_node_second);
  return text;
}

}  // namespace

Result<SimulationReport> try_simulation(const SimulationSettings& given,
                                        const ProgressCallback& progress) {
  const SimulationSettings settings = given.swarm ? draw_swarm(given) : given;
  KITH_TRY(check(settings));
  KITH_ASSIGN(const gossip::Composition composition,
              gossip::compose(settings.method, overrides_of(settings)));
  KITH_ASSIGN(const gossip::TopologyInfo* topology, gossip::find_topology(composition.topology));
  Simulator simulator(settings, composition, topology->make(), replay_command(given));
  SimulationReport report = simulator.run(progress);
  report.variance_factor_per_step = factor_per_step(report);
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
