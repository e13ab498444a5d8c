// `kith simulate`: the production protocol in the deterministic simulator.
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "gossip/sim/simulate.h"
#include "node/cli_context.h"

namespace kith::node {
namespace {

using Json = nlohmann::ordered_json;

// At most a few lines a second on a terminal, none elsewhere.
sim::ProgressCallback progress_on(CliContext& context) {
  if (!context.err_is_terminal) return {};
  auto last = std::chrono::steady_clock::time_point{};
  return [&context, last](const sim::SimulationProgress& p) mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now - last < std::chrono::milliseconds(200)) return;
    last = now;
    char text[96];
    std::snprintf(text, sizeof text, "\r%7.1f of %.1f s simulated, %llu events",
                  p.simulated_seconds, p.of_seconds, static_cast<unsigned long long>(p.events));
    context.err << text << std::flush;
  };
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
          {"variance_end", r.variance_end}};
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
  KITH_ASSIGN(const sim::SimulationReport report,
              sim::try_simulation(settings, progress_on(context)));
  if (context.err_is_terminal) context.err << "\r\x1b[K" << std::flush;
  if (context.json) {
    context.out << report_json(report, settings).dump(2) << "\n";
  } else {
    context.out << report.text;
    if (!report.text.ends_with('\n')) context.out << "\n";
  }
  if (report.ok) return 0;
  if (!report.violation.empty()) context.err << "kith: " << report.violation << "\n";
  return 1;
}

}  // namespace kith::node
