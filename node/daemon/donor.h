// Donor: what this node gives to one that fetches a state: fragments of its replica as they are
// now, integer buffers and optimiser moments of one safe point, or the declared final state.
// Thread: item() on the exchange thread; the setters on any. Never blocks the trainer: moments are
// copied by the trainer itself at a safe point after the first question, and the question is
// answered "not yet" until then.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "base/clock.h"
#include "compute/replica.h"
#include "compute/trainer.h"
#include "gossip/transfer/state_transfer.h"

namespace kith::node {

class Donor final : public gossip::DonorSource {
 public:
  Donor(compute::Replica& replica, std::size_t fragment_bytes, const Clock& clock);
  void attach(
      compute::Trainer* trainer);  // before the exchange loop starts; null: gives no moments
  // The declared final state: from now on the replica's values do not change, and `manifest`
  // describes them.
  void set_final(Slice manifest, std::vector<std::int64_t> integers);
  void withdraw_final();  // it is not declared any more, the values go on changing
  // Each beat: what the cluster has done. Also drops a copy of moments nobody asks for any more.
  void set_cluster_samples(Samples samples);
  [[nodiscard]] TimePoint last_given() const;  // what was asked for in vain does not count

  Result<Item> item(const gossip::ItemKey& key) override;

 private:
  struct Moments {
    compute::TrainerImage image;
    TimePoint used;
  };
  struct Shared {  // shared with the trainer thread's callback
    std::mutex mutex;
    std::optional<Moments> moments;
    bool asked = false;
  };
  Result<Item> fragment(FragmentIndex index);
  Result<Item> from_moments(const gossip::ItemKey& key);
  static Item whole(Slice bytes);

  compute::Replica& replica_;
  const std::size_t fragment_bytes_;
  const Clock& clock_;
  compute::Trainer* trainer_ = nullptr;
  std::shared_ptr<Shared> shared_;  // outlives a callback that comes after our end
  mutable std::mutex mutex_;        // guards all below
  std::optional<Slice> manifest_;
  std::vector<std::int64_t> final_integers_;
  Samples cluster_samples_ = 0;
  TimePoint last_given_;
};

}  // namespace kith::node
