#include "base/log.h"

#include <gtest/gtest.h>

#include <thread>

namespace kith {
namespace {

TEST(MemoryLog, KeepsLinesWithTheirFields) {
  MemoryLog log;
  log.log(LogLevel::kWarn, "exchange", "peer is gone", {{"peer", "ab12"}, {"after", "3s"}});
  log.log(LogLevel::kInfo, "node", "ready", {});
  EXPECT_EQ(log.lines(), (std::vector<std::string>{"warn exchange: peer is gone peer=ab12 after=3s",
                                                   "info node: ready"}));
  EXPECT_TRUE(log.contains("after=3s"));
  EXPECT_FALSE(log.contains("after=4s"));
}

TEST(MemoryLog, TakesLinesFromSeveralThreads) {
  MemoryLog log;
  const auto write = [&log] {
    for (int i = 0; i < 500; ++i) log.log(LogLevel::kDebug, "a", "b", {});
  };
  std::thread one(write), two(write);
  one.join();
  two.join();
  EXPECT_EQ(log.lines().size(), 1000U);
}

}  // namespace
}  // namespace kith
