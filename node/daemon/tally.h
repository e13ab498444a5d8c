// How a node learns what members did that it has no record of: those that were gone before it came.
// Without them its idea of the cluster's progress would stay behind for good.
//
// In rounds it asks two members at random what they could tell (TALLY), and counts what both say:
// one member's word alone neither moves the learning rate nor ends the run (claims.h). Of one other
// member alone its word counts here, but is not told on before two have said it. Who could tell the
// same is silent, and rounds become rare: after 1, 2, 4 to 64 beats, at once again when something
// was learned. More than one message holds comes in the rounds that follow.
//
// Counts are marks that only rise, so what is told twice, late or out of order does no harm, and
// nodes that have learned tell on. Thread: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/random.h"
#include "gossip/membership/progress.h"
#include "schema/messages.h"

namespace kith::node {

using Tallies = std::vector<schema::TallyEntry>;  // by id, each once

// What this node could tell, or with `kOne` counts: of those without a living record, and of those
// whose record says less than they had done before (an earlier life, whose checkpoint is lost).
// `record_of` is null for who does not live.
[[nodiscard]] Tallies tallies_of(
    const gossip::Progress& progress,
    const std::function<const schema::MemberRecord*(const NodeId&)>& record_of,
    gossip::Progress::Word least = gossip::Progress::Word::kVouched);
[[nodiscard]] std::uint64_t digest_of(const Tallies& tallies);
// Nullopt: there is nothing to say that the other could not.
[[nodiscard]] std::optional<schema::Tally> answer_to(const schema::Tally& question,
                                                     const Tallies& tallies);
// Of those that both name the lower counts, and the data if both name the same.
[[nodiscard]] Tallies vouched(const Tallies& a, const Tallies& b);

class TallyAsker {
 public:
  struct Learned {
    Tallies entries;
    gossip::Progress::Word word = gossip::Progress::Word::kVouched;
  };
  struct Question {
    std::vector<NodeId> to;
    schema::Tally message;
  };
  // Each beat; `peers` can be asked, `digest` is of what we could tell (or count, of two alone).
  // Nullopt: not now.
  std::optional<Question> beat(std::vector<NodeId> peers, Random& random,
                               const std::function<std::uint64_t()>& digest);
  // What counts now; `others`: how many members live besides us. Nothing of who was not asked.
  Learned on_answer(const NodeId& from, const schema::Tally& answer, std::size_t others);
  // Something was learned, or there are others to ask.
  void hurry();

 private:
  void go_on_after(const Tallies& told);

  std::vector<NodeId> asked_;         // and have not answered
  std::optional<Tallies> first_;      // the round's first answer
  NodeId begin_;                      // of this round
  std::optional<NodeId> next_begin_;  // there was more than one message holds
  unsigned pause_ = 1, wait_ = 0;     // in beats
};

}  // namespace kith::node
