#include "compute/kernels.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "compute/kernels_table.h"

namespace kith::compute {
namespace {

using kernels::kBlockValues;
using kernels::Table;

struct Levels {
  std::vector<const Table*> tables;
  std::vector<std::string_view> names;
};

Levels find_levels() {
  Levels levels;
  levels.tables.push_back(&kernels::kBaseTable);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) levels.tables.push_back(&kernels::kAvx2Table);
#endif
  for (const Table* table : levels.tables) levels.names.push_back(table->name);
  return levels;
}

const Levels& levels() {
  static const Levels found = find_levels();
  return found;
}

std::atomic<const Table*>& chosen() {
  static std::atomic<const Table*> table{levels().tables.back()};
  return table;
}

const Table& active() { return *chosen().load(std::memory_order_relaxed); }

const kernels::CodecLoops& loops(CodecId codec) {
  return codec == CodecId::kBf16 ? active().bf16 : active().fp32;
}

// Walks a payload in blocks; a block that lies across pieces is gathered, so that every block is
// handled the same way.
class PieceReader {
 public:
  explicit PieceReader(const Payload& payload) : payload_(payload) {}

  const unsigned char* next(std::size_t bytes) {
    skip_ended();
    const auto piece = payload_.pieces[piece_].bytes();
    if (piece.size() - offset_ < bytes) return gather(bytes);
    const std::byte* at = piece.data() + offset_;
    offset_ += bytes;
    return reinterpret_cast<const unsigned char*>(at);
  }

 private:
  void skip_ended() {
    while (offset_ == payload_.pieces[piece_].size()) {
      ++piece_;
      offset_ = 0;
    }
  }

  const unsigned char* gather(std::size_t bytes) {
    std::size_t done = 0;
    while (done < bytes) {
      skip_ended();
      const auto piece = payload_.pieces[piece_].bytes();
      const std::size_t part = std::min(bytes - done, piece.size() - offset_);
      std::memcpy(scratch_.data() + done, piece.data() + offset_, part);
      done += part;
      offset_ += part;
    }
    return scratch_.data();
  }

  const Payload& payload_;
  std::size_t piece_ = 0;
  std::size_t offset_ = 0;
  alignas(64) std::array<unsigned char, kBlockValues * sizeof(float)> scratch_;
};

kernels::Parts at(const ReplicaParts& parts, std::size_t offset) {
  return {parts.p + offset, parts.t ? parts.t + offset : nullptr,
          parts.d ? parts.d + offset : nullptr};
}

unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

// Calls body(offset, count) for each block of n values.
template <typename Body>
void for_blocks(std::size_t n, Body&& body) {
  for (std::size_t i = 0; i < n; i += kBlockValues) body(i, std::min(kBlockValues, n - i));
}

}  // namespace

std::size_t encoded_value_bytes(CodecId codec) { return codec == CodecId::kBf16 ? 2 : 4; }

void add(float* x, const float* t, std::size_t n) { active().add(x, t, n); }

void add_and_copy(float* x, const float* t, float* p, std::size_t n) {
  active().add_and_copy(x, t, p, n);
}

bool all_finite(const float* x, std::size_t n) { return active().bad_values(x, n) == 0; }

void sum_parts(const ReplicaParts& parts, float* out, std::size_t n) {
  active().sum({parts.p, parts.t, parts.d}, out, n);
}

bool encode_parts(const ReplicaParts& parts, CodecId codec, std::byte* out, std::size_t n) {
  return loops(codec).encode({parts.p, parts.t, parts.d}, raw(out), n) == 0;
}

CommitSums commit_parts(const ReplicaParts& parts, const Payload& proposal, CodecId codec,
                        float weight, std::byte* delta_out, float* next_d, std::size_t n) {
  const auto& loop = loops(codec);
  const std::size_t width = encoded_value_bytes(codec);
  PieceReader reader(proposal);
  CommitSums sums;
  for_blocks(n, [&](std::size_t i, std::size_t count) {
    const auto block =
        loop.commit(at(parts, i), reader.next(count * width), weight, raw(delta_out) + i * width,
                    next_d ? next_d + i : nullptr, count);
    sums.distance_squared += block.distance_squared;
    sums.norm_squared += block.norm_squared;
    sums.finite = sums.finite && block.bad == 0;
  });
  return sums;
}

bool add_payload(const float* d, const Payload& delta, CodecId codec, float sign, float* next_d,
                 std::size_t n) {
  const auto& loop = loops(codec);
  const std::size_t width = encoded_value_bytes(codec);
  PieceReader reader(delta);
  std::uint32_t bad = 0;
  for_blocks(n, [&](std::size_t i, std::size_t count) {
    bad |= loop.add(d ? d + i : nullptr, reader.next(count * width), sign,
                    next_d ? next_d + i : nullptr, count);
  });
  return bad == 0;
}

std::span<const std::string_view> kernel_levels() { return levels().names; }

void force_kernel_level(std::string_view level) {
  if (level.empty()) return chosen().store(levels().tables.back());
  for (const Table* table : levels().tables) {
    if (level == table->name) return chosen().store(table);
  }
  KITH_CHECK(false, "no kernel level '" + std::string(level) + "' on this processor");
}

}  // namespace kith::compute
