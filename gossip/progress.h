// Progress: how far the cluster is, and how long its run is. Both are the cluster's, never one
// node's: every record carries what its node has done, the counts of the dead stay, and the length
// follows from the data that the members hold (design: a training method is a composition). Pure
// bookkeeping; one owner.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "schema/messages.h"

namespace kith::gossip {

struct RunLength {
  double epochs = 0.0;      // passes over the cluster's data; or
  std::uint64_t steps = 0;  // optimiser steps of all nodes together; both 0: until stopped
};

class Progress {
 public:
  explicit Progress(RunLength length) : length_(length) {}

  // What a node has done; counts never fall (a restarted node that lost some keeps its higher mark
  // until it passes it).
  void note(const NodeId& id, Samples samples, Step steps);
  // The data a member holds: one entry per member, replaced by its next record. Called for every
  // known record, the dead and the left included: what they held was trained.
  void note_data(const schema::MemberRecord& record);

  [[nodiscard]] Samples samples() const { return samples_; }
  [[nodiscard]] Step steps() const { return steps_; }
  // Samples of the cluster: per data fingerprint all of it, once, if somebody trains on all or
  // members share it out, else the sum of its distinct shards (never more than the file); summed
  // over fingerprints. So it stays the same when shares change. How long a file is, its holders
  // say: the middle one of their answers counts.
  [[nodiscard]] Samples data_samples() const;
  [[nodiscard]] double epoch() const;  // samples() / data_samples(), 0 without data
  [[nodiscard]] bool endless() const { return length_.epochs <= 0 && length_.steps == 0; }
  [[nodiscard]] bool done() const;
  // The run's length in samples as it looks now (steps: by the samples per step so far); 0 when
  // endless or unknown.
  [[nodiscard]] double length_samples() const;
  struct Count {
    Samples samples = 0;
    Step steps = 0;
  };
  [[nodiscard]] const std::map<NodeId, Count>& counts() const { return counts_; }

 private:
  struct Held {
    Hash256 fingerprint;
    Samples whole = 0;
    bool all = false;
    std::pair<std::uint32_t, std::uint32_t> shard{};  // index, count
    Samples shard_samples = 0;
    bool operator==(const Held&) const = default;
  };
  [[nodiscard]] static Samples samples_of_file(std::vector<const Held*> holders);

  RunLength length_;
  std::map<NodeId, Count> counts_;
  std::map<NodeId, Held> held_;
  mutable std::optional<Samples> data_samples_;  // empty: to be counted anew
  Samples samples_ = 0;
  Step steps_ = 0;
};

}  // namespace kith::gossip
