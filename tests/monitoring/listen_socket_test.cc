#include "monitoring/listen_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace kith::monitoring {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ParseListenAddress, TakesHostAndPort) {
  struct Row {
    std::string in, host, port;
  };
  for (const Row& row : {Row{"127.0.0.1:7480", "127.0.0.1", "7480"}, Row{"[::1]:0", "::1", "0"},
                         Row{"localhost:65535", "localhost", "65535"}}) {
    const auto got = parse_listen_address(row.in);
    ASSERT_TRUE(got) << row.in;
    EXPECT_EQ(got->host, row.host);
    EXPECT_EQ(got->port, row.port);
  }
}

TEST(ParseListenAddress, RefusesWhatIsNotAnAddressAndNamesIt) {
  for (const char* bad :
       {"", ":", ":80", "host", "host:", "host:-1", "host:65536", "host:80x", "::1:80", "[]:80",
        "host: 80", "host:0x50", "host:99999999999999999999"}) {
    const auto got = parse_listen_address(bad);
    ASSERT_FALSE(got) << bad;
    EXPECT_EQ(got.error().code, ErrorCode::kUsage);
    EXPECT_THAT(got.error().message, HasSubstr("'" + std::string(bad) + "'"));
  }
}

TEST(ListenTcp, PortZeroReportsTheRealOne) {
  const auto got = listen_tcp("127.0.0.1:0");
  ASSERT_TRUE(got);
  EXPECT_THAT(got->address, StartsWith("127.0.0.1:"));
  EXPECT_NE(got->address, "127.0.0.1:0");
}

TEST(ListenTcp, ATakenPortIsNamed) {
  const auto first = listen_tcp("127.0.0.1:0");
  ASSERT_TRUE(first);
  const auto second = listen_tcp(first->address);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kAddressInUse);
  EXPECT_THAT(second.error().message, HasSubstr(first->address));
}

TEST(ListenTcp, AForeignAddressOrAnUnknownNameIsAUsageError) {
  for (const char* bad : {"192.0.2.1:7480", "no-such-host.invalid:7480"}) {
    const auto got = listen_tcp(bad);
    ASSERT_FALSE(got) << bad;
    EXPECT_EQ(got.error().code, ErrorCode::kUsage) << got.error().message;
  }
}

class ListenUnixTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_ =
      std::filesystem::path(KITH_BINARY_DIR) / ("sockets." + std::to_string(getpid()));
};

TEST_F(ListenUnixTest, OnlyItsOwnerMayConnect) {
  const std::string path = folder_ / "control.sock";
  const auto got = listen_unix(path);
  ASSERT_TRUE(got) << got.error().message;
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_TRUE(connect_unix(path));
}

TEST_F(ListenUnixTest, AStaleSocketIsReplacedAndAFileIsNot) {
  const std::string path = folder_ / "control.sock";
  { ASSERT_TRUE(listen_unix(path)); }
  EXPECT_EQ(connect_unix(path).error().code, ErrorCode::kNoDaemon);
  EXPECT_TRUE(listen_unix(path));
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_FALSE(listen_unix(path));
}

TEST_F(ListenUnixTest, APathLongerThanASocketAddressWorks) {
  const auto deep = folder_ / std::string(120, 'd');
  std::filesystem::create_directories(deep);
  const std::string path = deep / "control.sock";
  const auto got = listen_unix(path);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(std::filesystem::is_socket(path));
  EXPECT_TRUE(connect_unix(path));
}

TEST_F(ListenUnixTest, AMissingFolderOrDaemonIsNamed) {
  const std::string path = folder_ / "none" / "control.sock";
  EXPECT_THAT(listen_unix(path).error().message, HasSubstr(path));
  EXPECT_THAT(connect_unix(path).error().message, HasSubstr(path));
  EXPECT_FALSE(listen_unix(""));
}

}  // namespace
}  // namespace kith::monitoring
