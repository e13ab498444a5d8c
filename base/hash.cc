#include "base/hash.h"

#include <sodium.h>

#include "base/check.h"

namespace kith {
namespace {

// Lets libsodium choose its implementations for this processor, once, before the first use.
void ensure_sodium() {
  static const int ready = sodium_init();
  KITH_CHECK(ready >= 0, "libsodium must initialise");
}

const unsigned char* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

struct Hasher::State {
  crypto_generichash_state blake;
  bool finished = false;
};

Hasher::Hasher() {
  ensure_sodium();
  state_ = std::make_unique<State>();
  crypto_generichash_init(&state_->blake, nullptr, 0, sizeof(Hash256::bytes));
}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

Hasher& Hasher::add(std::span<const std::byte> bytes) {
  KITH_CHECK(!state_->finished, "a hash is finished once and takes nothing afterwards");
  crypto_generichash_update(&state_->blake, raw(bytes), bytes.size());
  return *this;
}

Hasher& Hasher::add(std::string_view text) {
  add(static_cast<std::uint64_t>(text.size()));
  return add(std::as_bytes(std::span(text)));
}

Hasher& Hasher::add(std::uint64_t value) {
  std::array<std::byte, 8> little;
  for (std::byte& byte : little) {
    byte = static_cast<std::byte>(value & 0xFFU);
    value >>= 8;
  }
  return add(std::span<const std::byte>(little));
}

Hash256 Hasher::finish() {
  KITH_CHECK(!state_->finished, "a hash is finished once");
  state_->finished = true;
  Hash256 out;
  crypto_generichash_final(&state_->blake, out.bytes.data(), out.bytes.size());
  return out;
}

Hash256 hash_bytes(std::span<const std::byte> bytes) { return Hasher().add(bytes).finish(); }

}  // namespace kith
