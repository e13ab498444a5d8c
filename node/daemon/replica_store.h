// ReplicaStore: compute's Replica as the fragments that gossip exchanges
// (gossip/exchange/fragment_store.h).
//
// Snapshots and deltas live in two bounded pools, so that what is in flight never grows and a
// buffer that a ZeroMQ thread still reads is never written to; an empty pool answers kBusy. All
// memory is reserved at construction. Thread: the exchange thread (buffers return from any).
#pragma once

#include <functional>
#include <utility>

#include "base/buffer.h"
#include "compute/replica.h"
#include "gossip/exchange/fragment_store.h"

namespace kith::node {

class ReplicaStore final : public gossip::FragmentStore {
 public:
  // Own proposals in flight, and deltas that others have not acknowledged or that a socket still
  // reads. Smaller pools hold less and fill a fast link less well: half of this costs the exchange
  // benchmark a few per cent.
  static constexpr std::size_t kSnapshotBytes = 24U << 20;
  static constexpr std::size_t kDeltaBytes = 48U << 20;
  // Pools of about `snapshot_bytes` and `delta_bytes`, at least two fragments each, at most what
  // the model can use at once.
  explicit ReplicaStore(compute::Replica& replica, std::size_t snapshot_bytes = kSnapshotBytes,
                        std::size_t delta_bytes = kDeltaBytes);

  // Called after each delta that landed in the replica, on the exchange thread: a trainer that
  // idles merges it before it takes its next gradient (a gradient at a model that is old by then is
  // worth little). Before the first exchange.
  void on_landed(std::function<void()> landed) { landed_ = std::move(landed); }

  [[nodiscard]] std::uint32_t fragment_count() const override { return replica_.fragment_count(); }
  [[nodiscard]] std::size_t payload_bytes(FragmentIndex fragment, CodecId codec) const override;
  Result<Slice> snapshot(const ExchangeId& e, FragmentIndex fragment, CodecId codec) override;
  Result<Committed> commit(const ExchangeId& e, FragmentIndex fragment, const Payload& proposal,
                           CodecId codec, double weight) override;
  Status apply(const ExchangeId& e, FragmentIndex fragment, const Payload& delta,
               CodecId codec) override;

 private:
  compute::Replica& replica_;
  std::function<void()> landed_ = [] {};
  BufferPool snapshots_;
  BufferPool deltas_;
};

}  // namespace kith::node
