#include "node/daemon/step_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace kith::node {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

class StepLogTest : public ::testing::Test {
 protected:
  StepLogTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(KITH_BINARY_DIR) / "step_log" / info->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    path_ = folder_ / "steps.jsonl";
  }

  static std::unique_ptr<StepLog> opened(const std::string& path) {
    auto log = StepLog::open(path);
    EXPECT_TRUE(log) << log.error().message;
    return log ? std::move(*log) : nullptr;
  }
  static void add(StepLog& log, Step first, Step last) {
    for (Step step = first; step <= last; ++step) {
      StepRecord record;
      record.step = step;
      record.loss = 1.0 / static_cast<double>(step);
      log.add(record);
    }
  }
  // Until so many lines have been written or lost.
  static void settled(const StepLog& log, std::uint64_t count) {
    const auto seen = [&] { return log.counts().written + log.counts().lost; };
    for (int look = 0; look < 3000 && seen() < count; ++look) ::poll(nullptr, 0, 5);
    ASSERT_EQ(seen(), count);
  }
  static std::vector<Step> steps_in(const fs::path& path) {
    std::vector<Step> out;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
      const json entry = json::parse(line, nullptr, false);
      EXPECT_TRUE(entry.is_object()) << line;
      if (entry.is_object()) out.push_back(entry["step"]);
    }
    return out;
  }

  fs::path folder_, path_;
};

TEST(StepLine, HoldsWhatIsKnownAndNullForTheRest) {
  const json line = json::parse(to_json_line({12, 1770000000.25, 0.5, 0.05, 384, 0.25, 9, 1}));
  EXPECT_EQ(
      line,
      json::parse(
          R"({"step":12,"time":1770000000.25,"loss":0.5,"learning_rate":0.05,"samples":384,"epoch":0.25,"exchanges":9,"staleness":1})"));
  StepRecord unknown;
  unknown.loss = std::numeric_limits<double>::infinity();
  const json empty = json::parse(to_json_line(unknown));
  EXPECT_TRUE(empty["loss"].is_null());
  EXPECT_TRUE(empty["staleness"].is_null());
  EXPECT_EQ(to_json_line(unknown).back(), '\n');
}

TEST_F(StepLogTest, WritesEveryStepBeforeItEnds) {
  auto log = opened(path_);
  add(*log, 1, 1000);
  log.reset();
  const auto steps = steps_in(path_);
  ASSERT_EQ(steps.size(), 1000U);
  for (Step i = 0; i < 1000; ++i) EXPECT_EQ(steps[i], i + 1);
}

TEST_F(StepLogTest, ContinuesAnEarlierFile) {
  for (Step begin : {1U, 4U}) {
    auto log = opened(path_);
    add(*log, begin, begin + 2);
  }
  EXPECT_EQ(steps_in(path_), (std::vector<Step>{1, 2, 3, 4, 5, 6}));
}

TEST_F(StepLogTest, SaysAtTheStartWhichFileCannotBeWritten) {
  const auto log = StepLog::open(folder_ / "nowhere" / "steps.jsonl");
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code, ErrorCode::kUsage);
  EXPECT_THAT(log.error().message, HasSubstr("nowhere/steps.jsonl"));
  EXPECT_THAT(log.error().message, HasSubstr("log.steps"));
}

TEST_F(StepLogTest, CountsWhatAFullDiskCosts) {
  auto log = opened("/dev/full");
  add(*log, 1, 100);
  settled(*log, 100);
  EXPECT_EQ(log->counts().lost, 100U);
  EXPECT_EQ(log->counts().written, 0U);
}

// A file that may not grow stands for a disk that fills up within a line.
TEST_F(StepLogTest, LeavesNoHalfLineWhenTheDiskFillsUp) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto log = opened(path_);
  rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  add(*log, 1, 100);
  settled(*log, 100);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  const auto written = log->counts().written;
  EXPECT_GT(written, 3U);
  EXPECT_LT(written, 20U);
  EXPECT_EQ(steps_in(path_).size(), written);
  add(*log, 101, 101);  // there is room again
  settled(*log, 101);
  EXPECT_EQ(steps_in(path_).back(), 101U);
  EXPECT_EQ(log->counts().written, written + 1);
}

TEST_F(StepLogTest, BeginsAnewWhenTheFileWasMovedAway) {
  auto log = opened(path_);
  add(*log, 1, 10);
  settled(*log, 10);
  fs::rename(path_, folder_ / "old");
  add(*log, 11, 20);
  settled(*log, 20);
  EXPECT_EQ(steps_in(folder_ / "old").size(), 10U);
  EXPECT_EQ(steps_in(path_).size(), 10U);
  EXPECT_EQ(log->counts().lost, 0U);
}

TEST_F(StepLogTest, CountsLinesWhileItsFolderIsGoneAndComesBackWithIt) {
  auto log = opened(path_);
  fs::remove_all(folder_);
  add(*log, 1, 10);
  settled(*log, 10);
  EXPECT_EQ(log->counts().lost, 10U);
  fs::create_directories(folder_);
  add(*log, 11, 12);
  settled(*log, 12);
  EXPECT_EQ(steps_in(path_), (std::vector<Step>{11, 12}));
}

// A pipe that nobody empties takes 64 KiB, then nothing: the writer must not wait, let alone the
// trainer.
TEST_F(StepLogTest, IsNotHeldUpByAReaderThatDoesNotRead) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const int reader = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  auto log = opened(path_);
  add(*log, 1, 5000);
  settled(*log, 5000);
  EXPECT_GT(log->counts().lost, 1000U);
  log.reset();
  ::close(reader);
}

TEST_F(StepLogTest, LosesStepsInsteadOfWaitingWhenTheRingIsFull) {
  auto log = opened(path_);
  constexpr Step kMany = 40 * kStepLogRing;
  const auto start = std::chrono::steady_clock::now();
  add(*log, 1, kMany);
  const auto each = (std::chrono::steady_clock::now() - start) / kMany;
  EXPECT_LT(each, std::chrono::microseconds(20));
  settled(*log, kMany);
  EXPECT_GT(log->counts().lost, 0U);
  EXPECT_EQ(steps_in(path_).size(), log->counts().written);
}

}  // namespace
}  // namespace kith::node
