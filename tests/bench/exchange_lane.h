// Lane: one way of moving a model both ways between two processes. Each process holds its own end.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tests/bench/exchange_bench.h"
#include "tests/bench/exchange_pair.h"

namespace kith::bench {

class Lane {
 public:
  virtual ~Lane() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  virtual void prepare(std::uint64_t round) = 0;  // not timed
  virtual Status run() = 0;  // timed: until this side has and has given everything
  // Not timed: is the outcome right? A hash of it, which must be equal on both sides if they
  // averaged; 0 if not.
  virtual Result<std::uint64_t> check(std::uint64_t round) = 0;
};

// The value that a side starts a round with: small integers, so that means are exact in fp32.
inline float start_value(int side, std::uint64_t round, std::size_t index) {
  return static_cast<float>(
      (index * 2654435761U + round * 97 + static_cast<std::size_t>(side) * 389) % 1021);
}
inline float mean_value(std::uint64_t round, std::size_t index) {
  return 0.5F * (start_value(0, round, index) + start_value(1, round, index));
}

std::size_t value_count(const ExchangeBenchOptions& options);

// A plain TCP socket, both directions at once.
Result<std::unique_ptr<Lane>> make_raw_lane(const ExchangeBenchOptions& options, Pair& pair);
// Mesh, exchange machine with ledger and credit, replica: what kithd runs. `key`: 64 hexadecimal
// characters, or empty.
Result<std::unique_ptr<Lane>> make_kith_lane(const ExchangeBenchOptions& options, Pair& pair,
                                             const std::string& key);
// Gloo out of LibTorch; null when built without it.
Result<std::unique_ptr<Lane>> make_gloo_lane(const ExchangeBenchOptions& options, Pair& pair);

}  // namespace kith::bench
