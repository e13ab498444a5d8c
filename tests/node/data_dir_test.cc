#include "node/identity/data_dir.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <thread>

#include "tests/node/scratch_folder.h"

namespace kith::node {
namespace {

namespace fs = std::filesystem;

class AutomaticDataDir : public testing::Test {
 protected:
  [[nodiscard]] std::string setting() const { return "auto:" + scratch_.file("state"); }
  [[nodiscard]] std::string directory(int number) const {
    return scratch_.file("state/node-" + std::to_string(number));
  }
  [[nodiscard]] Result<DataDir> take(const std::string& host) const {
    return take_data_dir(setting(), host);
  }
  // What `host` gets, held by nobody afterwards.
  [[nodiscard]] std::string taken_once(const std::string& host) const {
    const auto taken = take(host);
    return taken ? taken->path : taken.error().message;
  }
  void leave_socket(const std::string& folder) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (folder + "/control.sock").copy(address.sun_path, sizeof address.sun_path - 1);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::close(fd);
  }

  ScratchFolder scratch_;
};

TEST_F(AutomaticDataDir, APathThatIsNotAutomaticIsTakenAsItIs) {
  const auto taken = take_data_dir(scratch_.file("mine"), "host");
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->path, scratch_.file("mine"));
  EXPECT_FALSE(fs::exists(scratch_.file("mine/host")));
  EXPECT_FALSE(take_data_dir(scratch_.file("mine"), "host"));
}

TEST_F(AutomaticDataDir, HoldersGetDirectoriesOfTheirOwn) {
  const auto first = take("a");
  const auto second = take("b");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->path, directory(1));
  EXPECT_EQ(second->path, directory(2));
}

TEST_F(AutomaticDataDir, AFreeOneIsTakenBeforeANewOneIsMade) {
  const auto first = take("a");
  (void)taken_once("b");
  EXPECT_EQ(taken_once("c"), directory(2));
  EXPECT_FALSE(fs::exists(directory(3)));
}

TEST_F(AutomaticDataDir, AHostFindsItsOwnAgainAmongFreeOnes) {
  {
    const auto a = take("a");
    const auto b = take("b");
    const auto c = take("c");
    ASSERT_TRUE(a && b && c);
  }
  EXPECT_EQ(taken_once("c"), directory(3));
  EXPECT_EQ(taken_once("b"), directory(2));
  EXPECT_EQ(taken_once("d"), directory(1)) << "who was never here takes the first";
  EXPECT_EQ(taken_once("a"), directory(1)) << "its own now belongs to d and is free";
}

TEST_F(AutomaticDataDir, WhatAKilledProcessHeldIsFreeAtOnce) {
  int pipes[2];
  ASSERT_EQ(::pipe(pipes), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto taken = take("a");
    (void)!::write(pipes[1], "x", 1);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(pipes[0], &byte, 1), 1);
  EXPECT_EQ(taken_once("b"), directory(2));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(taken_once("a"), directory(1));
  ::close(pipes[0]);
  ::close(pipes[1]);
}

TEST_F(AutomaticDataDir, ManyThatStartAtOnceNeverShare) {
  constexpr int kMany = 16;
  std::vector<std::optional<DataDir>> taken(kMany);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kMany; ++i)
      threads.emplace_back([&, i] {
        if (auto one = take("host" + std::to_string(i))) taken[i].emplace(std::move(*one));
      });
  }
  std::set<std::string> paths;
  for (const auto& one : taken) {
    ASSERT_TRUE(one);
    paths.insert(one->path);
  }
  EXPECT_EQ(paths.size(), kMany);
  EXPECT_EQ(*paths.begin(), directory(1));
}

TEST_F(AutomaticDataDir, OtherNamesAreLeftAlone) {
  for (const char* name :
       {"node-01", "node-", "node-x", "node-1x", "node-99999999999", "lost+found"})
    fs::create_directories(scratch_.file("state/" + std::string(name)));
  EXPECT_EQ(taken_once("a"), directory(1));
}

TEST_F(AutomaticDataDir, AParentThatCannotBeUsedIsNamed) {
  scratch_.write("file", "");
  const auto taken = take_data_dir("auto:" + scratch_.file("file"), "a");
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorCode::kUsage);
  EXPECT_NE(taken.error().message.find(scratch_.file("file")), std::string::npos)
      << taken.error().message;
}

// A reader of a FIFO that nobody writes to would wait for ever.
TEST_F(AutomaticDataDir, AHostFileThatIsNoRegularFileIsNamedAndNotWaitedFor) {
  fs::create_directories(directory(1));
  const std::string fifo = directory(1) + "/host";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const auto taken = take("a");
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorCode::kUsage);
  EXPECT_EQ(taken.error().message, fifo + " is no regular file: move it away");
  const auto found = find_data_dir(setting(), "a");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, taken.error().message);
}

TEST_F(AutomaticDataDir, ItIsFoundByWhereTheDaemonOfTheHostIs) {
  const auto a = take("a");
  const auto b = take("b");
  ASSERT_TRUE(a && b);
  EXPECT_FALSE(find_data_dir(setting(), "b")) << "there is no daemon yet";
  leave_socket(a->path);
  leave_socket(b->path);
  EXPECT_EQ(find_data_dir(setting(), "b").value_or(""), directory(2));
  EXPECT_EQ(find_data_dir("127.0.0.1:7480", "b").value_or(""), "127.0.0.1:7480");
  const auto nobody = find_data_dir(setting(), "c");
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, ErrorCode::kNoDaemon);
}

}  // namespace
}  // namespace kith::node
