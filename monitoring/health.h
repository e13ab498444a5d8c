// Health: a list of checks, each with a name, a verdict and a sentence that says what is wrong and
// what to do. /healthz answers "is this process sound" (a supervisor restarts what is not), /readyz
// also "does it take part in training" (a load balancer or a script waits for it). Thread: values.
#pragma once

#include <string>
#include <vector>

namespace kith::monitoring {

struct HealthCheck {
  std::string name;  // one word: "trainer", "checkpoint", "joined"
  bool ok = true;
  std::string text;
  bool readiness_only =
      false;  // does not make the process unhealthy, only not ready (still joining, finishing)
};

struct HealthReport {
  std::vector<HealthCheck> checks;

  [[nodiscard]] bool healthy() const;  // every check but those that are readiness_only
  [[nodiscard]] bool ready() const;    // every check
  // "ok joined: 4 members" a line; failed ones say "FAIL".
  [[nodiscard]] std::string text() const;
  // {"healthy": true, "ready": true, "checks": [{"name": ..., "ok": ..., "text": ...}]}
  [[nodiscard]] std::string json() const;
};

}  // namespace kith::monitoring
