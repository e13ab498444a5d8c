#include "monitoring/health.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace kith::monitoring {

namespace {

const char* name_of(HealthCheck::Concern concern) {
  switch (concern) {
    case HealthCheck::Concern::kPeople:
      return "people";
    case HealthCheck::Concern::kReadiness:
      return "readiness";
    default:
      return "process";
  }
}

}  // namespace

bool HealthReport::healthy() const {
  return std::ranges::all_of(checks, [](const HealthCheck& c) {
    return c.ok || c.concern != HealthCheck::Concern::kProcess;
  });
}

bool HealthReport::well() const { return complaints().empty(); }

std::string HealthReport::complaints() const {
  std::string text;
  for (const HealthCheck& c : checks)
    if (!c.ok && c.concern != HealthCheck::Concern::kReadiness)
      text += (text.empty() ? "" : "; ") + c.name + ": " + c.text;
  return text;
}

bool HealthReport::ready() const {
  return std::ranges::all_of(checks, [](const HealthCheck& c) { return c.ok; });
}

std::string HealthReport::text() const {
  std::string out;
  for (const HealthCheck& check : checks) {
    out += (check.ok ? "ok   " : "FAIL ") + check.name + ": " + check.text + "\n";
  }
  return out;
}

std::string HealthReport::json() const {
  nlohmann::ordered_json out = {{"healthy", healthy()}, {"well", well()}, {"ready", ready()}};
  out["checks"] = nlohmann::ordered_json::array();
  for (const HealthCheck& check : checks) {
    out["checks"].push_back({{"name", check.name},
                             {"concern", name_of(check.concern)},
                             {"ok", check.ok},
                             {"text", check.text}});
  }
  // Text may carry names from other machines: broken UTF-8 is replaced, not thrown about.
  return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace kith::monitoring
