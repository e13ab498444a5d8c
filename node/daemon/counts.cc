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
    if (work.vouched == work.count) continue;
    facts.vouched_samples[id.hex()] = work.vouched.samples;
    facts.vouched_steps[id.hex()] = work.vouched.steps;
  }
}

void take_counts(const CheckpointFacts& facts, Progress& progress) {
  const auto find = [](const auto& counts, const std::string& hex, std::uint64_t otherwise) {
    const auto it = counts.find(hex);
    return it == counts.end() ? otherwise : it->second;
  };
  std::map<NodeId, Progress::Work> works;
  for (const auto& [hex, samples] : facts.others_samples) {
    const auto id = NodeId::from_hex(hex);
    if (!id) continue;
    Progress::Work& work = works[*id];
    work.count = {samples, find(facts.others_steps, hex, 0)};
    work.vouched = {find(facts.vouched_samples, hex, work.count.samples),
                    find(facts.vouched_steps, hex, work.count.steps)};
  }
  progress.restore(works, facts.folded);
}

}  // namespace kith::node
