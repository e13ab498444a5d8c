// The doctor's own small network calls, each with a bound: names, one connection, the greeting that
// a ZeroMQ listener sends. Blocking; any thread.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "node/text/address.h"

namespace kith::node {

// lookup_host() with a bound; a lookup that is still busy goes on in a thread of its own.
Result<std::vector<std::string>> lookup_within(const std::string& host, Duration bound);

struct Reached {
  double milliseconds = 0;  // until the connection stood
  std::string own_host;     // this machine's address on that way
  std::string greeting;     // what the other side sent first, at most 64 bytes
};
// Connects to a numeric address and closes again. With `greet`, also exchanges ZeroMQ's greetings
// and keeps what came. The error says "refused", "no answer in 3 s", "no way there".
Result<Reached> reach(const HostPort& address, Duration bound, bool greet);
inline constexpr Duration kGreetingPatience = std::chrono::milliseconds(1500);

// Listens for a moment where no daemon does, so that a dial-back finds somebody.
class BriefListener {
 public:
  // Not an error: somebody listens there already, or it cannot be listened there (open() is false).
  explicit BriefListener(const HostPort& address);
  ~BriefListener();
  BriefListener(const BriefListener&) = delete;
  BriefListener& operator=(const BriefListener&) = delete;
  [[nodiscard]] bool open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace kith::node
