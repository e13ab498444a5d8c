#include "monitoring/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "monitoring/request_answerer.h"

namespace kith::monitoring {
namespace {

constexpr Duration kDrainTimeout = std::chrono::seconds(1);

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Connection::Connection(Fd fd, bool commands, const HttpLimits& limits, TimePoint now)
    : commands_(commands),
      limits_(limits),
      accepted_(now),
      fd_(std::move(fd)),
      deadline_(now + limits.read_timeout) {}

short Connection::poll_events() const {
  if (state_ == State::kReading || state_ == State::kDraining) return POLLIN;
  return state_ == State::kWriting ? POLLOUT : 0;
}

bool Connection::on_readable(TimePoint now) {
  if (state_ == State::kReading) return read_request(now);
  if (state_ == State::kDraining) drain();
  if (state_ == State::kWriting) on_writable(now);
  return false;
}

bool Connection::read_request(TimePoint now) {
  char buffer[4096];
  const ssize_t count = recv(fd_.get(), buffer, sizeof buffer, 0);
  if (count < 0 && would_block()) return false;
  if (count <= 0) {
    close();
    return false;
  }
  // Only the tail can complete the blank line that ends the headers.
  const std::size_t from = input_.size() < 3 ? 0 : input_.size() - 3;
  input_.append(buffer, static_cast<std::size_t>(count));
  if (input_.find("\r\n\r\n", from) != std::string::npos) {
    state_ = State::kServing;
    deadline_ = TimePoint::max();
    return true;
  }
  if (input_.size() > limits_.request_bytes_max) answer(now, std::string(too_large_answer()));
  return false;
}

std::string Connection::take_request() { return std::move(input_); }

void Connection::answer(TimePoint now, std::string bytes) {
  output_ = std::move(bytes);
  state_ = State::kWriting;
  deadline_ = now + limits_.write_timeout;
  on_writable(now);
}

void Connection::on_writable(TimePoint now) {
  while (state_ == State::kWriting && written_ < output_.size()) {
    const ssize_t count =
        send(fd_.get(), output_.data() + written_, output_.size() - written_, MSG_NOSIGNAL);
    if (count < 0 && would_block()) return;
    if (count <= 0) return close();
    written_ += static_cast<std::size_t>(count);
  }
  if (state_ != State::kWriting) return;
  shutdown(fd_.get(), SHUT_WR);
  state_ = State::kDraining;
  deadline_ = now + kDrainTimeout;
}

void Connection::drain() {
  char buffer[4096];
  const ssize_t count = recv(fd_.get(), buffer, sizeof buffer, 0);
  if (count == 0 || (count < 0 && !would_block())) close();
}

void Connection::on_deadline(TimePoint now) {
  if (now < deadline_) return;
  if (state_ == State::kWriting) {
    // Reset it: otherwise the kernel goes on feeding the slow client, and holds the rest in its memory.
    const linger reset{1, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  close();
}

void Connection::close() {
  state_ = State::kClosed;
  fd_.reset();
}

}  // namespace kith::monitoring
