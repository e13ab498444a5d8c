// A client that can misbehave: raw bytes over a socket, with a bound on every wait.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "monitoring/listen_socket.h"

namespace kith::monitoring::testing {

class RawClient {
 public:
  static RawClient tcp(const std::string& address);
  static RawClient local(const std::string& path);
  static RawClient unconnected();
  bool connect_to(const std::string& address);
  bool send(std::string_view bytes);
  // Everything until the server closes; "" also when nothing came. Gives up after ten seconds.
  std::string read_all();
  // What comes within this time.
  std::string read_within(Duration bound);
  void shrink_receive_buffer();

 private:
  explicit RawClient(Fd fd);
  Fd fd_;
};

// One request, one answer.
std::string request(const std::string& address, const std::string& path);

}  // namespace kith::monitoring::testing
