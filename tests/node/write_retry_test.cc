#include "node/daemon/write_retry.h"

#include <gtest/gtest.h>

#include <vector>

namespace kith::node {
namespace {

using std::chrono::seconds;

TimePoint at(int s) { return TimePoint{seconds(s)}; }

// Every try takes no time and fails; seconds of the tries after the first failure at second 100.
std::vector<int> tries(int patience) {
  WriteRetry retry{seconds(patience)};
  std::vector<int> when;
  retry.failed(at(100));
  for (int now = 100; !retry.over(); ++now) {
    if (!retry.due(at(now))) continue;
    when.push_back(now - 100);
    retry.failed(at(now));
  }
  return when;
}

TEST(WriteRetry, TriesAfterPausesThatDoubleUpToAMinuteAndOnceMoreAtTheEnd) {
  EXPECT_EQ(tries(300), (std::vector<int>{1, 3, 7, 15, 31, 63, 123, 183, 243, 300}));
  EXPECT_EQ(tries(2), (std::vector<int>{1, 2}));
}

TEST(WriteRetry, WithoutPatienceTheFirstFailureIsTheLast) { EXPECT_TRUE(tries(0).empty()); }

TEST(WriteRetry, AskedLateItTriesOnceAndIsOver) {
  WriteRetry retry{seconds(10)};
  retry.failed(at(100));
  EXPECT_TRUE(retry.due(at(500)));
  retry.failed(at(500));
  EXPECT_TRUE(retry.over());
  EXPECT_FALSE(retry.due(at(1000)));
}

TEST(WriteRetry, NothingIsDueBeforeAFailureAndAfterAReset) {
  WriteRetry retry{seconds(10)};
  EXPECT_FALSE(retry.due(at(1000)));
  retry.failed(at(0));
  EXPECT_EQ(retry.end(), at(10));
  retry.reset();
  EXPECT_FALSE(retry.failing());
  EXPECT_FALSE(retry.due(at(1000)));
  retry.failed(at(2000));
  EXPECT_EQ(retry.next(), at(2001));
  EXPECT_FALSE(retry.over());
}

}  // namespace
}  // namespace kith::node
