#include "node/config_address.h"

#include <arpa/inet.h>

#include <algorithm>

#include "node/config_value.h"

namespace kith::node {
namespace {

tl::unexpected<Error> bad(std::string_view text, const std::string& why) {
  return fail(ErrorCode::kUsage, in_quotes(text) + " is not an address: " + why);
}

bool is_ipv6(const std::string& host) {
  in6_addr parsed{};
  return inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &parsed) == 1;
}

bool is_name(std::string_view host) {
  const auto is_name_char = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  };
  return !host.empty() && host.size() <= 253 && host.front() != '-' && host.front() != '.' &&
         host.find("..") == std::string_view::npos && std::ranges::all_of(host, is_name_char);
}

bool looks_numeric(std::string_view host) {
  return host.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool is_ipv4(const std::string& host) {
  in_addr parsed{};
  return inet_pton(AF_INET, host.c_str(), &parsed) == 1;
}

Result<std::uint16_t> parse_port(std::string_view text, std::string_view port, PortRule rule) {
  const auto value = parse_integer(port);
  const std::int64_t lowest = rule == PortRule::kMayBeZero ? 0 : 1;
  if (!value || *value < lowest || *value > 65535 || port.front() == '+')
    return bad(text, "the port must be a number from " + std::to_string(lowest) + " to 65535");
  return static_cast<std::uint16_t>(*value);
}

// Splits into host and the rest, which is "" or ":port".
Result<std::pair<HostPort, std::string_view>> split_host(std::string_view text) {
  HostPort result;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return bad(text, "']' is missing");
    result.host = std::string(text.substr(1, close - 1));
    result.ipv6 = true;
    if (!is_ipv6(result.host)) return bad(text, "what is in the brackets is not IPv6");
    return std::pair{result, text.substr(close + 1)};
  }
  const auto colon = text.find(':');
  if (colon != text.rfind(':')) return bad(text, "write IPv6 in brackets, such as [::1]:7400");
  result.host = std::string(text.substr(0, colon));
  if (result.host.empty()) return bad(text, "the host is missing; 0.0.0.0 means all addresses");
  if (looks_numeric(result.host) && !is_ipv4(result.host))
    return bad(text, in_quotes(result.host) + " is not an IPv4 address");
  if (!is_name(result.host)) return bad(text, in_quotes(result.host) + " is not a host name");
  return std::pair{result, colon == std::string_view::npos ? "" : text.substr(colon)};
}

}  // namespace

std::string HostPort::text() const {
  return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<HostPort> parse_address(std::string_view text, PortRule rule) {
  if (text.empty()) return bad(text, "it is empty; expected host:port or [IPv6]:port");
  KITH_ASSIGN(auto parts, split_host(text));
  auto& [address, rest] = parts;
  if (rest.empty()) {
    if (rule == PortRule::kMayBeAbsent) return address;
    return bad(text, "the port is missing; expected host:port or [IPv6]:port");
  }
  if (rest.front() != ':' || rest.size() == 1)
    return bad(text, "expected host:port or [IPv6]:port");
  KITH_ASSIGN(address.port, parse_port(text, rest.substr(1), rule));
  return address;
}

}  // namespace kith::node
