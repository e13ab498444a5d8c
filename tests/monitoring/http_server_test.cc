#include "monitoring/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "tests/monitoring/raw_client.h"

namespace kith::monitoring {
namespace {

using ::testing::HasSubstr;
using testing::RawClient;
using testing::request;
using ::testing::StartsWith;

class Handler final : public HttpHandler {
 public:
  HttpReply get(const std::string& path, const HttpQuery&) override {
    return HttpReply::text(path == "/large" ? std::string(32 << 20, 'x') : "got " + path);
  }
  // Holds until release(), as a long checkpoint would.
  HttpReply post(const std::string& path, const HttpQuery&) override {
    std::unique_lock lock(mutex_);
    running_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return released_; });
    return HttpReply::text("done " + path);
  }
  bool wait_until_running() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [this] { return running_; });
  }
  void release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool running_ = false, released_ = false;  // guarded by mutex_
};

class HttpServerTest : public ::testing::Test {
 protected:
  void start(HttpLimits limits = {}) {
    auto started = HttpServer::start({"127.0.0.1:0", socket_path_, limits}, handler_, clock_);
    ASSERT_TRUE(started) << started.error().message;
    server_ = std::move(*started);
  }
  void TearDown() override {
    handler_.release();
    server_.reset();
    EXPECT_FALSE(std::filesystem::exists(socket_path_))
        << "the socket's file must go with the server";
  }

  const std::string socket_path_ =
      std::string(KITH_BINARY_DIR) + "/http_test." + std::to_string(getpid()) + ".sock";
  SystemClock clock_;
  Handler handler_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersOnAnyPortAndReportsIt) {
  start();
  EXPECT_THAT(server_->address(), ::testing::MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]*"));
  const std::string got = request(server_->address(), "/status");
  EXPECT_THAT(got, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(got, HasSubstr("got /status"));
}

TEST_F(HttpServerTest, ATakenPortIsNamedAndLeavesNoSocketBehind) {
  start();
  Handler other;
  const auto second = HttpServer::start({server_->address(), "", {}}, other, clock_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kAddressInUse);
  EXPECT_THAT(second.error().message, HasSubstr(server_->address()));
}

TEST_F(HttpServerTest, TheSocketTakesCommandsAndTcpDoesNot) {
  start();
  handler_.release();
  const std::string post = "POST /leave HTTP/1.1\r\nContent-Length: 0\r\n\r\n";
  RawClient tcp = RawClient::tcp(server_->address());
  tcp.send(post);
  EXPECT_THAT(tcp.read_all(), StartsWith("HTTP/1.1 403"));
  RawClient local = RawClient::local(socket_path_);
  local.send(post);
  EXPECT_THAT(local.read_all(), HasSubstr("done /leave"));
}

TEST_F(HttpServerTest, ALongCommandDelaysNoScrape) {
  start();
  RawClient local = RawClient::local(socket_path_);
  local.send("POST /checkpoint HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(handler_.wait_until_running());
  EXPECT_THAT(request(server_->address(), "/metrics"), HasSubstr("got /metrics"));
  handler_.release();
  EXPECT_THAT(local.read_all(), HasSubstr("done /checkpoint"));
}

TEST_F(HttpServerTest, AUrlOf16KilobytesIsAnsweredAndTheServerGoesOn) {
  start();
  EXPECT_THAT(request(server_->address(), "/" + std::string(16 * 1024, '/')),
              StartsWith("HTTP/1.1 414"));
  EXPECT_THAT(request(server_->address(), "/a"), HasSubstr("got /a"));
}

TEST_F(HttpServerTest, HeadersWithoutEndAreRefused) {
  start();
  RawClient client = RawClient::tcp(server_->address());
  client.send("GET / HTTP/1.1\r\nX: " + std::string(40 * 1024, 'y'));
  EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 431"));
}

TEST_F(HttpServerTest, AHundredSilentConnectionsDelayNobody) {
  start();
  std::vector<RawClient> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(RawClient::tcp(server_->address()));
    ASSERT_TRUE(silent.back().send("GET / HT"));
  }
  const TimePoint before = clock_.now();
  for (int i = 0; i < 20; ++i)
    ASSERT_THAT(request(server_->address(), "/metrics"), HasSubstr("got /metrics"));
  EXPECT_LT(to_seconds(clock_.now() - before), 2.0);
}

TEST_F(HttpServerTest, AboveTheBoundTheOldestIdleConnectionGoes) {
  HttpLimits limits;
  limits.connections_max = 4;
  start(limits);
  std::vector<RawClient> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(RawClient::tcp(server_->address()));
    ASSERT_TRUE(clients.back().send("GET /x HTTP/1.1\r\n"));
  }
  EXPECT_EQ(clients[0].read_all(), "");
  EXPECT_EQ(clients[1].read_all(), "");
  ASSERT_TRUE(clients[5].send("\r\n"));
  EXPECT_THAT(clients[5].read_all(), HasSubstr("got /x"));
}

TEST_F(HttpServerTest, AClientThatNeverFinishesItsRequestIsCut) {
  HttpLimits limits;
  limits.read_timeout = std::chrono::milliseconds(50);
  start(limits);
  RawClient client = RawClient::tcp(server_->address());
  const TimePoint before = clock_.now();
  client.send("GET / HTTP/1.1\r\n");
  EXPECT_EQ(client.read_all(), "");
  EXPECT_LT(to_seconds(clock_.now() - before), 5.0);
}

TEST_F(HttpServerTest, AClientThatDoesNotReadIsCut) {
  HttpLimits limits;
  limits.write_timeout = std::chrono::milliseconds(100);
  start(limits);
  RawClient client = RawClient::tcp(server_->address());
  client.shrink_receive_buffer();
  client.send("GET /large HTTP/1.1\r\n\r\n");
  // Somebody else is served meanwhile, until long after the slow one's deadline.
  const TimePoint until = clock_.now() + std::chrono::milliseconds(400);
  while (clock_.now() < until) ASSERT_THAT(request(server_->address(), "/a"), HasSubstr("got /a"));
  EXPECT_LT(client.read_all().size(), std::size_t{32} << 20);
}

TEST_F(HttpServerTest, ALargeAnswerArrivesWhole) {
  start();
  EXPECT_GT(request(server_->address(), "/large").size(), std::size_t{32} << 20);
}

TEST_F(HttpServerTest, AClientThatVanishesWhileServedHarmsNothing) {
  start();
  {
    RawClient local = RawClient::local(socket_path_);
    local.send("POST /checkpoint HTTP/1.1\r\n\r\n");
    ASSERT_TRUE(handler_.wait_until_running());
  }
  handler_.release();
  EXPECT_THAT(request(server_->address(), "/a"), HasSubstr("got /a"));
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

// Every descriptor below a low limit is taken while it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit low{128, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &low);
    for (int fd = dup(0); fd >= 0; fd = dup(0)) taken_.emplace_back(fd);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
  std::vector<Fd> taken_;
};

TEST_F(HttpServerTest, WithoutDescriptorsItWaitsInsteadOfSpinning) {
  start();
  RawClient client = RawClient::unconnected();
  {
    const NoDescriptors none;
    ASSERT_TRUE(
        client.connect_to(server_->address()));  // by the kernel; the server cannot accept it
    ASSERT_TRUE(client.send("GET /b HTTP/1.1\r\n\r\n"));
    const double cpu = cpu_seconds();
    EXPECT_EQ(client.read_within(std::chrono::milliseconds(500)), "");
    EXPECT_LT(cpu_seconds() - cpu, 0.1);
  }
  EXPECT_THAT(client.read_all(), HasSubstr("got /b"));
}

}  // namespace
}  // namespace kith::monitoring
