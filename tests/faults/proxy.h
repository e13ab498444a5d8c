// A TCP proxy in user space, for what the kernel cannot do without netem: delay and jitter, and
// cuts that leave connections standing. It lives in a lab's proxy namespace, where it stands for
// every node under an address of its own; nodes advertise that address, so all they say to each
// other passes through here. Bytes of a connection keep their order. Runs a thread of its own from
// construction to destruction; every call is for the test's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/faults/net_lab.h"

namespace kith::e2e {

class Proxy {
 public:
  // Forwards proxy_address(k):port to address(k):port for each node and port.
  Proxy(const NetLab& lab, std::vector<std::uint16_t> ports);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // Each way; uniformly between base - jitter and base + jitter.
  void delay(std::chrono::milliseconds base, std::chrono::milliseconds jitter);
  // What `from` says to `to` is held back, until heal(). Connections stay.
  void cut(std::size_t from, std::size_t to);
  void heal();
  [[nodiscard]] std::uint64_t bytes_forwarded() const;

 private:
  struct Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace kith::e2e
