// Listening sockets for HttpServer: TCP on host:port, and a Unix socket that only its owner may
// use. Thread: one owner. Errors: kUsage for an address that does not parse, kAddressInUse for one
// that is taken; both name it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace kith::monitoring {

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { reset(); }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool open() const { return fd_ >= 0; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

struct HostPort {
  std::string host;  // without brackets
  std::string port;  // decimal, 0 to 65535
};
Result<HostPort> parse_listen_address(std::string_view address);

struct ListenSocket {
  Fd fd;                // non-blocking
  std::string address;  // host:port with the real port, or the path
};
Result<ListenSocket> listen_tcp(std::string_view address);
// Replaces a socket that a dead process left there; the caller holds the lock of the folder it lies
// in. Works for paths longer than the 107 bytes that sockaddr_un can hold.
Result<ListenSocket> listen_unix(const std::string& path);
// A blocking connection to such a socket; kNoDaemon names the path.
Result<Fd> connect_unix(const std::string& path);

}  // namespace kith::monitoring
