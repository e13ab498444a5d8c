// Replica: what peers see of a training model: R = P + T + D, per fragment (design: the replica).
//
//   P  publication: host copy of the live values x, written by the trainer at a safe point
//   T  taken: the generation of D that is being merged; dropped only when a P that contains it is
//   published D  pending: deltas that arrived since the trainer last took some
//
// The trainer try-locks each fragment and skips what is busy: it never waits. The exchange thread
// holds a fragment's lock for one pass over it. A merge runs without the lock, into the memory of
// the next publication, so that deltas land in D however slow the model's device is. All memory is
// reserved at construction: 3 fp32 copies of the values and one fragment. Empty T and D are neither
// read nor written. Conserved: sum over nodes of x + pending (T not yet in P, D); fp32 rounding
// apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "base/ids.h"
#include "base/result.h"
#include "compute/model.h"

namespace kith::compute {

struct FragmentRange {
  std::size_t offset = 0;  // first value
  std::size_t count = 0;   // values
};
// Cuts `value_count` values into fragments of at most fragment_bytes (>= 4, a multiple of 4; the
// last may be shorter).
std::vector<FragmentRange> cut_fragments(std::size_t value_count, std::size_t fragment_bytes);

struct SafePointStats {
  std::size_t merged_values = 0;  // values that had a delta added
  std::size_t published_values = 0;
  std::size_t skipped_fragments = 0;  // busy: left for the next safe point
  std::size_t clamped_values = 0;
  std::size_t nonfinite_fragments = 0;  // x is not finite there: the old publication was kept
};

class Replica {
 public:
  Replica(std::size_t value_count, std::size_t fragment_bytes);
  ~Replica();

  [[nodiscard]] std::uint32_t fragment_count() const;
  [[nodiscard]] FragmentRange range(FragmentIndex fragment) const;
  [[nodiscard]] static std::size_t encoded_bytes(std::size_t values, CodecId codec);

  // -- exchange thread --
  // Encodes R into `out` (exactly encoded_bytes). kNonFinite if R holds NaN or infinity.
  Status snapshot(FragmentIndex fragment, CodecId codec, std::span<std::byte> out);
  struct CommitStats {
    double distance_squared = 0.0;
    double norm_squared = 0.0;
  };
  // delta = Q(w (R - proposal)) written to `delta_out` in the codec; D -= delta. Checks sizes and
  // finiteness of the proposal and the result first: on error nothing has changed. Reads the
  // proposal where it lies (pieces at any address).
  Result<CommitStats> commit(FragmentIndex fragment, const Payload& proposal, CodecId codec,
                             double weight, std::span<std::byte> delta_out);
  // D += delta, after the finite check of all of it.
  Status apply(FragmentIndex fragment, const Payload& delta, CodecId codec);
  // fp32 copy of R (P + T + D) under the fragment's lock: checkpoints, donors, final states.
  void read(FragmentIndex fragment, std::span<float> out);
  // Asks for a publication of this fragment at the next safe point: it is about to be read. Never
  // needed for correctness.
  void want(FragmentIndex fragment);
  // What is not yet in x: D, and T while it is not merged. Only for checks of conservation, with
  // the trainer at rest.
  void read_pending(FragmentIndex fragment, std::span<float> out);
  // Runs `work` under the fragment's lock: tests of what the trainer does with a busy fragment.
  void hold_for_test(FragmentIndex fragment, const std::function<void()>& work);

  // Freezes publication: until thaw(), the trainer skips all fragments (no merge, no publish), so
  // that read() of every fragment and a ledger image taken meanwhile belong to the safe point at
  // which freeze was granted (see Trainer::cut).
  void freeze();
  // Only the trainer's thread freezes; any thread thaws.
  void thaw();
  [[nodiscard]] bool frozen() const;

  // -- trainer thread --
  // Merges and publishes, per fragment with something to do (a delta waits, or P was read since it
  // was written, or force; and while there is traffic, 256 KiB of others in turn, so that no
  // publication grows old). `stepped` false: x is what it was at the last safe point, so that only
  // deltas and force are reasons.
  SafePointStats safe_point(Model& model, bool force_publish, bool stepped = true);
  // Merges and publishes everything, waiting for busy fragments (one pass of the exchange thread
  // each): before a freeze.
  SafePointStats settle(Model& model);
  // Sets P = model's values and drops T and D (start, adoption, restore). No exchange may be open.
  void reset(Model& model);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kith::compute
