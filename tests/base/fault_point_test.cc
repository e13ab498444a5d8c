#include "base/fault_point.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <future>
#include <set>
#include <string>
#include <thread>

namespace kith {
namespace {

// Runs `work` in a child; returns what waitpid says of it.
template <typename Work>
int status_of_child(Work work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, WUNTRACED), child);
  if (WIFSTOPPED(status)) {
    ::kill(child, SIGKILL);
    int after = 0;
    ::waitpid(child, &after, 0);
  }
  return status;
}

TEST(FaultPoints, HaveDistinctKebabCaseNames) {
  const auto names = fault_point_names();
  EXPECT_EQ(names.size(), static_cast<std::size_t>(FaultPoint::kCount));
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(to_string(FaultPoint::kProposeSent), "propose-sent");
  EXPECT_EQ(to_string(FaultPoint::kAfterCommit), "after-commit");
  EXPECT_EQ(to_string(FaultPoint::kCheckpointRenamed), "checkpoint-renamed");
}

TEST(FaultPoints, AreInertWhenNothingIsArmed) {
  ASSERT_TRUE(arm_faults(""));
  for (int i = 0; i < 100; ++i) pass(FaultPoint::kAfterCommit);
}

TEST(FaultPoints, KillAtExactlyTheNthPassage) {
  const auto passages = [](int count) {
    return status_of_child([count] {
      if (!arm_faults("after-commit=kill@3")) ::_exit(9);
      for (int i = 0; i < count; ++i) pass(FaultPoint::kAfterCommit);
    });
  };
  const int before = passages(2);
  EXPECT_TRUE(WIFEXITED(before) && WEXITSTATUS(before) == 0);
  const int at = passages(3);
  EXPECT_TRUE(WIFSIGNALED(at) && WTERMSIG(at) == SIGKILL);
}

TEST(FaultPoints, StopAtExactlyTheNthPassageAndOnlyOnce) {
  const int status = status_of_child([] {
    if (!arm_faults("ack-sent=kill@5,propose-sent=stop@2")) ::_exit(9);
    pass(FaultPoint::kProposeSent);
    pass(FaultPoint::kAckSent);
    pass(FaultPoint::kProposeSent);
    ::_exit(8);
  });
  EXPECT_TRUE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
}

TEST(FaultPoints, HangKeepsTheThreadForEver) {
  const int status = status_of_child([] {
    if (!arm_faults("export-opened=hang@1")) ::_exit(9);
    std::promise<void> passed;
    auto future = passed.get_future();
    std::thread([&passed] {
      pass(FaultPoint::kExportOpened);
      passed.set_value();
    }).detach();
    ::_exit(future.wait_for(std::chrono::milliseconds(300)) == std::future_status::ready ? 7 : 0);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(FaultPoints, CountOnlyTheirOwnPassages) {
  const int status = status_of_child([] {
    if (!arm_faults("after-commit=kill@1")) ::_exit(9);
    for (int i = 0; i < static_cast<int>(FaultPoint::kCount); ++i)
      if (static_cast<FaultPoint>(i) != FaultPoint::kAfterCommit) pass(static_cast<FaultPoint>(i));
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(FaultPoints, BadSpecificationsSayWhatIsWrong) {
  const auto message = [](const char* spec) {
    const Status status = arm_faults(spec);
    EXPECT_FALSE(status) << spec;
    return status ? std::string() : status.error().message;
  };
  EXPECT_NE(message("after-comit=kill@1").find("after-commit"), std::string::npos);
  EXPECT_NE(message("after-commit=explode@1").find("kill@N"), std::string::npos);
  EXPECT_NE(message("after-commit=explode@1").find("wait@N"), std::string::npos);
  EXPECT_NE(message("after-commit").find("kill@N"), std::string::npos);
  EXPECT_NE(message("after-commit=kill@0").find("from 1"), std::string::npos);
  EXPECT_NE(message("after-commit=kill@x").find("from 1"), std::string::npos);
  EXPECT_NE(message("after-commit=kill@1x").find("from 1"), std::string::npos);
  EXPECT_NE(message("after-commit=kill@1,after-commit=stop@2").find("twice"), std::string::npos);
  // A specification with an error arms nothing.
  EXPECT_FALSE(arm_faults("after-commit=kill@1,oops=kill@1"));
  pass(FaultPoint::kAfterCommit);
}

}  // namespace
}  // namespace kith
