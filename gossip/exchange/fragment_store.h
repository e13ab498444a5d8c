// FragmentStore: the replica as the exchange sees it: fragments that can be snapshot, committed
// against and added to.
//
// Production: node/ adapts compute's Replica (R = P + T + D in fp32). Simulation: fixed-point
// integers. The exchange id is passed along so that an oracle can watch who applies what; a store
// need not look at it. Thread: the exchange thread only. Nothing here blocks on the network or on
// the trainer's step.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/buffer.h"
#include "base/ids.h"
#include "base/result.h"

namespace kith::gossip {

class FragmentStore {
 public:
  virtual ~FragmentStore() = default;

  [[nodiscard]] virtual std::uint32_t fragment_count() const = 0;
  // Encoded size of one fragment on the wire.
  [[nodiscard]] virtual std::size_t payload_bytes(FragmentIndex fragment, CodecId codec) const = 0;

  // R of this fragment, encoded, in stable memory. kBusy: no buffer now. kNonFinite: our own
  // replica is broken.
  virtual Result<Slice> snapshot(const ExchangeId& e, FragmentIndex fragment, CodecId codec) = 0;

  struct Committed {
    Slice delta;  // Q(w (R_self - R_proposed)), encoded: both sides apply exactly these bits
    double distance_squared = 0.0;  // |R_self - R_proposed|^2
    double norm_squared = 0.0;      // |(R_self + R_proposed) / 2|^2
  };
  // Computes the delta and subtracts it from the own replica, as one act. On error nothing has
  // changed: kBusy (no buffer), kNonFinite (in the proposal, or in ours), kCorrupt (wrong size).
  virtual Result<Committed> commit(const ExchangeId& e, FragmentIndex fragment,
                                   const Payload& proposal, CodecId codec, double weight) = 0;

  // Adds a delta computed by the responder. On error (kNonFinite, kCorrupt) nothing has changed.
  virtual Status apply(const ExchangeId& e, FragmentIndex fragment, const Payload& delta,
                       CodecId codec) = 0;
};

}  // namespace kith::gossip
