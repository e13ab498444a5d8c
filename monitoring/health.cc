#include "monitoring/health.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace kith::monitoring {

bool HealthReport::healthy() const {
  return std::ranges::all_of(checks, [](const HealthCheck& c) { return c.ok || c.readiness_only; });
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
  nlohmann::ordered_json out = {{"healthy", healthy()}, {"ready", ready()}};
  out["checks"] = nlohmann::ordered_json::array();
  for (const HealthCheck& check : checks) {
    out["checks"].push_back({{"name", check.name}, {"ok", check.ok}, {"text", check.text}});
  }
  // Text may carry names from other machines: broken UTF-8 is replaced, not thrown about.
  return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace kith::monitoring
