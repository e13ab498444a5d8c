#include "node/daemon/wake.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "base/check.h"

namespace kith::node {

Wake::Wake() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  KITH_CHECK(fd_ >= 0, "an eventfd can be had at start");
}
Wake::~Wake() { ::close(fd_); }

void Wake::ring() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd_, &one, sizeof one);  // full = rung already
}

void Wake::wait(Duration at_most) const {
  pollfd fd{fd_, POLLIN, 0};
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(at_most).count();
  ::poll(&fd, 1, ms < 0 ? 0 : static_cast<int>(ms));
}

void Wake::clear() const {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto read = ::read(fd_, &count, sizeof count);
}

}  // namespace kith::node
