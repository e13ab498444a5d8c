#include "monitoring/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace kith::monitoring {
namespace {

using nlohmann::json;

HistorySample at(double seconds) {
  HistorySample sample;
  sample.at = seconds;
  sample.bytes_sent = static_cast<std::uint64_t>(seconds * 1000);
  return sample;
}

History after_seconds(double step_max, int seconds) {
  History history(step_max);
  for (int i = 0; i < seconds; ++i) history.add(at(100.0 + i));
  return history;
}

TEST(History, AShortRunHasASampleEachSecond) {
  const History history = after_seconds(History::kHourStep, 500);
  EXPECT_EQ(history.samples().size(), 500U);
  EXPECT_EQ(history.step(), 1.0);
}

TEST(History, AnHourIsCoveredAndNeverMoreThanItsRows) {
  for (const int seconds : {901, 3600, 7200, 100'000}) {
    const History history = after_seconds(History::kHourStep, seconds);
    EXPECT_LE(history.samples().size(), History::kRowsMax) << seconds;
    const double covered = history.samples().back().at - history.samples().front().at;
    EXPECT_GE(covered, std::min(seconds - 10.0, 3590.0)) << seconds;
    EXPECT_LE(covered, 3700.0) << seconds;
    EXPECT_LE(history.step(), History::kHourStep);
  }
}

TEST(History, AWholeRunIsCoveredFromItsFirstSample) {
  const History history = after_seconds(0.0, 200'000);
  EXPECT_LE(history.samples().size(), History::kRowsMax);
  EXPECT_GE(history.samples().size(), History::kRowsMax / 2 - 2);
  EXPECT_EQ(history.samples().front().at, 100.0);
  EXPECT_GE(history.samples().back().at, 200'100.0 - 2 * history.step());
}

TEST(History, GivesOnlyWhatIsNewUntilTheStepChanges) {
  History history = after_seconds(History::kHourStep, 100);
  const json all = json::parse(history.json());
  EXPECT_EQ(all["rows"].size(), 100U);
  EXPECT_EQ(all["fields"].size(), all["rows"][0].size());
  EXPECT_EQ(json::parse(history.json(189.0, 1.0))["rows"].size(), 10U);
  EXPECT_EQ(json::parse(history.json(189.0, 2.0))["rows"].size(), 100U);
}

TEST(History, TheNewestSampleIsThereEvenBetweenTwoThatAreKept) {
  History history = after_seconds(History::kHourStep, 3600);
  ASSERT_EQ(history.step(), 4.0);
  history.add(at(history.samples().back().at + 1.0));
  const json answer = json::parse(history.json());
  EXPECT_DOUBLE_EQ(answer["latest"][0].get<double>(), history.samples().back().at + 1.0);
  EXPECT_EQ(json::parse(History(0.0).json())["latest"], nullptr);
}

TEST(History, ASampleHoldsThisNodeAndTheSpreadOfMembersThatAreAlive) {
  NodeSnapshot node;
  node.id = "a";
  node.loss = 1.0;
  const auto member = [](const std::string& id, const std::string& state, double loss) {
    MemberSnapshot m;
    m.id = id;
    m.state = state;
    m.loss = loss;
    return m;
  };
  node.members = {member("a", "alive", 9.0), member("b", "alive", 3.0), member("c", "dead", 50.0)};
  const HistorySample sample = sample_of(node, 7.0);
  EXPECT_EQ(sample.loss.own, 1.0);
  EXPECT_EQ(sample.loss.mean, 2.0);
  EXPECT_EQ(sample.loss.low, 1.0);
  EXPECT_EQ(sample.loss.high, 3.0);
  EXPECT_EQ(sample.accuracy.mean, std::nullopt);
  EXPECT_EQ(sample.members_alive, 2U);
}

}  // namespace
}  // namespace kith::monitoring
