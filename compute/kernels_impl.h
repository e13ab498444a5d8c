// The block loops, written once; each kernels_<level>.cc includes this with KITH_KERNEL_TABLE and
// KITH_KERNEL_NAME set and with its own compiler flags. Everything is in an unnamed namespace: no
// symbol may be shared between levels. "omp simd" only permits the vectoriser to reorder the sums;
// no OpenMP runtime is used.
#pragma once

#include <string.h>

#include "compute/kernels_table.h"

namespace kith::compute::kernels {
namespace {

inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// 1 for NaN and infinities.
inline uint32_t bad(float value) {
  return static_cast<uint32_t>((bits_of(value) & 0x7f800000u) == 0x7f800000u);
}

struct Fp32 {
  static constexpr size_t kBytes = 4;
  static float load(const unsigned char* at) {
    float value;
    memcpy(&value, at, sizeof value);
    return value;
  }
  static void store(unsigned char* at, float value) { memcpy(at, &value, sizeof value); }
  static float round(float value) { return value; }
};

struct Bf16 {
  static constexpr size_t kBytes = 2;
  static float load(const unsigned char* at) {
    uint16_t half;
    memcpy(&half, at, sizeof half);
    return from_bits(static_cast<uint32_t>(half) << 16);
  }
  static void store(unsigned char* at, float rounded) {
    const uint16_t half = static_cast<uint16_t>(bits_of(rounded) >> 16);
    memcpy(at, &half, sizeof half);
  }
  // To nearest, ties to even. Values that are not finite may come out as anything: callers test the
  // input too.
  static float round(float value) {
    const uint32_t bits = bits_of(value);
    return from_bits((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
  }
};

template <bool kT, bool kD>
inline float replica_value(const Parts& parts, size_t i) {
  float r = parts.p[i];
  if constexpr (kT) r += parts.t[i];
  if constexpr (kD) r += parts.d[i];
  return r;
}

void add_block(float* x, const float* t, size_t n) {
#pragma omp simd
  for (size_t i = 0; i < n; ++i) x[i] += t[i];
}

void add_and_copy_block(float* x, const float* t, float* p, size_t n) {
#pragma omp simd
  for (size_t i = 0; i < n; ++i) {
    const float sum = x[i] + t[i];
    x[i] = sum;
    p[i] = sum;
  }
}

uint32_t bad_values_block(const float* x, size_t n) {
  uint32_t any = 0;
#pragma omp simd reduction(| : any)
  for (size_t i = 0; i < n; ++i) any |= bad(x[i]);
  return any;
}

template <bool kT, bool kD>
void sum_loop(Parts parts, float* out, size_t n) {
#pragma omp simd
  for (size_t i = 0; i < n; ++i) out[i] = replica_value<kT, kD>(parts, i);
}

template <typename Codec, bool kT, bool kD>
uint32_t encode_loop(Parts parts, unsigned char* out, size_t n) {
  uint32_t any = 0;
#pragma omp simd reduction(| : any)
  for (size_t i = 0; i < n; ++i) {
    const float r = replica_value<kT, kD>(parts, i);
    const float rounded = Codec::round(r);
    any |= bad(r) | bad(rounded);
    Codec::store(out + i * Codec::kBytes, rounded);
  }
  return any;
}

// Differences and midpoints of one stretch, small enough for the first-level cache: the sums in
// double are a loop of their own, since compilers do not vectorise one that mixes widths.
inline constexpr size_t kStretch = 512;

double sum_of_squares(const float* values, size_t n) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (size_t i = 0; i < n; ++i)
    sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

template <typename Codec, bool kT, bool kD, bool kWrite>
uint32_t commit_stretch(Parts parts, const unsigned char* proposal, float weight,
                        unsigned char* delta_out, float* next_d, float* differences, float* middles,
                        size_t n) {
  uint32_t any = 0;
#pragma omp simd reduction(| : any)
  for (size_t i = 0; i < n; ++i) {
    const float r = replica_value<kT, kD>(parts, i);
    const float other = Codec::load(proposal + i * Codec::kBytes);
    const float difference = r - other;
    differences[i] = difference;
    middles[i] = 0.5f * r + 0.5f * other;
    const float exact = weight * difference;
    const float delta = Codec::round(exact);
    any |= bad(exact) | bad(delta);
    Codec::store(delta_out + i * Codec::kBytes, delta);
    if constexpr (kWrite) {
      const float next = kD ? parts.d[i] - delta : -delta;
      any |= bad(next);
      next_d[i] = next;
    }
  }
  return any;
}

template <bool kT, bool kD>
Parts advance(const Parts& parts, size_t i) {
  return {parts.p + i, kT ? parts.t + i : nullptr, kD ? parts.d + i : nullptr};
}

template <typename Codec, bool kT, bool kD, bool kWrite>
BlockSums commit_loop(Parts parts, const unsigned char* proposal, float weight,
                      unsigned char* delta_out, float* next_d, size_t n) {
  alignas(64) float differences[kStretch];
  alignas(64) float middles[kStretch];
  BlockSums sums = {0.0, 0.0, 0};
  for (size_t i = 0; i < n; i += kStretch) {
    const size_t count = n - i < kStretch ? n - i : kStretch;
    sums.bad |= commit_stretch<Codec, kT, kD, kWrite>(
        advance<kT, kD>(parts, i), proposal + i * Codec::kBytes, weight,
        delta_out + i * Codec::kBytes, kWrite ? next_d + i : nullptr, differences, middles, count);
    sums.distance_squared += sum_of_squares(differences, count);
    sums.norm_squared += sum_of_squares(middles, count);
  }
  return sums;
}

template <typename Codec, bool kD, bool kWrite>
uint32_t add_loop(const float* d, const unsigned char* delta, float sign, float* next_d, size_t n) {
  uint32_t any = 0;
#pragma omp simd reduction(| : any)
  for (size_t i = 0; i < n; ++i) {
    const float change = sign * Codec::load(delta + i * Codec::kBytes);
    float next = change;
    if constexpr (kD) next = d[i] + change;
    any |= bad(change) | bad(next);
    if constexpr (kWrite) next_d[i] = next;
  }
  return any;
}

void sum_block(Parts parts, float* out, size_t n) {
  if (parts.t && parts.d) return sum_loop<true, true>(parts, out, n);
  if (parts.t) return sum_loop<true, false>(parts, out, n);
  if (parts.d) return sum_loop<false, true>(parts, out, n);
  memcpy(out, parts.p, n * sizeof(float));
}

template <typename Codec>
uint32_t encode_block(Parts parts, unsigned char* out, size_t n) {
  if (parts.t && parts.d) return encode_loop<Codec, true, true>(parts, out, n);
  if (parts.t) return encode_loop<Codec, true, false>(parts, out, n);
  if (parts.d) return encode_loop<Codec, false, true>(parts, out, n);
  return encode_loop<Codec, false, false>(parts, out, n);
}

template <typename Codec, bool kT, bool kD>
BlockSums commit_write(Parts parts, const unsigned char* proposal, float weight,
                       unsigned char* delta_out, float* next_d, size_t n) {
  if (next_d)
    return commit_loop<Codec, kT, kD, true>(parts, proposal, weight, delta_out, next_d, n);
  return commit_loop<Codec, kT, kD, false>(parts, proposal, weight, delta_out, next_d, n);
}

template <typename Codec>
BlockSums commit_block(Parts parts, const unsigned char* proposal, float weight,
                       unsigned char* delta_out, float* next_d, size_t n) {
  if (parts.t && parts.d)
    return commit_write<Codec, true, true>(parts, proposal, weight, delta_out, next_d, n);
  if (parts.t)
    return commit_write<Codec, true, false>(parts, proposal, weight, delta_out, next_d, n);
  if (parts.d)
    return commit_write<Codec, false, true>(parts, proposal, weight, delta_out, next_d, n);
  return commit_write<Codec, false, false>(parts, proposal, weight, delta_out, next_d, n);
}

template <typename Codec>
uint32_t add_payload_block(const float* d, const unsigned char* delta, float sign, float* next_d,
                           size_t n) {
  if (d && next_d) return add_loop<Codec, true, true>(d, delta, sign, next_d, n);
  if (d) return add_loop<Codec, true, false>(d, delta, sign, next_d, n);
  if (next_d) return add_loop<Codec, false, true>(d, delta, sign, next_d, n);
  return add_loop<Codec, false, false>(d, delta, sign, next_d, n);
}

template <typename Codec>
constexpr CodecLoops codec_loops() {
  return {&encode_block<Codec>, &commit_block<Codec>, &add_payload_block<Codec>};
}

}  // namespace

const Table KITH_KERNEL_TABLE = {KITH_KERNEL_NAME,   &add_block, &add_and_copy_block,
                                 &bad_values_block,  &sum_block, codec_loops<Fp32>(),
                                 codec_loops<Bf16>()};

}  // namespace kith::compute::kernels
