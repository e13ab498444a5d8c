// mix64: spreads every bit of a word over all of it, one to one. For digests and order that must be
// the same on every machine; not against people who choose the input.
#pragma once

#include <cstdint>

namespace kith {

// What splitmix64 adds before each mix, so that zero does not stay zero.
inline constexpr std::uint64_t kMixStep = 0x9E3779B97F4A7C15ULL;

// The finisher of splitmix64 (Steele, Lea and Flood 2014). Thread: any.
constexpr std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

}  // namespace kith
