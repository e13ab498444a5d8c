// Addresses as people write them: host:port, 1.2.3.4:port, [IPv6]:port, names that stand for many
// machines. parse_address() judges the form alone; names are looked up later. Pure functions but
// for lookup_host(), which blocks on the system's resolver: only AddressResolver calls it for
// dials. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kith::node {

inline constexpr std::uint16_t kDefaultPort = 7400;

struct HostPort {
  std::string host;  // without brackets
  std::uint16_t port = 0;
  [[nodiscard]] bool is_ipv6() const { return host.find(':') != std::string::npos; }
  [[nodiscard]] std::string text() const;  // "host:port" or "[v6]:port"
  bool operator==(const HostPort&) const = default;
};

enum class PortRule {
  kRequired,     // 1 to 65535
  kMayBeZero,    // listening: 0 = any
  kMayBeAbsent,  // port stays 0 when left out
};
// kUsage with the address, what is wrong with it and how it is written.
Result<HostPort> parse_address(std::string_view text, PortRule rule);
// For what a mesh listens on or dials: blanks around it are passed over, * is every address and
// port 0 is any.
Result<HostPort> parse_mesh_address(std::string_view text);

// True for literal IPv4 and IPv6 addresses, which need no lookup.
bool is_numeric_host(const std::string& host);
// True for 127.0.0.0/8, ::1 and the mapped forms of the first. Only for numeric hosts; a name is
// never loopback.
bool is_loopback_host(const std::string& host);
// True for 0.0.0.0, :: and *.
bool is_any_host(const std::string& host);

// "tcp://1.2.3.4:7400", "tcp://[::1]:7400". The host must be numeric or *.
std::string tcp_endpoint(const HostPort& address);
// All addresses of a host, numeric, in the resolver's order, each once. Blocks, for many seconds if
// the resolver is silent.
Result<std::vector<std::string>> lookup_host(const std::string& host);

}  // namespace kith::node
