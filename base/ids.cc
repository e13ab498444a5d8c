#include "base/ids.h"

namespace kith {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";
constexpr std::uint64_t kFnvOffset = 0xCBF29CE484222325ULL;
constexpr std::uint64_t kFnvPrime = 0x100000001B3ULL;

int nibble(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::uint64_t fnv_add(std::uint64_t hash, std::uint64_t value) {
  for (int i = 0; i < 8; ++i, value >>= 8) hash = (hash ^ (value & 0xFFU)) * kFnvPrime;
  return hash;
}

// Final mix of MurmurHash3 (Appleby): FNV alone leaves the high bits of short inputs poorly spread.
std::uint64_t final_mix(std::uint64_t h) {
  h = (h ^ (h >> 33)) * 0xFF51AFD7ED558CCDULL;
  h = (h ^ (h >> 33)) * 0xC4CEB9FE1A85EC53ULL;
  return h ^ (h >> 33);
}

}  // namespace

std::string to_hex(std::span<const std::byte> bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const std::byte byte : bytes) {
    const auto value = static_cast<unsigned>(byte);
    out.push_back(kDigits[value >> 4]);
    out.push_back(kDigits[value & 0xFU]);
  }
  return out;
}

Result<std::string> from_hex(std::string_view hex) {
  if (hex.size() % 2 != 0)
    return fail("hexadecimal text has an odd length of " + std::to_string(hex.size()));
  std::string out;
  out.reserve(hex.size() / 2);
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const int high = nibble(hex[i]);
    const int low = nibble(hex[i + 1]);
    if (high < 0 || low < 0)
      return fail("not a hexadecimal digit at position " + std::to_string(high < 0 ? i : i + 1));
    out.push_back(static_cast<char>(high * 16 + low));
  }
  return out;
}

std::string NodeId::hex() const { return to_hex(std::as_bytes(std::span(bytes))); }

std::string NodeId::short_hex() const { return to_hex(std::as_bytes(std::span(bytes).first(4))); }

Result<NodeId> NodeId::from_hex(std::string_view hex) {
  NodeId id;
  if (hex.size() != 2 * id.bytes.size())
    return fail("a node id has 64 hexadecimal digits, this one has " + std::to_string(hex.size()));
  KITH_ASSIGN(const std::string raw, ::kith::from_hex(hex));
  std::memcpy(id.bytes.data(), raw.data(), id.bytes.size());
  return id;
}

std::string Hash256::hex() const { return to_hex(std::as_bytes(std::span(bytes))); }

std::uint64_t ExchangeId::settle_hash() const {
  std::uint64_t hash = kFnvOffset;
  for (const std::uint8_t byte : initiator.bytes) hash = (hash ^ byte) * kFnvPrime;
  return final_mix(fnv_add(fnv_add(hash, incarnation), sequence));
}

}  // namespace kith
