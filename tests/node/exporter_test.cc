// What an export on a disk that does not answer leaves to others: everything.
#include "node/daemon/exporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "tests/compute/trainer_fixture.h"

namespace kith::node {
namespace {

using compute::testing::eventually;

TEST(Exporter, TellsThePathOrTheErrorAndIsThenFreeForTheNext) {
  MemoryLog log;
  Exporter exporter(log);
  for (const bool works : {true, false}) {
    ASSERT_TRUE(exporter.reserve("a.safetensors"));
    std::promise<Result<std::string>> told;
    exporter.write([works] { return works ? Status{} : fail("no room"); },
                   [&](const Result<std::string>& result) { told.set_value(result); });
    const auto result = told.get_future().get();
    ASSERT_EQ(result.has_value(), works);
    if (works)
      EXPECT_EQ(*result, "a.safetensors");
    else
      EXPECT_EQ(result.error().message, "no room");
  }
  ASSERT_TRUE(exporter.reserve("b"));
  std::string why;
  exporter.give_up({ErrorCode::kNonFinite, "not finite"},
                   [&](const Result<std::string>& result) { why = result.error().message; });
  EXPECT_EQ(why, "not finite");
  EXPECT_TRUE(exporter.reserve("c"));
}

TEST(Exporter, OneThatHangsRefusesTheNextAndIsLeftBehindAtTheEndWithItsName) {
  MemoryLog log;
  std::promise<void> disk;
  const auto owned = std::make_shared<int>(0);
  std::atomic<bool> told{false};
  {
    Exporter exporter(log, std::chrono::milliseconds(20));
    ASSERT_TRUE(exporter.reserve("/nfs/a"));
    exporter.write(
        [answer = disk.get_future().share(), owned] {
          answer.wait();
          return Status{};
        },
        [&](const Result<std::string>&) { told = true; });
    const Status second = exporter.reserve("b");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kBusy);
    EXPECT_NE(second.error().message.find("/nfs/a"), std::string::npos);
  }
  EXPECT_TRUE(log.contains("ending without an export that its disk holds up"));
  EXPECT_THAT(log.lines().back(), testing::HasSubstr("path=/nfs/a"));
  disk.set_value();
  EXPECT_TRUE(eventually([&] { return owned.use_count() == 1; })) << "what it held is not freed";
  EXPECT_FALSE(told) << "whom it would tell is gone";
}

}  // namespace
}  // namespace kith::node
