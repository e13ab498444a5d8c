#include "monitoring/listen_socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

namespace kith::monitoring {
namespace {

constexpr int kBacklog = 128;

std::string errno_text() {
  return std::strerror(errno);
}  // NOLINT(concurrency-mt-unsafe): only at start

bool is_port(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value <= 65535;
}

// host:port of a bound socket, in the notation that parse_listen_address reads.
std::string bound_address(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), length, host, sizeof host, port,
                  sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "";
  }
  return address.ss_family == AF_INET6 ? "[" + std::string(host) + "]:" + port
                                       : std::string(host) + ":" + port;
}

Error bind_error(std::string_view address) {
  const std::string where = "http address " + std::string(address);
  if (errno == EADDRINUSE) {
    return {ErrorCode::kAddressInUse,
            where + " is in use: choose another with --http, or port 0 for any"};
  }
  if (errno == EADDRNOTAVAIL)
    return {ErrorCode::kUsage, where + " does not belong to this machine"};
  if (errno == EACCES)
    return {ErrorCode::kUsage, where + ": this user may not listen on it (ports below 1024)"};
  return {ErrorCode::kFailed, where + ": " + errno_text()};
}

Result<ListenSocket> bind_first(const addrinfo* found, std::string_view address) {
  Error error;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    Fd fd(socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, one->ai_protocol));
    const int yes = 1;
    if (fd.open()) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (fd.open() && bind(fd.get(), one->ai_addr, one->ai_addrlen) == 0 &&
        listen(fd.get(), kBacklog) == 0) {
      std::string bound = bound_address(fd.get());
      return ListenSocket{std::move(fd), std::move(bound)};
    }
    error = bind_error(address);
  }
  return fail(std::move(error));
}

// A socket address for `path`. Beyond 107 bytes it goes through an open descriptor of the folder,
// which `folder` holds.
Result<sockaddr_un> unix_address(const std::string& path, Fd& folder) {
  sockaddr_un out{};
  out.sun_family = AF_UNIX;
  std::string usable = path;
  if (path.size() >= sizeof out.sun_path) {
    const auto slash = path.rfind('/');
    if (slash == std::string::npos)
      return fail(ErrorCode::kUsage, "socket name " + path + " is too long");
    folder = Fd(open(path.substr(0, slash + 1).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder.open()) return fail("socket " + path + ": " + errno_text());
    usable = "/proc/self/fd/" + std::to_string(folder.get()) + path.substr(slash);
  }
  if (usable.empty() || usable.size() >= sizeof out.sun_path) {
    return fail(ErrorCode::kUsage, "socket name '" + path + "' is empty or too long");
  }
  std::memcpy(out.sun_path, usable.c_str(), usable.size() + 1);
  return out;
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}
int Fd::release() { return std::exchange(fd_, -1); }
void Fd::reset() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

Result<HostPort> parse_listen_address(std::string_view address) {
  const auto colon = address.rfind(':');
  HostPort out;
  if (colon != std::string_view::npos) {
    out.host = address.substr(0, colon);
    out.port = address.substr(colon + 1);
  }
  const bool bracketed = out.host.starts_with('[') && out.host.ends_with(']');
  if (bracketed) out.host = out.host.substr(1, out.host.size() - 2);
  if (out.host.empty() || !is_port(out.port) ||
      (!bracketed && out.host.find(':') != std::string::npos)) {
    return fail(ErrorCode::kUsage, "http address '" + std::string(address) +
                                       "' is not host:port (IPv6 in brackets, port 0 to 65535)");
  }
  return out;
}

Result<ListenSocket> listen_tcp(std::string_view address) {
  KITH_ASSIGN(const HostPort parts, parse_listen_address(address));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int rc = getaddrinfo(parts.host.c_str(), parts.port.c_str(), &hints, &found);
  if (rc != 0) {
    return fail(ErrorCode::kUsage, "http address " + std::string(address) + ": cannot look up '" +
                                       parts.host + "' (" + gai_strerror(rc) + ")");
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  return bind_first(found, address);
}

Result<ListenSocket> listen_unix(const std::string& path) {
  Fd folder;
  KITH_ASSIGN(const sockaddr_un address, unix_address(path, folder));
  struct stat existing {};
  if (lstat(path.c_str(), &existing) == 0 && S_ISSOCK(existing.st_mode)) unlink(path.c_str());
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.open()) return fail("socket " + path + ": " + errno_text());
  fchmod(fd.get(), 0600);  // before bind, so that there is no moment at which others may connect
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd.get(), kBacklog) != 0) {
    return fail("socket " + path + ": " + errno_text());
  }
  return ListenSocket{std::move(fd), path};
}

Result<Fd> connect_unix(const std::string& path) {
  Fd folder;
  KITH_ASSIGN(const sockaddr_un address, unix_address(path, folder));
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.open() ||
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail(ErrorCode::kNoDaemon, "no daemon answers at " + path + ": " + errno_text());
  }
  return fd;
}

}  // namespace kith::monitoring
