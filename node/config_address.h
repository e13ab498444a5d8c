// Addresses as people write them: host:port, [IPv6]:port. Only the form is judged here; names are
// looked up later. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace kith::node {

struct HostPort {
  std::string host;  // without brackets
  std::uint16_t port = 0;
  bool ipv6 = false;
  [[nodiscard]] std::string text() const;  // "host:port" or "[v6]:port"
};

enum class PortRule {
  kRequired,     // 1 to 65535
  kMayBeZero,    // listening: 0 = any
  kMayBeAbsent,  // port stays 0 when left out
};
// kUsage with the address, what is wrong with it and how it is written.
Result<HostPort> parse_address(std::string_view text, PortRule rule);

inline constexpr std::uint16_t kDefaultPort = 7400;

}  // namespace kith::node
