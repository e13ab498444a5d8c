// BLAKE2b-256 (RFC 7693) through libsodium: schema hashes, data fingerprints, fragment hashes. Any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "base/ids.h"

namespace kith {

class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  Hasher& add(std::span<const std::byte> bytes);
  // Length-prefixed (u64, little endian), so that ("ab","c") and ("a","bc") differ.
  Hasher& add(std::string_view text);
  Hasher& add(std::uint64_t value);
  [[nodiscard]] Hash256 finish();  // once

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Hash256 hash_bytes(std::span<const std::byte> bytes);

}  // namespace kith
