#include "node/text/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "node/text/text.h"

namespace kith::node {
namespace {

constexpr const char* kShape = "expected host:port or [IPv6]:port";

tl::unexpected<Error> bad(std::string_view text, const std::string& why) {
  return fail(ErrorCode::kUsage, in_quotes(text) + " is not an address: " + why + "; " + kShape);
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
  const unsigned lowest = rule == PortRule::kMayBeZero ? 0 : 1;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), value);
  if (error != std::errc{} || end != port.data() + port.size() || value < lowest || value > 65535)
    return bad(text, "the port must be a number from " + std::to_string(lowest) + " to 65535");
  return static_cast<std::uint16_t>(value);
}

// Splits into host and the rest, which is "" or ":port".
Result<std::pair<HostPort, std::string_view>> split_host(std::string_view text) {
  HostPort result;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return bad(text, "']' is missing");
    result.host = std::string(text.substr(1, close - 1));
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

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, FreeAddresses>;

AddressList numeric_addresses(const std::string& host) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  return getaddrinfo(host.c_str(), nullptr, &hints, &list) == 0 ? AddressList(list) : nullptr;
}

std::string numeric_text(const addrinfo& entry) {
  char text[NI_MAXHOST] = {};
  const int rc =
      getnameinfo(entry.ai_addr, entry.ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return rc == 0 ? text : "";
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
  }
  if (address->sa_family != AF_INET6) return false;
  const auto& v6 = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

}  // namespace

std::string HostPort::text() const {
  return (is_ipv6() ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<HostPort> parse_address(std::string_view text, PortRule rule) {
  if (text.empty()) return bad(text, "it is empty");
  KITH_ASSIGN(auto parts, split_host(text));
  auto& [address, rest] = parts;
  if (rest.empty()) {
    if (rule == PortRule::kMayBeAbsent) return address;
    return bad(text, "the port is missing");
  }
  if (rest.front() != ':') return bad(text, "what follows the bracket is not a port");
  if (rest.size() == 1) return bad(text, "nothing follows the colon");
  KITH_ASSIGN(address.port, parse_port(text, rest.substr(1), rule));
  return address;
}

Result<HostPort> parse_mesh_address(std::string_view text) {
  const std::string_view address = trimmed(text);
  if (!address.starts_with("*:")) return parse_address(address, PortRule::kMayBeZero);
  KITH_ASSIGN(const std::uint16_t port, parse_port(text, address.substr(2), PortRule::kMayBeZero));
  return HostPort{"*", port};
}

bool is_numeric_host(const std::string& host) { return numeric_addresses(host) != nullptr; }

bool is_loopback_host(const std::string& host) {
  const AddressList list = numeric_addresses(host);
  return list && is_loopback(list->ai_addr);
}

bool is_any_host(const std::string& host) {
  return host == "*" || host == "0.0.0.0" || host == "::";
}

std::string tcp_endpoint(const HostPort& address) { return "tcp://" + address.text(); }

Result<std::vector<std::string>> lookup_host(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  const int rc = getaddrinfo(host.c_str(), nullptr, &hints, &raw);
  const AddressList list(rc == 0 ? raw : nullptr);
  if (rc != 0) return fail("name '" + host + "' cannot be looked up: " + gai_strerror(rc));
  std::vector<std::string> addresses;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    auto text = numeric_text(*entry);
    if (!text.empty() && std::find(addresses.begin(), addresses.end(), text) == addresses.end())
      addresses.push_back(std::move(text));
  }
  return addresses;
}

}  // namespace kith::node
