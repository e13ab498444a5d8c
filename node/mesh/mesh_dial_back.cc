#include "node/mesh/mesh_dial_back.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "node/text/address.h"

namespace kith::node {
namespace {

using schema::DialBackOutcome;

constexpr Duration kLookEvery = std::chrono::milliseconds(10);

DialBackOutcome outcome_of(int error) {
  if (error == 0) return DialBackOutcome::kReached;
  if (error == ECONNREFUSED) return DialBackOutcome::kRefused;
  return error == ETIMEDOUT ? DialBackOutcome::kSilent : DialBackOutcome::kUnreachable;
}

// A socket on its way to host:port, or the error number, negative.
int begin_connect(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    return -EHOSTUNREACH;
  const int fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int error = fd < 0 || ::connect(fd, found->ai_addr, found->ai_addrlen) == 0 ? 0 : errno;
  ::freeaddrinfo(found);
  if (fd < 0) return -EHOSTUNREACH;
  if (error == 0 || error == EINPROGRESS) return fd;
  ::close(fd);
  return -error;
}

// Whether the attempt has ended, and how.
bool ended(int fd, int& error) {
  pollfd item{fd, POLLOUT, 0};
  if (::poll(&item, 1, 0) != 1) return false;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = EHOSTUNREACH;
  return true;
}

}  // namespace

DialBacks::~DialBacks() {
  for (const Try& attempt : open_) ::close(attempt.fd);
}

void DialBacks::finish(Answer answer, DialBackOutcome outcome) {
  answer.message.outcome = outcome;
  done_.push_back(std::move(answer));
  next_look_ = TimePoint{};
}

void DialBacks::start(std::string routing_id, const schema::Nonce& nonce, const std::string& host,
                      std::uint16_t port, TimePoint now) {
  Answer answer{std::move(routing_id),
                {nonce, DialBackOutcome::kUnknown, HostPort{host, port}.text()}};
  if (open_.size() >= kOpenMax || now < next_start_)
    return finish(std::move(answer), DialBackOutcome::kBusy);
  next_start_ = now + kPause;
  const int fd = begin_connect(host, port);
  if (fd < 0) return finish(std::move(answer), outcome_of(-fd));
  open_.push_back({fd, now + kPatience, std::move(answer)});
  next_look_ = std::min(next_look_, now + kLookEvery);
}

std::vector<DialBacks::Answer> DialBacks::tick(TimePoint now) {
  if (now < next_look_) return {};
  std::erase_if(open_, [&](Try& attempt) {
    int error = 0;
    const bool over = ended(attempt.fd, error);
    if (!over && now < attempt.deadline) return false;
    ::close(attempt.fd);
    finish(std::move(attempt.answer), over ? outcome_of(error) : DialBackOutcome::kSilent);
    return true;
  });
  next_look_ = open_.empty() ? TimePoint::max() : now + kLookEvery;
  return std::exchange(done_, {});
}

TimePoint DialBacks::next_deadline() const { return next_look_; }

}  // namespace kith::node
