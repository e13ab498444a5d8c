#include "node/cli/socket_wait.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

namespace kith::node {

bool wait_for_fd(int fd, short events, SocketDeadline until) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd item{fd, events, 0};
    const int rc = ::poll(&item, 1, static_cast<int>(std::max<long>(0, left.count())));
    if (rc > 0) return true;
    if (rc == 0 || errno != EINTR) return false;
  }
}

int connect_until(int fd, const sockaddr* address, socklen_t size, SocketDeadline until) {
  if (::connect(fd, address, size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for_fd(fd, POLLOUT, until)) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

}  // namespace kith::node
