#include "tests/faults/proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/e2e/cluster.h"

namespace kith::e2e {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {

constexpr std::size_t kHeldBytesMax = 4 << 20;  // per direction: above, the sender feels it

sockaddr_in internet(const std::string& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

const sockaddr* general(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

int stream_socket() { return ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

// One direction of a connection.
struct Pump {
  struct Piece {
    Clock::time_point due;
    std::string bytes;
  };
  int in = -1, out = -1;
  std::size_t from = 0, to = 0;
  std::deque<Piece> held;
  std::size_t held_bytes = 0;
  bool ended = false;    // nothing more comes in
  bool blocked = false;  // the receiver's socket is full
};

struct Connection {
  std::array<Pump, 2> pumps;
  bool broken = false;
};

struct Listener {
  int fd = -1;
  std::size_t node = 0;
  std::uint16_t port = 0;
};

}  // namespace

struct Proxy::Loop {
  std::vector<Listener> listeners;
  std::list<Connection> connections;
  std::mt19937 random{1};
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> forwarded{0};
  std::mutex guard;  // of the three below
  milliseconds base{0}, jitter{0};
  std::set<std::pair<std::size_t, std::size_t>> cuts;
  std::thread thread;

  void run();
  void accept_from(const Listener& listener);
  void take(Connection& connection, Pump& pump);
  void give(Connection& connection, Pump& pump, Clock::time_point now);
  bool is_cut(const Pump& pump) {
    const std::lock_guard lock(guard);
    return cuts.contains({pump.from, pump.to});
  }
  milliseconds draw_delay() {
    const std::lock_guard lock(guard);
    const auto spread = jitter.count();
    return base + milliseconds(std::uniform_int_distribution<long>(-spread, spread)(random));
  }
};

void Proxy::Loop::accept_from(const Listener& listener) {
  sockaddr_in peer{};
  socklen_t length = sizeof peer;
  const int in = ::accept4(listener.fd, reinterpret_cast<sockaddr*>(&peer), &length,
                           SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (in < 0) return;
  const int out = stream_socket();
  const sockaddr_in to = internet(NetLab::address(listener.node), listener.port);
  if (::connect(out, general(to), sizeof to) != 0 && errno != EINPROGRESS) {
    ::close(in);
    ::close(out);
    return;
  }
  const int on = 1;
  for (const int fd : {in, out}) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const std::size_t from = (ntohl(peer.sin_addr.s_addr) & 0xff) - 1;
  Connection connection;
  connection.pumps[0] = {in, out, from, listener.node, {}, 0, false, false};
  connection.pumps[1] = {out, in, listener.node, from, {}, 0, false, false};
  connections.push_back(std::move(connection));
}

void Proxy::Loop::take(Connection& connection, Pump& pump) {
  char buffer[65536];
  const ssize_t got = ::recv(pump.in, buffer, sizeof buffer, 0);
  if (got < 0) {
    if (errno != EAGAIN && errno != EINTR && errno != ENOTCONN) connection.broken = true;
    return;
  }
  pump.ended = got == 0;
  if (got == 0) return;
  const auto after = pump.held.empty() ? Clock::time_point::min() : pump.held.back().due;
  pump.held.push_back({std::max(after, Clock::now() + draw_delay()),
                       std::string(buffer, static_cast<std::size_t>(got))});
  pump.held_bytes += static_cast<std::size_t>(got);
}

void Proxy::Loop::give(Connection& connection, Pump& pump, Clock::time_point now) {
  pump.blocked = false;
  while (!pump.held.empty() && pump.held.front().due <= now && !is_cut(pump)) {
    auto& bytes = pump.held.front().bytes;
    const ssize_t sent = ::send(pump.out, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      pump.blocked = errno == EAGAIN || errno == ENOTCONN || errno == EINTR;
      connection.broken = connection.broken || !pump.blocked;
      return;
    }
    forwarded += static_cast<std::uint64_t>(sent);
    pump.held_bytes -= static_cast<std::size_t>(sent);
    bytes.erase(0, static_cast<std::size_t>(sent));
    if (bytes.empty()) pump.held.pop_front();
  }
  if (pump.ended && pump.held.empty())
    connection.broken = true;  // a half-closed pair serves nobody here
}

void Proxy::Loop::run() {
  while (!stop) {
    const auto now = Clock::now();
    std::vector<pollfd> polls;
    auto wake = now + milliseconds(20);
    for (const Listener& listener : listeners) polls.push_back({listener.fd, POLLIN, 0});
    for (auto it = connections.begin(); it != connections.end();) {
      for (Pump& pump : it->pumps) give(*it, pump, now);
      if (it->broken) {
        ::close(it->pumps[0].in);
        ::close(it->pumps[0].out);
        it = connections.erase(it);
        continue;
      }
      for (Pump& pump : it->pumps) {
        if (!pump.held.empty() && !pump.blocked)
          wake = std::min(wake, std::max(pump.held.front().due, now + milliseconds(1)));
        const bool reads = !pump.ended && pump.held_bytes < kHeldBytesMax;
        polls.push_back({pump.in, static_cast<short>(reads ? POLLIN : 0), 0});
      }
      ++it;
    }
    const auto left = std::chrono::duration_cast<milliseconds>(wake - now);
    ::poll(polls.data(), polls.size(), static_cast<int>(left.count()));
    std::size_t i = 0;
    auto connection = connections.begin();
    for (const Listener& listener : listeners)
      if ((polls[i++].revents & POLLIN) != 0) accept_from(listener);
    for (; i < polls.size(); i += 2, ++connection)
      for (std::size_t d = 0; d < 2; ++d)
        if ((polls[i + d].revents & (POLLIN | POLLERR | POLLHUP)) != 0 && polls[i + d].events != 0)
          take(*connection, connection->pumps[d]);
  }
  for (auto& connection : connections) {
    ::close(connection.pumps[0].in);
    ::close(connection.pumps[0].out);
  }
}

Proxy::Proxy(const NetLab& lab, std::vector<std::uint16_t> ports)
    : loop_(std::make_unique<Loop>()) {
  {
    const InNetns inside(lab.proxy_netns());
    for (std::size_t node = 0; node < lab.size(); ++node) {
      for (const std::uint16_t port : ports) {
        const int fd = stream_socket();
        const sockaddr_in address = internet(NetLab::proxy_address(node), port);
        if (::bind(fd, general(address), sizeof address) != 0 || ::listen(fd, 64) != 0)
          throw std::runtime_error(std::string("the proxy cannot listen: ") + std::strerror(errno));
        loop_->listeners.push_back({fd, node, port});
      }
    }
  }
  loop_->thread = std::thread([loop = loop_.get(), netns = lab.proxy_netns()] {
    const InNetns inside(netns);  // connections to the nodes are made here
    loop->run();
  });
}

Proxy::~Proxy() {
  loop_->stop = true;
  loop_->thread.join();
  for (const Listener& listener : loop_->listeners) ::close(listener.fd);
}

void Proxy::delay(milliseconds base, milliseconds jitter) {
  const std::lock_guard lock(loop_->guard);
  loop_->base = base;
  loop_->jitter = std::min(jitter, base);
}

void Proxy::cut(std::size_t from, std::size_t to) {
  const std::lock_guard lock(loop_->guard);
  loop_->cuts.insert({from, to});
}

void Proxy::heal() {
  const std::lock_guard lock(loop_->guard);
  loop_->cuts.clear();
}

std::uint64_t Proxy::bytes_forwarded() const { return loop_->forwarded; }

}  // namespace kith::e2e
