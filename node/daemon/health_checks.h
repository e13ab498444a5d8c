// What a node's health is made of. Three readers, each of whom needs another answer
// (monitoring/health.h):
//
//   /healthz      a supervisor or container runtime, which restarts what is unsound: only what a
//   restart may mend. A node that
//                 waits for its first members, is cut off, or has a full disk is sound: restarted,
//                 it would lose what it holds.
//   /readyz       who waits until the node takes part
//   kith health   a person, and the container's health check: also being cut off from all members
//   it had, a disk that takes no
//                 checkpoints, checkpoints that do not come, and a cluster key that nobody shares.
//                 Waiting for the first members is
//                 none of these.
// Pure function.
#pragma once

#include "compute/trainer.h"
#include "monitoring/health.h"
#include "node/daemon/control_loop.h"

namespace kith::node {

// `now`: of the loop's clock; `checkpoint_every`: 0 = only when leaving.
monitoring::HealthReport health_of(const NodeStatus& status, const compute::TrainerStats& trainer,
                                   Duration checkpoint_every, TimePoint now);

}  // namespace kith::node
