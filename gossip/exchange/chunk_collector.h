// ChunkCollector: one payload arriving in chunks, in any order, some of them twice. Chunks stay
// where they were received (Slices, no copy); memory beyond one Slice per chunk grows only as bytes
// arrive. Thread: one owner.
#pragma once

#include <cstdint>
#include <utility>

#include "base/buffer.h"
#include "gossip/exchange/chunk_bits.h"

namespace kith::gossip {

class ChunkCollector {
 public:
  ChunkCollector() = default;
  // The chunking must be sane (is_sane_chunking).
  ChunkCollector(std::uint64_t payload_bytes, std::uint32_t chunk_bytes)
      : payload_bytes_(payload_bytes),
        chunk_bytes_(chunk_bytes),
        received_(chunk_count(payload_bytes, chunk_bytes)) {
    payload_.pieces.resize(received_.size());
  }

  enum class Take { kTaken, kDuplicate, kInvalid };
  // kInvalid: no such index, or not the size that this chunk must have.
  Take take(std::uint32_t index, const Slice& bytes) {
    if (index >= received_.size() ||
        bytes.size() != chunk_size(payload_bytes_, chunk_bytes_, index)) {
      return Take::kInvalid;
    }
    if (received_.test(index)) return Take::kDuplicate;
    received_.set(index);
    payload_.pieces[index] = bytes;
    ++taken_;
    return Take::kTaken;
  }

  [[nodiscard]] bool complete() const { return taken_ == received_.size(); }
  [[nodiscard]] std::uint64_t payload_bytes() const { return payload_bytes_; }
  [[nodiscard]] std::uint32_t chunk_bytes() const { return chunk_bytes_; }
  [[nodiscard]] std::uint32_t taken() const { return taken_; }
  [[nodiscard]] const std::vector<std::uint64_t>& received() const { return received_.words(); }
  [[nodiscard]] const Payload& payload() const { return payload_; }
  [[nodiscard]] Payload release() { return std::move(payload_); }

 private:
  std::uint64_t payload_bytes_ = 0;
  std::uint32_t chunk_bytes_ = 1;
  std::uint32_t taken_ = 0;
  ChunkBits received_;
  Payload payload_;
};

}  // namespace kith::gossip
