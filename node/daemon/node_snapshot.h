// What the control loop and the trainer count, as the plain values that monitoring/ makes metrics
// of. What comes from elsewhere (configuration, step log) NodeViewAdapter adds. Pure function.
#pragma once

#include "compute/trainer.h"
#include "monitoring/snapshot.h"
#include "node/daemon/control_loop.h"

namespace kith::node {

monitoring::NodeSnapshot snapshot_of(const NodeStatus& status,
                                     const compute::TrainerStats& trainer);

}  // namespace kith::node
