#include "node/cli/http_exchange.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <optional>
#include <string_view>

#include "node/cli/socket_wait.h"
#include "node/text/text.h"

namespace kith::node {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kReadBytes = 65536;

class Connection {
 public:
  explicit Connection(int family)
      : fd_(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {}
  ~Connection() {
    if (fd_ >= 0) ::close(fd_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] bool connect(const sockaddr* address, socklen_t size, SocketDeadline until) const {
    return fd_ >= 0 && connect_until(fd_, address, size, until) == 0;
  }

  [[nodiscard]] bool send(std::string_view text, SocketDeadline until) const {
    while (!text.empty()) {
      if (!wait_for_fd(fd_, POLLOUT, until)) return false;
      const auto sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent > 0) text.remove_prefix(static_cast<std::size_t>(sent));
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
    }
    return true;
  }

  // Appends what has come; false at its end, or when nothing came in time.
  bool receive(std::string& text, SocketDeadline until) {
    if (!wait_for_fd(fd_, POLLIN, until)) return false;
    const auto got = ::recv(fd_, buffer_.data(), buffer_.size(), 0);
    if (got > 0) text.append(buffer_.data(), static_cast<std::size_t>(got));
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
  }

 private:
  int fd_;
  std::array<char, kReadBytes> buffer_{};
};

template <typename T>
std::optional<T> number_in(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// What is known of an answer once its headers are here.
struct Head {
  int status = 0;
  std::size_t body_at = 0;
  std::optional<std::size_t> body_bytes;  // unknown: until the connection ends
};

std::optional<Head> head_of(std::string_view text) {
  const std::size_t end = text.find("\r\n\r\n");
  if (end == std::string_view::npos || !text.starts_with("HTTP/1.") || end < 12)
    return std::nullopt;
  const auto status = number_in<int>(text.substr(9, 3));
  if (!status) return std::nullopt;
  Head head{*status, end + 4, std::nullopt};
  for (std::string_view rest = text.substr(0, end); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find("\r\n"));
    rest.remove_prefix(std::min(rest.size(), line.size() + 2));
    const std::size_t colon = line.find(':');
    std::string name(line.substr(0, colon));
    std::ranges::transform(name, name.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? char(c + ('a' - 'A')) : c; });
    if (colon == std::string_view::npos || name != "content-length") continue;
    head.body_bytes = number_in<std::size_t>(trimmed(line.substr(colon + 1)));
    if (!head.body_bytes || *head.body_bytes > kAnswerBytesMax) return std::nullopt;
  }
  return head;
}

bool is_whole(const std::string& text, const std::optional<Head>& head) {
  return head && head->body_bytes && text.size() - head->body_at >= *head->body_bytes;
}

}  // namespace

Result<HttpAnswer> http_exchange(const sockaddr* address, socklen_t size,
                                 const HttpRequest& request) {
  const auto patience = std::chrono::nanoseconds(request.patience);
  const SocketDeadline last = SteadyClock::now() + patience * kPatiencesInAll;
  const auto until = [&] { return std::min(last, SteadyClock::now() + patience); };
  Connection connection(address->sa_family);
  if (!connection.connect(address, size, until()))
    return fail(ErrorCode::kNoDaemon, "nobody answers");
  // 1.0: one answer, not in chunks, then the end.
  const std::string text = request.method + " " + request.path +
                           " HTTP/1.0\r\nHost: " + request.host +
                           "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  if (!connection.send(text, until()))
    return fail(ErrorCode::kNoDaemon, "the request could not be sent");
  std::string answer;
  std::optional<Head> head;
  std::size_t looked_at = 0;
  while (!is_whole(answer, head) && connection.receive(answer, until())) {
    if (answer.size() > kAnswerBytesMax)
      return fail(ErrorCode::kNoDaemon, "the answer does not end: it is no kithd's");
    if (!head && answer.find("\r\n\r\n", looked_at) != std::string::npos) {
      head = head_of(answer);
      if (!head) return fail(ErrorCode::kNoDaemon, "the answer is no kithd's");
    }
    looked_at = answer.size() - std::min<std::size_t>(answer.size(), 3);
  }
  const bool cut = head && head->body_bytes && !is_whole(answer, head);
  if (!head || cut || SteadyClock::now() >= last)
    return fail(ErrorCode::kNoDaemon, "no answer came in time");
  const std::size_t bytes = head->body_bytes.value_or(answer.size() - head->body_at);
  return HttpAnswer{head->status, answer.substr(head->body_at, bytes)};
}

}  // namespace kith::node
