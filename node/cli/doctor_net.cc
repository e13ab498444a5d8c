#include "node/cli/doctor_net.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <thread>

#include "node/cli/socket_wait.h"

namespace kith::node {
namespace {

using SteadyClock = std::chrono::steady_clock;

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

struct FreeAddress {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Address = std::unique_ptr<addrinfo, FreeAddress>;

Address numeric(const HostPort& address, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const char* host =
      is_any_host(address.host) && !address.is_ipv6() ? nullptr : address.host.c_str();
  if (::getaddrinfo(host, std::to_string(address.port).c_str(), &hints, &found) != 0)
    return nullptr;
  return Address(found);
}

std::string words_of(int error, Duration bound) {
  switch (error) {
    case ECONNREFUSED:
      return "refused";
    case ETIMEDOUT:
      return "no answer in " + std::to_string(static_cast<int>(to_seconds(bound))) + " s";
    default:
      return std::string("no way there (") + std::strerror(error) + ")";
  }
}

std::string own_host(const Socket& socket) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  std::array<char, NI_MAXHOST> text{};
  if (::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&own), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return "";
  return text.data();
}

// ZMTP 3.1: signature and version, the first 12 of 64 bytes. The listener then sends its whole
// greeting, with its mechanism; it would close without a word upon another mechanism of ours.
std::string own_greeting() { return {"\xFF\0\0\0\0\0\0\0\1\x7F\3\1", 12}; }

std::string exchange_greetings(const Socket& socket, SteadyClock::time_point until) {
  const std::string own = own_greeting();
  if (::send(socket.fd(), own.data(), own.size(), MSG_NOSIGNAL) < 0) return "";
  std::string got;
  while (got.size() < 64 && wait_for_fd(socket.fd(), POLLIN, until)) {
    std::array<char, 64> buffer{};
    const auto bytes = ::recv(socket.fd(), buffer.data(), 64 - got.size(), 0);
    if (bytes <= 0) break;
    got.append(buffer.data(), static_cast<std::size_t>(bytes));
    if (static_cast<unsigned char>(got[0]) != 0xFF) break;
  }
  return got;
}

}  // namespace

Result<std::vector<std::string>> lookup_within(const std::string& host, Duration bound) {
  auto promise = std::make_shared<std::promise<Result<std::vector<std::string>>>>();
  auto future = promise->get_future();
  std::thread([promise, host] { promise->set_value(lookup_host(host)); }).detach();
  if (future.wait_for(bound) == std::future_status::ready) return future.get();
  return fail("the resolver did not answer in " +
              std::to_string(static_cast<int>(to_seconds(bound))) + " s");
}

Result<Reached> reach(const HostPort& address, Duration bound, bool greet) {
  const Address to = numeric(address, 0);
  if (!to) return fail("not an address of this machine's kinds");
  const Socket socket(::socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.fd() < 0) return fail(words_of(errno, bound));
  const auto began = SteadyClock::now();
  if (const int error = connect_until(socket.fd(), to->ai_addr, to->ai_addrlen, began + bound);
      error != 0)
    return fail(words_of(error, bound));
  Reached reached;
  reached.milliseconds =
      std::chrono::duration<double, std::milli>(SteadyClock::now() - began).count();
  reached.own_host = own_host(socket);
  if (greet) reached.greeting = exchange_greetings(socket, SteadyClock::now() + kGreetingPatience);
  return reached;
}

BriefListener::BriefListener(const HostPort& address) {
  const Address at = numeric(address, AI_PASSIVE);
  if (!at) return;
  const int fd = ::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (fd >= 0 && ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
      ::bind(fd, at->ai_addr, at->ai_addrlen) == 0 && ::listen(fd, 4) == 0) {
    fd_ = fd;
  } else if (fd >= 0) {
    ::close(fd);
  }
}

BriefListener::~BriefListener() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace kith::node
