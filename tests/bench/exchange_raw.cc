// The yardstick: a plain TCP connection between the two processes, written and read with 1 MiB
// calls by one thread each per process, so that both directions run at once; from and into memory
// of the model's size, which is touched beforehand.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "node/mesh/mesh_socket.h"
#include "tests/bench/exchange_lane.h"

namespace kith::bench {
namespace {

constexpr std::size_t kCallBytes = 1U << 20;

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

tl::unexpected<Error> socket_error(const char* what) {
  return fail(std::string(what) + ": " + std::strerror(errno));
}

void set_buffers(int fd) {
  const int bytes = node::bulk_buffer_bytes();  // the same as the mesh's
  if (bytes == 0) return;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// Side 0 listens, side 1 connects.
Result<Fd> connect_pair(Pair& pair) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return socket_error("socket");
  set_buffers(socket.get());  // before listen and connect: the window scale is agreed on then
  if (pair.side() == 0) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    if (bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0)
      return socket_error("bind");
    if (listen(socket.get(), 1) != 0) return socket_error("listen");
    getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
    pair.trade(std::uint64_t{ntohs(address.sin_port)});
    socket = Fd(accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.get() < 0) return socket_error("accept");
  } else {
    sockaddr_in address = loopback(static_cast<std::uint16_t>(pair.trade(std::uint64_t{0})));
    if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      return socket_error("connect");
  }
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

class RawLane final : public Lane {
 public:
  RawLane(Fd socket, int side, std::size_t values)
      : socket_(std::move(socket)), side_(side), own_(values), theirs_(values) {}
  [[nodiscard]] std::string_view name() const override { return "raw socket"; }
  void prepare(std::uint64_t round) override;
  Status run() override;
  Result<std::uint64_t> check(std::uint64_t round) override;

 private:
  [[nodiscard]] bool send_own() const;
  bool receive_theirs();

  Fd socket_;
  int side_;
  std::vector<float> own_, theirs_;
};

void RawLane::prepare(std::uint64_t round) {
  for (std::size_t i = 0; i < own_.size(); ++i) own_[i] = start_value(side_, round, i);
  std::fill(theirs_.begin(), theirs_.end(), 0.0F);
}

bool RawLane::send_own() const {
  const auto* at = reinterpret_cast<const char*>(own_.data());
  std::size_t left = own_.size() * sizeof(float);
  while (left > 0) {
    const ssize_t done = send(socket_.get(), at, std::min(left, kCallBytes), MSG_NOSIGNAL);
    if (done <= 0) return false;
    at += done;
    left -= static_cast<std::size_t>(done);
  }
  return true;
}

bool RawLane::receive_theirs() {
  auto* at = reinterpret_cast<char*>(theirs_.data());
  std::size_t left = theirs_.size() * sizeof(float);
  while (left > 0) {
    const ssize_t done = recv(socket_.get(), at, std::min(left, kCallBytes), 0);
    if (done <= 0) return false;
    at += done;
    left -= static_cast<std::size_t>(done);
  }
  return true;
}

Status RawLane::run() {
  bool sent = false;
  std::thread sender([&] { sent = send_own(); });
  const bool received = receive_theirs();
  sender.join();
  if (!sent || !received) return socket_error("raw transfer");
  return {};
}

Result<std::uint64_t> RawLane::check(std::uint64_t round) {
  for (std::size_t i = 0; i < theirs_.size(); ++i)
    if (theirs_[i] != start_value(1 - side_, round, i))
      return fail("the raw socket delivered wrong bytes");
  return std::uint64_t{0};
}

}  // namespace

Result<std::unique_ptr<Lane>> make_raw_lane(const ExchangeBenchOptions& options, Pair& pair) {
  KITH_ASSIGN(Fd socket, connect_pair(pair));
  return std::unique_ptr<Lane>(
      std::make_unique<RawLane>(std::move(socket), pair.side(), value_count(options)));
}

}  // namespace kith::bench
