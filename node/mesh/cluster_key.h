// ClusterKey: 32 secret bytes that every node of a cluster has. Who has them may join. The CURVE
// key pair of all links is derived from them, the same one on both ends: a server lets in exactly
// this public key, a client talks to exactly this one. The shared key identifies nobody; nodes
// prove who they are in the handshake (mesh_handshake.h).
//
// File: 64 hexadecimal characters, mode 0600. A file that others may read is refused.
// The bytes live in memory that is locked and wiped (libsodium); there is no way to print them but
// save(). Thread: immutable after construction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace kith::node {

// N bytes in locked, guarded memory. Prints as "[redacted]".
template <std::size_t N>
class Secret {
 public:
  Secret();
  [[nodiscard]] std::span<std::uint8_t, N> bytes() {
    return std::span<std::uint8_t, N>(data_.get(), N);
  }
  [[nodiscard]] std::span<const std::uint8_t, N> bytes() const {
    return std::span<const std::uint8_t, N>(data_.get(), N);
  }

 private:
  struct Wipe {
    void operator()(std::uint8_t* data) const;
  };
  std::unique_ptr<std::uint8_t, Wipe> data_;
};
extern template class Secret<32>;

struct CurveKeys {
  std::array<std::uint8_t, 32> public_key{};
  Secret<32> secret_key;
};

class ClusterKey {
 public:
  static ClusterKey generate();
  // 64 hexadecimal characters; kUsage says what is wrong, never with the text itself.
  static Result<ClusterKey> from_hex(std::string_view hex);
  // kNotFound, or kUsage: readable by others (with the chmod that mends it), not a key.
  static Result<ClusterKey> load(const std::string& path);
  // Writes a new file, mode 0600; an existing one is never overwritten (kUsage).
  Status save(const std::string& path) const;

  [[nodiscard]] const CurveKeys& curve() const { return curve_; }

 private:
  explicit ClusterKey(Secret<32> secret);
  Secret<32> secret_;
  CurveKeys curve_;
};

template <std::size_t N>
std::ostream& operator<<(std::ostream& out, const Secret<N>&) {
  return out << "[redacted]";
}
std::ostream& operator<<(std::ostream& out, const ClusterKey&);
std::string to_string(const ClusterKey&);

}  // namespace kith::node
