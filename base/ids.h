// Identifiers that appear on the wire, in logs and on disk. Values without behaviour; every thread may copy them.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace kith {

// Lower-case hexadecimal of any bytes, and back (odd length or another character is an error).
std::string to_hex(std::span<const std::byte> bytes);
Result<std::string> from_hex(std::string_view hex);

// A node's identity: its Ed25519 public key, 32 bytes. Ordered bytewise ("the lowest live id").
struct NodeId {
  std::array<std::uint8_t, 32> bytes{};
  auto operator<=>(const NodeId&) const = default;
  [[nodiscard]] bool is_zero() const { return *this == NodeId{}; }
  [[nodiscard]] std::string hex() const;        // 64 characters
  [[nodiscard]] std::string short_hex() const;  // first 8 characters, for logs
  static Result<NodeId> from_hex(std::string_view hex);
};

// BLAKE2b-256 of something; which something is said where the value is declared.
struct Hash256 {
  std::array<std::uint8_t, 32> bytes{};
  auto operator<=>(const Hash256&) const = default;
  [[nodiscard]] std::string hex() const;
};

// Index of a fragment of the flat parameter space, 0 <= index < fragment count of the model schema.
using FragmentIndex = std::uint32_t;
// Optimiser steps of one node. Samples done are counted separately (Samples).
using Step = std::uint64_t;
using Samples = std::uint64_t;
// Persisted boot counter in the high 32 bits, refutation counter in the low ones. Never falls for one NodeId.
using Incarnation = std::uint64_t;

// One exchange: who proposed it, in which incarnation, its running number there (from 1). Never reused.
struct ExchangeId {
  NodeId initiator;
  Incarnation incarnation = 0;
  std::uint64_t sequence = 0;
  auto operator<=>(const ExchangeId&) const = default;
  // Order in which crossing proposals are settled: equal on both sides and on all machines, unrelated to
  // who has the lower id (so nobody wins always). FNV-1a with a final mix; ties by operator<=>.
  [[nodiscard]] std::uint64_t settle_hash() const;
};

struct NodeIdHasher {
  std::size_t operator()(const NodeId& id) const {
    std::size_t value = 0;
    std::memcpy(&value, id.bytes.data(), sizeof value);  // a public key is uniform already
    return value;
  }
};
struct ExchangeIdHasher {
  std::size_t operator()(const ExchangeId& e) const { return static_cast<std::size_t>(e.settle_hash()); }
};

// How values travel in exchanges. The number is on the wire and in checkpoints: never renumber.
enum class CodecId : std::uint16_t { kFp32 = 0, kBf16 = 1 };

}  // namespace kith
