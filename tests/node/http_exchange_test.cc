// What `kith` takes from whoever answers: never more, nor for longer, than it said.
#include "node/cli/http_exchange.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

namespace kith::node {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

bool send_text(int fd, const std::string& text) {
  return ::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

// Takes one connection, reads its request and says what `answer` says.
class OneAnswer {
 public:
  explicit OneAnswer(std::function<void(int fd)> answer)
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address_), sizeof address_), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address_), &size), 0);
    thread_ = std::thread([this, answer = std::move(answer)] {
      const int fd = ::accept(listener_, nullptr, nullptr);
      char buffer[4096];
      const auto got = ::recv(fd, buffer, sizeof buffer, 0);
      request_.assign(buffer, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      answer(fd);
      ::close(fd);
    });
  }
  ~OneAnswer() {
    thread_.join();
    ::close(listener_);
  }

  Result<HttpAnswer> ask(milliseconds patience) {
    return http_exchange(reinterpret_cast<const sockaddr*>(&address_), sizeof address_,
                         {"GET", "/status", "h", patience});
  }

 private:
  int listener_;
  sockaddr_in address_{};
  std::string request_;
  std::thread thread_;
};

Result<HttpAnswer> answered_with(const std::string& text) {
  OneAnswer server([&](int fd) { send_text(fd, text); });
  return server.ask(milliseconds(5000));
}

TEST(HttpExchange, AnAnswerIsWholeByItsLengthOrByTheEnd) {
  const auto by_length =
      answered_with("HTTP/1.1 503 Busy\r\ncontent-LENGTH:  2\r\nX: y\r\n\r\nokmore");
  ASSERT_TRUE(by_length);
  EXPECT_EQ(by_length->status, 503);
  EXPECT_EQ(by_length->body, "ok");
  const auto by_end = answered_with("HTTP/1.0 200 OK\r\n\r\nall");
  ASSERT_TRUE(by_end);
  EXPECT_EQ(by_end->body, "all");
}

TEST(HttpExchange, HalfAnAnswerIsNone) {
  EXPECT_FALSE(answered_with("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"));
  EXPECT_FALSE(answered_with("HTTP/1.1 200 OK\r\nContent-"));
  EXPECT_FALSE(answered_with(""));
}

TEST(HttpExchange, LengthsAndStatusesThatAreNoneAreRefused) {
  for (const char* length : {"-1", "99999999999999999999999", "1e3", "", "68719476736"})
    EXPECT_FALSE(
        answered_with(std::string("HTTP/1.1 200 OK\r\nContent-Length: ") + length + "\r\n\r\nx"))
        << length;
  EXPECT_FALSE(answered_with("HTTP/1.1 2x0 OK\r\n\r\n"));
  EXPECT_FALSE(answered_with("SSH-2.0-OpenSSH_9.2\r\n\r\n"));
}

TEST(HttpExchange, EndlessHeadersAndBodiesAreGivenUp) {
  for (const char* begin : {"HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\n"}) {
    OneAnswer server([&](int fd) {
      const std::string line = "X-Header: 0123456789\r\n";
      std::string many;
      for (int i = 0; i < 3000; ++i) many += line;
      for (bool taken = send_text(fd, begin); taken;) taken = send_text(fd, many);
    });
    const auto answer = server.ask(milliseconds(20000));
    ASSERT_FALSE(answer);
    EXPECT_THAT(answer.error().message, HasSubstr("does not end"));
  }
}

TEST(HttpExchange, ByteByByteItTakesNoLongerThanSilencesInAll) {
  OneAnswer server([](int fd) {
    send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    while (send_text(fd, "x")) ::poll(nullptr, 0, 20);
  });
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(server.ask(milliseconds(100)));
  EXPECT_LT(std::chrono::steady_clock::now() - began, milliseconds(5000));
}

}  // namespace
}  // namespace kith::node
