// Addresses as people write them: host:port, 1.2.3.4:port, [v6]:port, names that stand for many
// machines. Pure functions but for lookup_host(), which blocks on the system's resolver: only
// AddressResolver calls it for dials. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kith::node {

struct MeshAddress {
  std::string host;  // without brackets
  std::uint16_t port = 0;
  bool operator==(const MeshAddress&) const = default;
};

// kUsage says what is wrong with `text` and how an address looks. Port 0 parses: it means "any"
// where one binds.
Result<MeshAddress> parse_mesh_address(std::string_view text);
// "host:port" again, IPv6 in brackets.
std::string to_string(const MeshAddress& address);
// A list as flags and the environment bring it: "a:1, b:2," -> {"a:1", "b:2"}; blanks trimmed,
// empties skipped.
std::vector<std::string> split_address_list(std::string_view text);

// True for literal IPv4 and IPv6 addresses, which need no lookup.
bool is_numeric_host(const std::string& host);
// True for 127.0.0.0/8, ::1 and the mapped forms of the first. Only for numeric hosts; a name is
// never loopback.
bool is_loopback_host(const std::string& host);
// True for 0.0.0.0, :: and *.
bool is_any_host(const std::string& host);

// "tcp://1.2.3.4:7400", "tcp://[::1]:7400". The host must be numeric or *.
std::string tcp_endpoint(const MeshAddress& address);
// All addresses of a host, numeric, in the resolver's order, each once. Blocks, for many seconds if
// the resolver is silent.
Result<std::vector<std::string>> lookup_host(const std::string& host);

}  // namespace kith::node
