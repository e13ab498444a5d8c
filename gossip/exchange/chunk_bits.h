// A set of chunk indices as CREDIT carries it: bit i of word i/64. Values; any thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "schema/messages.h"

namespace kith::gossip {

class ChunkBits {
 public:
  explicit ChunkBits(std::uint32_t count = 0) : count_(count), words_((count + 63) / 64) {}

  [[nodiscard]] std::uint32_t size() const { return count_; }
  [[nodiscard]] bool test(std::uint32_t i) const { return (words_[i / 64] >> (i % 64) & 1U) != 0; }
  void set(std::uint32_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  void clear() { words_.assign(words_.size(), 0); }
  [[nodiscard]] std::uint32_t count_set() const {
    std::uint32_t sum = 0;
    for (const std::uint64_t word : words_) sum += static_cast<std::uint32_t>(std::popcount(word));
    return sum;
  }
  // Adds those of `other` (of the same size); returns how many are new.
  std::uint32_t merge(const ChunkBits& other) {
    std::uint32_t news = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      news += static_cast<std::uint32_t>(std::popcount(other.words_[i] & ~words_[i]));
      words_[i] |= other.words_[i];
    }
    return news;
  }
  // Removes those of `other` (of the same size); returns how many went.
  std::uint32_t subtract(const ChunkBits& other) {
    std::uint32_t gone = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      gone += static_cast<std::uint32_t>(std::popcount(other.words_[i] & words_[i]));
      words_[i] &= ~other.words_[i];
    }
    return gone;
  }
  // Bits from outside: missing words are zero; words and bits beyond size() are ignored.
  void assign(std::span<const std::uint64_t> words) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] = i < words.size() ? words[i] : 0;
    if (count_ % 64 != 0) words_.back() &= (std::uint64_t{1} << (count_ % 64)) - 1;
  }
  [[nodiscard]] const std::vector<std::uint64_t>& words() const { return words_; }

 private:
  std::uint32_t count_;
  std::vector<std::uint64_t> words_;
};

// How a payload is cut: every chunk but the last has chunk_bytes.
inline std::uint32_t chunk_count(std::uint64_t payload_bytes, std::uint32_t chunk_bytes) {
  return static_cast<std::uint32_t>((payload_bytes + chunk_bytes - 1) / chunk_bytes);
}
inline std::size_t chunk_size(std::uint64_t payload_bytes, std::uint32_t chunk_bytes,
                              std::uint32_t index) {
  const std::uint64_t begin = std::uint64_t{index} * chunk_bytes;
  return static_cast<std::size_t>(std::min<std::uint64_t>(chunk_bytes, payload_bytes - begin));
}
// True when a payload may be cut so: 1 to kChunksPerPayloadMax chunks of 1 to kChunkBytesMax bytes.
inline bool is_sane_chunking(std::uint64_t payload_bytes, std::uint32_t chunk_bytes) {
  return chunk_bytes > 0 && chunk_bytes <= schema::kChunkBytesMax && payload_bytes > 0 &&
         (payload_bytes - 1) / chunk_bytes < schema::kChunksPerPayloadMax;
}

}  // namespace kith::gossip
