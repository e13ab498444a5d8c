// `kith simulate`: the production protocol in the deterministic simulator.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "gossip/sim/simulate.h"
#include "node/cli/cli_context.h"

namespace kith::node {
namespace {

using Json = nlohmann::ordered_json;

using Clock = std::chrono::steady_clock;
constexpr auto kWorthTelling = std::chrono::seconds(2);

// At most a few lines a second on a terminal and only after two seconds, none elsewhere.
sim::ProgressCallback progress_on(CliContext& context, Clock::time_point begin) {
  if (!context.err_is_terminal) return {};
  auto last = begin + kWorthTelling - std::chrono::milliseconds(200);
  return [&context, last](const sim::SimulationProgress& p) mutable {
    const auto now = Clock::now();
    if (now - last < std::chrono::milliseconds(200)) return;
    last = now;
    char text[96];
    std::snprintf(text, sizeof text, "\r%7.1f of %.1f s simulated, %llu events",
                  p.simulated_seconds, p.of_seconds, static_cast<unsigned long long>(p.events));
    context.err << text << std::flush;
  };
}

// What a long run cost; not on stdout, which is the same for the same seed.
void tell_cost(CliContext& context, Clock::time_point begin) {
  const auto took = Clock::now() - begin;
  rusage usage{};
  if (took < kWorthTelling || getrusage(RUSAGE_SELF, &usage) != 0) return;
  char text[96];
  std::snprintf(text, sizeof text, "took %.1f s and %.0f MiB of memory\n",
                std::chrono::duration<double>(took).count(),
                static_cast<double>(usage.ru_maxrss) / 1024.0);
  context.err << text << std::flush;
}

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

Json report_json(const sim::SimulationReport& r, const sim::SimulationSettings& settings) {
  return {{"ok", r.ok},
          {"seed", r.seed},
          {"events", r.events},
          {"hash", hex(r.hash)},
          {"violations", r.violations},
          {"violation", r.violation},
          {"replay", sim::replay_command(settings)},
          {"steps", r.steps},
          {"messages", r.messages},
          {"payload_bytes", r.payload_bytes},
          {"proposed", r.proposed},
          {"completed", r.completed},
          {"refused_busy", r.refused_busy},
          {"refused_crossing", r.refused_crossing},
          {"refused_other", r.refused_other},
          {"suspended", r.suspended},
          {"forfeited", r.forfeited},
          {"crashes", r.crashes},
          {"simulated_seconds", r.simulated_seconds},
          {"settle_seconds", r.settle_seconds},
          {"completed_per_node_step", r.completed_per_node_step},
          {"refused_share", r.refused_share},
          {"variance_start", r.variance_start},
          {"variance_end", r.variance_end},
          {"variance_decay_per_step", r.variance_decay_per_step},
          {"membership", r.swim ? "swim" : "oracle"},
          {"joins", r.joins},
          {"leaves", r.leaves},
          {"bulk_bytes_per_node_second", r.bytes_per_node_second},
          {"control_bytes_per_node_second", r.control_bytes_per_node_second},
          {"control_messages_per_node_second", r.control_messages_per_node_second},
          {"deaths", r.deaths},
          {"detection_first_seconds", r.detection_first_seconds},
          {"detection_median_seconds", r.detection_median_seconds},
          {"detection_p99_seconds", r.detection_p99_seconds},
          {"removal_bound_seconds", r.removal_bound_seconds},
          {"false_deaths", r.false_deaths},
          {"node_hours", r.node_hours},
          {"dissemination_p99_ticks", r.dissemination_p99_ticks},
          {"dissemination_bound_ticks", r.dissemination_bound_ticks}};
}

Result<sim::SimulationSettings> settings_of(const std::map<std::string, std::string>& flags) {
  sim::SimulationSettings settings;
  for (const auto& option : sim::simulation_options()) {
    const auto found = flags.find(std::string(option.name));
    if (found == flags.end()) continue;
    if (auto set = option.set(settings, found->second); !set)
      return fail(set.error().code, "--" + std::string(option.name) + ": " + set.error().message);
  }
  return settings;
}

}  // namespace

Result<int> simulate_command(CliContext& context, const std::map<std::string, std::string>& flags) {
  KITH_ASSIGN(const sim::SimulationSettings settings, settings_of(flags));
  const auto begin = Clock::now();
  KITH_ASSIGN(const sim::SimulationReport report,
              sim::try_simulation(settings, progress_on(context, begin)));
  if (context.err_is_terminal) context.err << "\r\x1b[K" << std::flush;
  if (context.json) {
    context.out << report_json(report, settings).dump(2) << "\n";
  } else {
    context.out << report.text;
    if (!report.text.ends_with('\n')) context.out << "\n";
  }
  tell_cost(context, begin);
  if (report.ok) return 0;
  if (!report.violation.empty()) context.err << "kith: " << report.violation << "\n";
  return 1;
}

}  // namespace kith::node
