#include "node/mesh/mesh_guard.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <optional>

namespace kith::node {
namespace {

constexpr Duration kCheckEvery = std::chrono::milliseconds(100);
constexpr std::size_t kConnectionsPerInterval =
    256;  // more of them: looked at less often, so that this stays cheap

std::string peer_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return {reinterpret_cast<const char*>(&address), size};
}

std::optional<std::uint64_t> bytes_received(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  if (size < offsetof(tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received)
    return std::nullopt;
  return info.tcpi_bytes_received;
}

}  // namespace

void FloodGuard::opened(int fd) { connections_[fd] = {peer_of(fd), 0, false}; }
void FloodGuard::closed(int fd) { connections_.erase(fd); }

void FloodGuard::delivered(int fd) {
  if (const auto it = connections_.find(fd); it != connections_.end()) it->second.delivered = true;
}

bool FloodGuard::has_flooded(int fd, Connection& connection) const {
  const auto received = bytes_received(fd);
  if (!received) return false;
  if (connection.delivered) connection.received = *received;
  connection.delivered = false;
  return *received > connection.received + undelivered_max_;
}

void FloodGuard::cut(int fd) {
  if (const auto it = connections_.find(fd); it != connections_.end()) shut_down(fd, it->second);
}

// libzmq sees the end of the stream and closes it.
bool FloodGuard::shut_down(int fd, const Connection& connection) {
  return peer_of(fd) == connection.peer && shutdown(fd, SHUT_RDWR) == 0;
}

std::size_t FloodGuard::check(TimePoint now) {
  if (now < next_check_) return 0;
  next_check_ = now + kCheckEvery * (1 + connections_.size() / kConnectionsPerInterval);
  std::size_t cut = 0;
  for (auto& [fd, connection] : connections_) {
    if (!has_flooded(fd, connection) || !shut_down(fd, connection)) continue;
    connection.received = ~0ULL - undelivered_max_;  // once
    ++cut;
  }
  return cut;
}

}  // namespace kith::node
