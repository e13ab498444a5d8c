// The suite's own tools: the oracles see what they are for, the lab and the proxy do what they say.
#include <arpa/inet.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/faults/fault_row.h"

namespace kith::e2e {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKey = "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf";

class Leak : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    folder_ = std::string(KITH_BINARY_DIR) + "/e2e/leak-" + std::to_string(::getpid());
    fs::create_directories(folder_ + "/n1");
    std::ofstream(folder_ + "/key") << kKey << "\n";
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string folder_;
};

TEST_P(Leak, IsSeenInAnySpelling) {
  std::ofstream(folder_ + "/n1/log") << "12:00 info node up key=" << GetParam() << "\n";
  EXPECT_NONFATAL_FAILURE(expect_no_secret_logged(folder_, {folder_ + "/key"}), "shows the key");
}

INSTANTIATE_TEST_SUITE_P(
    Spellings, Leak,
    ::testing::Values(std::string(kKey),
                      "A0A1A2A3A4A5A6A7A8A9AAABACADAEAFB0B1B2B3B4B5B6B7B8B9BABBBCBDBEBF",
                      "oKGio6SlpqeoqaqrrK2ur7CxsrO0tba3uLm6u7y9vr8=",
                      R"z(PRn9PQ[%@^ShV!$TGwUeU^7HuW6^uKXvGh.YUh4])z"));

TEST_F(Leak, IsNotSeenWhereThereIsNone) {
  std::ofstream(folder_ + "/n1/log") << "12:00 info node up\n";
  expect_no_secret_logged(folder_, {folder_ + "/key"});
}

TEST(Mass, AMovedValueIsSeenAndAPairThatSwappedIsNot) {
  Saved a, b;
  a.values.assign(kValueCount, 1.0F);
  b.values.assign(kValueCount, 3.0F);
  EXPECT_EQ(mass_error({a, b}, {b, a}), 0.0);
  Saved moved = b;
  moved.values[17] += 0.1F;
  EXPECT_GT(mass_error({a, b}, {a, moved}), 1e-6);
}

TEST(Exits, AnUndocumentedCodeAndASignalAreSeen) {
  const std::string folder = std::string(KITH_BINARY_DIR) + "/e2e/exits";
  static Node* node = nullptr;
  Node one("n1", folder);
  node = &one;
  expect_documented_exit(*node, {7, 0});
  EXPECT_NONFATAL_FAILURE(expect_documented_exit(*node, {99, 0}), "99");
  EXPECT_NONFATAL_FAILURE(expect_documented_exit(*node, {-1, 11}), "signal");
}

sockaddr_in at(const std::string& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

const sockaddr* general(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

class Lab : public FaultRow {
 protected:
  int listen_in(const NetLab& lab, std::size_t node) {
    const InNetns inside(lab.netns(node));
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto address = at(NetLab::address(node), 7400);
    EXPECT_EQ(::bind(fd, general(address), sizeof address), 0);
    EXPECT_EQ(::listen(fd, 8), 0);
    return fd;
  }
  // A connection from this node, or -1 if there is none within the bound.
  int dial(const NetLab& lab, std::size_t from, const std::string& host, milliseconds bound) {
    const InNetns inside(lab.netns(from));
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const auto address = at(host, 7400);
    (void)::connect(fd, general(address), sizeof address);
    pollfd wait{fd, POLLOUT, 0};
    if (::poll(&wait, 1, static_cast<int>(bound.count())) == 1 && (wait.revents & POLLERR) == 0)
      return fd;
    ::close(fd);
    return -1;
  }
  bool reaches(const NetLab& lab, std::size_t from, std::size_t to) {
    const int fd = dial(lab, from, NetLab::address(to), milliseconds(300));
    if (fd >= 0) ::close(fd);
    return fd >= 0;
  }
};

TEST_F(Lab, CutsOneDirectionHealsAndLeavesOthersAlone) {
  NetLab lab(3);
  const int listener = listen_in(lab, 1);
  EXPECT_TRUE(reaches(lab, 0, 1));
  lab.cut(0, 1);
  EXPECT_FALSE(reaches(lab, 0, 1));
  EXPECT_TRUE(reaches(lab, 2, 1));
  lab.restore(0, 1);
  EXPECT_TRUE(reaches(lab, 0, 1));
  lab.cut(1, 0);  // the answer does not come back
  EXPECT_FALSE(reaches(lab, 0, 1));
  lab.heal();
  lab.split({0});
  EXPECT_FALSE(reaches(lab, 0, 1));
  EXPECT_TRUE(reaches(lab, 2, 1));
  lab.heal();
  EXPECT_TRUE(reaches(lab, 0, 1));
  ::close(listener);
}

TEST_F(Lab, ResetsConnections) {
  NetLab lab(2);
  const int listener = listen_in(lab, 1);
  const int fd = dial(lab, 0, NetLab::address(1), milliseconds(500));
  ASSERT_GE(fd, 0);
  EXPECT_EQ(lab.reset_connections(0), 1U);
  pollfd wait{fd, POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 1000), 1);
  char byte = 0;
  EXPECT_LT(::recv(fd, &byte, 1, 0), 1);
  ::close(fd);
  ::close(listener);
}

TEST_F(Lab, SwallowsLongPacketsAndLetsShortOnesPass) {
  NetLab lab(2);
  const int listener = listen_in(lab, 1);
  lab.longest_packet(1, 600);
  const int fd = dial(lab, 0, NetLab::address(1), milliseconds(500));
  ASSERT_GE(fd, 0);
  const int accepted = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  const auto arrives = [&](std::size_t bytes) {
    const std::string text(bytes, 'x');
    EXPECT_EQ(::send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
    pollfd wait{accepted, POLLIN, 0};
    if (::poll(&wait, 1, 1500) != 1) return false;
    char buffer[8192];
    return ::recv(accepted, buffer, sizeof buffer, 0) > 0;
  };
  EXPECT_TRUE(arrives(200));
  EXPECT_FALSE(arrives(4096));
  for (const int open : {fd, accepted, listener}) ::close(open);
}

TEST_F(Lab, TheProxyDelaysEachWayAndHoldsWhatIsCut) {
  NetLab lab(2);
  Proxy proxy(lab, {7400});
  const int listener = listen_in(lab, 1);
  proxy.delay(milliseconds(100), milliseconds(0));
  const int fd = dial(lab, 0, NetLab::proxy_address(1), milliseconds(500));
  ASSERT_GE(fd, 0);
  const int accepted = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  const auto takes = [](int from, int to, int bound_ms) {
    const Stopwatch watch;
    EXPECT_EQ(::send(from, "x", 1, MSG_NOSIGNAL), 1);
    pollfd wait{to, POLLIN, 0};
    if (::poll(&wait, 1, bound_ms) != 1) return -1.0;
    char byte = 0;
    EXPECT_EQ(::recv(to, &byte, 1, 0), 1);
    return watch.seconds();
  };
  EXPECT_GE(takes(fd, accepted, 2000), 0.095);
  EXPECT_GE(takes(accepted, fd, 2000), 0.095);
  proxy.cut(0, 1);
  EXPECT_LT(takes(fd, accepted, 400), 0.0) << "it was cut";
  EXPECT_GT(takes(accepted, fd, 2000), 0.0) << "this way it was not";
  proxy.heal();
  pollfd wait{accepted, POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 2000), 1) << "held back, not lost";
  for (const int open : {fd, accepted, listener}) ::close(open);
}

TEST_F(Lab, LeavesNothingBehind) {
  std::string netns;
  {
    NetLab lab(2);
    netns = lab.netns(1);
    EXPECT_TRUE(fs::exists(netns));
  }
  EXPECT_FALSE(fs::exists(netns));
}

}  // namespace
}  // namespace kith::e2e
