// Random: a seeded generator with distributions of our own, because the standard library's differ between
// vendors and a seed must replay the same run everywhere (g++ and clang++, libstdc++ and libc++).
// Generator: xoshiro256** (Blackman and Vigna 2018), seeded through splitmix64. Not for secrets.
// Thread: one owner; give each component its own with fork().
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace kith {

class Random {
 public:
  explicit Random(std::uint64_t seed);

  std::uint64_t next();                                // uniform over all 64-bit values
  std::uint64_t below(std::uint64_t bound);            // uniform in [0, bound), unbiased (Lemire 2019); bound > 0
  double uniform();                                    // [0, 1), 53 bits
  double uniform(double low, double high);             // [low, high)
  bool chance(double probability);                     // true with this probability
  double normal();                                     // mean 0, deviation 1 (polar method, no cached half)
  double exponential(double mean);                     // mean > 0
  template <typename T>
  void shuffle(std::span<T> values) {                  // Fisher-Yates
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

  // An independent generator derived from this one's seed and a label: the same label gives the same stream,
  // and drawing from one never shifts another.
  [[nodiscard]] Random fork(std::string_view label) const;

  // For checkpoints.
  using State = std::array<std::uint64_t, 5>;
  [[nodiscard]] State state() const { return {s_[0], s_[1], s_[2], s_[3], seed_}; }
  void restore(const State& state);

 private:
  std::uint64_t seed_;
  std::array<std::uint64_t, 4> s_{};
};

}  // namespace kith
