// Vector kernels of the replica: the loops that bound how fast fragments are exchanged and merged.
//
// Every loop exists once as plain C++ (kernels_impl.h) and is compiled for x86-64, AVX2 and
// AVX-512; the best level the processor has is chosen at the first call. Values (deltas, sums,
// encodings) are the same bits on every level, because each is computed elementwise in fp32 without
// contraction; only the statistics may differ in the last bits. Payloads are read where they lie:
// in pieces, at any byte address. Results do not depend on where pieces are cut. Thread: pure
// functions, any thread. Shapes: n values; pointers to float may have any alignment, 64 bytes is
// fastest.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/buffer.h"
#include "base/ids.h"

namespace kith::compute {

// R of a stretch of values as its parts. `t` and `d` may be null: nothing taken, nothing pending.
struct ReplicaParts {
  const float* p = nullptr;
  const float* t = nullptr;
  const float* d = nullptr;
};

struct CommitSums {
  double distance_squared = 0.0;  // |R - proposal|^2
  double norm_squared = 0.0;      // |(R + proposal) / 2|^2
  bool finite = true;
};

std::size_t encoded_value_bytes(CodecId codec);

// x += t.
void add(float* x, const float* t, std::size_t n);
// x += t, then p = x, in one pass. p overlaps neither.
void add_and_copy(float* x, const float* t, float* p, std::size_t n);
bool all_finite(const float* x, std::size_t n);

// out = P + T + D.
void sum_parts(const ReplicaParts& parts, float* out, std::size_t n);
// The same, encoded (round to nearest even for bf16). False if a value is not finite before or
// after; `out` is then garbage.
bool encode_parts(const ReplicaParts& parts, CodecId codec, std::byte* out, std::size_t n);

// delta = Q(w (R - proposal)) into `delta_out`; next_d = d - delta, where an absent d counts as
// zero. `next_d` may be null (not written), and overlaps none of the parts. Not finite: `delta_out`
// and `next_d` are garbage.
CommitSums commit_parts(const ReplicaParts& parts, const Payload& proposal, CodecId codec,
                        float weight, std::byte* delta_out, float* next_d, std::size_t n);

// next_d = d + sign * delta; an absent d counts as zero. `next_d` may be null (check only) or equal
// `d`. False if the delta or the sum is not finite; what was written to next_d is then garbage.
bool add_payload(const float* d, const Payload& delta, CodecId codec, float sign, float* next_d,
                 std::size_t n);

// Levels that this processor can run, the chosen one last; tests and benchmarks force one by name
// ("" = best).
std::span<const std::string_view> kernel_levels();
void force_kernel_level(std::string_view level);

}  // namespace kith::compute
