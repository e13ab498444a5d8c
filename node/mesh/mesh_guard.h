// FloodGuard: cuts connections that send without end a message that never ends.
//
// libzmq hands a message on when its last frame is there, and counts neither frames nor bytes
// before that: MAXMSGSIZE and the high-water marks do not bound it (measured: 1.5 GB from one
// peer), and this version cannot drop a chosen peer. The kernel does count the bytes of each TCP
// connection; so whoever sent more than all queues could hold, while not one message of it came
// out, is cut by shutting its TCP connection down. What was gathered is freed with it. Holds at
// most `undelivered_max` plus what arrives between two checks. Thread: the Mesh's owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "base/clock.h"

namespace kith::node {

class FloodGuard {
 public:
  explicit FloodGuard(std::uint64_t undelivered_max) : undelivered_max_(undelivered_max) {}

  void opened(int fd);
  void closed(int fd);
  void delivered(int fd);  // a whole message of this connection came out
  // Shuts it down, unless the descriptor is another connection's by now.
  void cut(int fd);
  // Looks at every connection, when it is time to. Returns how many were cut.
  std::size_t check(TimePoint now);
  [[nodiscard]] TimePoint next_check() const {
    return connections_.empty() ? TimePoint::max() : next_check_;
  }

 private:
  struct Connection {
    std::string peer;  // address, to be sure that the descriptor is still the same connection
    std::uint64_t received = 0;  // bytes when a message came out last
    bool delivered = false;      // since the last check
  };
  bool has_flooded(int fd, Connection& connection) const;
  static bool shut_down(int fd, const Connection& connection);

  const std::uint64_t undelivered_max_;
  std::unordered_map<int, Connection> connections_;
  TimePoint next_check_;
};

}  // namespace kith::node
