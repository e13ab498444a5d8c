// Health: a list of checks, each with a name, a verdict and a sentence that says what is wrong and
// what to do. Who asks, and what counts for them:
//
//   /healthz     "is this process sound": a supervisor restarts what is not     kProcess
//   kith health  "is all well here": a person looks at what is not              kProcess, kPeople
//   kith status  the same, as `healthy`                                         kProcess, kPeople
//   /readyz      "does it take part in training": a script waits for it         all
//
// Thread: values.
#pragma once

#include <string>
#include <vector>

namespace kith::monitoring {

struct HealthCheck {
  enum class Concern {
    kProcess,   // a restart may mend it
    kPeople,    // somebody should look; a restart mends nothing
    kReadiness  // nothing is wrong: still joining, finishing
  };
  std::string name;  // one word: "trainer", "checkpoint", "joined"
  bool ok = true;
  std::string text;
  Concern concern = Concern::kProcess;
};

struct HealthReport {
  std::vector<HealthCheck> checks;

  [[nodiscard]] bool healthy() const;  // the process is sound
  [[nodiscard]] bool well() const;     // and people need not look
  // What people should look at, "members: isolated...; checkpoint: ..."; "" if well().
  [[nodiscard]] std::string complaints() const;
  [[nodiscard]] bool ready() const;  // every check
  // "ok joined: 4 members" a line; failed ones say "FAIL".
  [[nodiscard]] std::string text() const;
  // {"healthy": true, "well": true, "ready": true,
  //  "checks": [{"name": ..., "concern": "process" | "people" | "readiness", "ok": ...,
  //              "text": ...}]}
  [[nodiscard]] std::string json() const;
};

}  // namespace kith::monitoring
