// Waiting for sockets with a bound, for the blocking calls of `kith`. Thread: any.
#pragma once

#include <sys/socket.h>

#include <chrono>

namespace kith::node {

using SocketDeadline = std::chrono::steady_clock::time_point;

// Until `fd` has one of poll(2)'s `events`, an error or its end; false when `until` passes first.
[[nodiscard]] bool wait_for_fd(int fd, short events, SocketDeadline until);

// Connects a socket that does not block: 0, or the error number; ETIMEDOUT when `until` passes.
[[nodiscard]] int connect_until(int fd, const sockaddr* address, socklen_t size,
                                SocketDeadline until);

}  // namespace kith::node
