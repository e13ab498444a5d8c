// A copy of the state while nothing moves: what the end of a run declares, compares and writes.
// Everything that reads a final state reads such a copy: whatever becomes of the replica
// afterwards, its hash, its values and its integers are of one moment.
#pragma once

#include <functional>
#include <memory>

#include "compute/trainer.h"
#include "node/daemon/state_assembly.h"

namespace kith::node {

// For exchanges that are paused, with the trainer held. At its next safe point the trainer merges
// what is pending, freezes the replica and copies it (memory: one copy of the values); then it
// thaws the replica and calls `resume`, so that exchanges go on only after the last value was read,
// whoever makes them active meanwhile. `taker` comes last. Both are called on the trainer's thread.
void copy_at_rest(compute::Trainer& trainer, compute::Replica& replica,
                  std::function<void()> resume,
                  std::function<void(std::shared_ptr<StateAssembly>)> taker);

}  // namespace kith::node
