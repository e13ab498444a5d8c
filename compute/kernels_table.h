// The table of block loops that each instruction-set level provides; kernels.cc chooses one.
// Internal to kernels*.cc.
//
// Only plain pointers and sizes appear here and in kernels_impl.h: an inline function of the
// standard library compiled with AVX could otherwise be the copy that the linker keeps for
// everybody.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace kith::compute::kernels {

// Longest run of values that one call handles; longer ones are cut so that running sums stay in
// cache and exact.
inline constexpr size_t kBlockValues = 4096;

struct BlockSums {
  double distance_squared;
  double norm_squared;
  uint32_t bad;  // not 0: something was not finite
};

struct Parts {
  const float* p;
  const float* t;  // may be null
  const float* d;  // may be null
};

// One codec's loops; encoded bytes at any address.
struct CodecLoops {
  uint32_t (*encode)(Parts parts, unsigned char* out, size_t n);
  BlockSums (*commit)(Parts parts, const unsigned char* proposal, float weight,
                      unsigned char* delta_out, float* next_d, size_t n);
  uint32_t (*add)(const float* d, const unsigned char* delta, float sign, float* next_d, size_t n);
};

struct Table {
  const char* name;
  void (*add)(float* x, const float* t, size_t n);
  void (*add_and_copy)(float* x, const float* t, float* p, size_t n);
  uint32_t (*bad_values)(const float* x, size_t n);
  void (*sum)(Parts parts, float* out, size_t n);
  CodecLoops fp32;
  CodecLoops bf16;
};

extern const Table kBaseTable;
#if defined(__x86_64__)
extern const Table kAvx2Table;
#endif

}  // namespace kith::compute::kernels
