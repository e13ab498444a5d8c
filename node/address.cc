#include "node/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

namespace kith::node {
namespace {

constexpr std::string_view kShape =
    "expected host:port, for example 10.0.0.5:7400 or [fe80::1]:7400";

tl::unexpected<Error> bad_address(std::string_view text, std::string_view why) {
  return fail(ErrorCode::kUsage, "address '" + std::string(text) + "': " + std::string(why) + "; " +
                                     std::string(kShape));
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (value > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(value);
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

Result<MeshAddress> parse_mesh_address(std::string_view text) {
  const std::string_view trimmed = trim(text);
  if (trimmed.empty()) return bad_address(text, "is empty");
  const bool bracketed = trimmed.front() == '[';
  const auto close = trimmed.find(']');
  if (bracketed && close == std::string_view::npos) return bad_address(text, "lacks the closing ]");
  const auto colon = bracketed ? close + 1 : trimmed.rfind(':');
  if (colon >= trimmed.size() || trimmed[colon] != ':') return bad_address(text, "has no port");

  const auto host = bracketed ? trimmed.substr(1, close - 1) : trimmed.substr(0, colon);
  if (host.empty()) return bad_address(text, "has no host");
  if (host.size() > 253) return bad_address(text, "has a host of more than 253 characters");
  if (!bracketed && host.find(':') != std::string_view::npos)
    return bad_address(text, "is IPv6 without brackets");
  if (host.find_first_of(" \t\r\n/,;@\"'") != std::string_view::npos ||
      host.find('\0') != std::string_view::npos)
    return bad_address(text, "has a host with characters that no host has");
  const auto port = parse_port(trimmed.substr(colon + 1));
  if (!port) return bad_address(text, "has a port that is not a number from 0 to 65535");
  if (bracketed && !is_numeric_host(std::string(host)))
    return bad_address(text, "has brackets around something that is not an IPv6 address");
  return MeshAddress{std::string(host), *port};
}

std::string to_string(const MeshAddress& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

std::vector<std::string> split_address_list(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    if (const auto part = trim(text.substr(0, comma)); !part.empty()) parts.emplace_back(part);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

bool is_numeric_host(const std::string& host) { return numeric_addresses(host) != nullptr; }

bool is_loopback_host(const std::string& host) {
  const AddressList list = numeric_addresses(host);
  return list && is_loopback(list->ai_addr);
}

bool is_any_host(const std::string& host) {
  return host == "*" || host == "0.0.0.0" || host == "::";
}

std::string tcp_endpoint(const MeshAddress& address) { return "tcp://" + to_string(address); }

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
