// Progress: how far the cluster is, and how long its run is. Both are the cluster's, never one
// node's: every record carries what its node has done, the counts of the gone stay, and the length
// follows from the data that the members hold (design: a training method is a composition). Pure
// bookkeeping; one owner.
//
// Bounded. A member with a record in the table of members has an entry (the table has a bound of
// its own). Of those without one, `gone` below, the kGoneMax that did most have entries, so that
// one that comes back counts once; the smallest above that are folded into one sum. Folding changes
// neither samples() nor steps() nor data_samples(). Its price: one that was folded and comes back
// counts again with what it had done, which was less than each of the kGoneMax had.
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
  static constexpr std::size_t kGoneMax = 4096;

  struct Count {
    Samples samples = 0;
    Step steps = 0;
    auto operator<=>(const Count&) const = default;
  };
  // The data that a member holds or held.
  struct Held {
    Hash256 fingerprint;
    Samples whole = 0;
    std::pair<std::uint32_t, std::uint32_t>
        shard{};  // index, count; count 0: all, or a share of all
    Samples shard_samples = 0;
    bool operator==(const Held&) const = default;
  };
  // One other member alone says so (nobody else is there to ask), or two do, or it is its record.
  enum class Word { kOne, kVouched };
  struct Work {
    Count count;
    Count vouched;  // of it; the rest is one member's word, and is not told on as if it were ours
    std::optional<Held> held;
    bool held_vouched = false;
    bool gone = false;  // no record of it is in the table of members
  };
  // The sum of those that have no entry any more.
  struct Folded {
    Count count;
    Samples data = 0;       // of data that nobody else holds
    Samples below_max = 0;  // whoever is in here had done no more than that
    bool operator==(const Folded&) const = default;
  };

  explicit Progress(RunLength length) : length_(length) {}

  // What a member has done, by its record; counts never fall (a restarted node that lost some keeps
  // its higher mark until it passes it).
  void note(const NodeId& id, Samples samples, Step steps);
  // The data a member holds: one entry per member, replaced by its next record. Called for every
  // known record, the dead and the left included: what they held was trained.
  void note_data(const schema::MemberRecord& record);
  // What others say of a member without a record here. True if that is new; what may be in the
  // folded sum already is not.
  bool note_gone(const schema::TallyEntry& entry, Word word);
  // No record of this member is kept any more.
  void forget(const NodeId& id);
  // From a checkpoint, before anything else; of `works` the counts. They are the living's too, who
  // would count again if they were folded before their records come. So nothing is folded here, and
  // until somebody is forgotten twice kGoneMax have entries.
  void restore(const std::map<NodeId, Work>& works, const Folded& folded);

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
  [[nodiscard]] const std::map<NodeId, Work>& works() const { return works_; }
  [[nodiscard]] const Folded& folded() const { return folded_; }

 private:
  [[nodiscard]] static Samples samples_of_file(std::vector<const Held*> holders);
  bool raise(Work& work, const Count& to, Word word);
  bool hold(Work& work, const Held& held, Word word);
  void fold();

  RunLength length_;
  std::map<NodeId, Work> works_;
  std::size_t gone_ = 0;   // of works_
  bool settling_ = false;  // restored, and nobody was forgotten since
  Folded folded_;
  mutable std::optional<Samples> data_samples_;  // empty: to be counted anew
  Samples samples_ = 0;
  Step steps_ = 0;
};

}  // namespace kith::gossip
