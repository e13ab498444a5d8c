// What members have done, as a checkpoint keeps it: so a whole cluster can restart, and a member
// that was gone before this node stopped still counts once. Pure functions.
#pragma once

#include "gossip/membership/progress.h"
#include "node/store/checkpoint.h"

namespace kith::node {

// All but `self`, whose own counts are in the checkpoint's image.
void put_counts(const gossip::Progress& progress, const NodeId& self, CheckpointFacts& facts);
// Into one that is new.
void take_counts(const CheckpointFacts& facts, gossip::Progress& progress);

}  // namespace kith::node
