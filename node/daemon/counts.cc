#include "node/daemon/counts.h"

namespace kith::node {

using gossip::Progress;

void put_counts(const Progress& progress, const NodeId& self, CheckpointFacts& facts) {
  facts.cluster_progress = progress.samples();
  facts.epoch = progress.epoch();
  facts.folded = progress.folded();
  for (const auto& [id, work] : progress.works()) {
    if (id == self || work.count == Progress::Count{}) continue;
    facts.others_samples[id.hex()] = work.count.samples;
    facts.others_steps[id.hex()] = work.count.steps;
  }
}

void take_counts(const CheckpointFacts& facts, Progress& progress) {
  std::map<NodeId, Progress::Count> gone;
  for (const auto& [hex, samples] : facts.others_samples) {
    const auto id = NodeId::from_hex(hex);
    const auto steps = facts.others_steps.find(hex);
    if (id) gone[*id] = {samples, steps == facts.others_steps.end() ? 0 : steps->second};
  }
  progress.restore(gone, facts.folded);
}

}  // namespace kith::node
