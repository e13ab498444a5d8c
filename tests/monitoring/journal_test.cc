#include "monitoring/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <nlohmann/json.hpp>

#include "monitoring/recorder.h"

namespace kith::monitoring {
namespace {

using nlohmann::json;

NodeId id_of(std::uint8_t first, std::uint8_t second = 0) {
  NodeId id{};
  id.bytes[0] = first;
  id.bytes[1] = second;
  return id;
}

class JournalTest : public ::testing::Test {
 protected:
  json events(std::uint64_t after = 0) { return json::parse(journal_.events_json(after)); }
  ManualClock clock_;
  MemoryLog onward_;
  Journal journal_{clock_, onward_, [](std::string_view, std::string_view message) {
                     return message == "member dead" ? std::string_view("dead") : "";
                   }};
};

TEST_F(JournalTest, KeepsWhatIsLoggedAndPassesItOn) {
  clock_.advance(std::chrono::seconds(5));
  journal_.events().log(LogLevel::kWarn, "node", "member dead", {{"name", "b"}});
  journal_.events().log(LogLevel::kDebug, "node", "a detail");
  EXPECT_TRUE(onward_.contains("member dead name=b"));
  EXPECT_TRUE(onward_.contains("a detail"));
  ASSERT_EQ(events()["events"].size(), 1U);
  const json event = events()["events"][0];
  EXPECT_EQ(event["kind"], "dead");
  EXPECT_EQ(event["level"], "warn");
  EXPECT_EQ(event["at"], 5.0);
  EXPECT_EQ(event["fields"]["name"], "b");
}

TEST_F(JournalTest, GivesOnlyEventsThatAreNew) {
  for (const char* name : {"a", "b", "c"})
    journal_.events().log(LogLevel::kInfo, "node", "member joined", {{"name", name}});
  const json later = events(2);
  EXPECT_EQ(later["last"], 3);
  ASSERT_EQ(later["events"].size(), 1U);
  EXPECT_EQ(later["events"][0]["fields"]["name"], "c");
}

TEST_F(JournalTest, EventsAreBoundedInNumberAndLength) {
  const std::string huge(100'000, 'x');
  for (int i = 0; i < 1000; ++i)
    journal_.events().log(LogLevel::kInfo, "node", huge,
                          {{"name", huge}, {huge, std::to_string(i)}});
  EXPECT_EQ(events()["events"].size(), EventRing::kEventsMax);
  EXPECT_LT(journal_.events_json().size(), EventRing::kEventsMax * 2000);
}

TEST_F(JournalTest, TheSameAgainTakesOnePlaceUnlessItNamesSomebody) {
  for (int i = 0; i < 5; ++i)
    journal_.events().log(LogLevel::kInfo, "node", "evaluated", {{"loss", std::to_string(i)}});
  ASSERT_EQ(events()["events"].size(), 1U);
  EXPECT_EQ(events()["events"][0]["times"], 5);
  EXPECT_EQ(events()["events"][0]["fields"]["loss"], "4");
  EXPECT_EQ(events(4)["events"].size(), 1U) << "a page that has the fourth must get the fifth";
  for (const char* name : {"a", "b"})
    journal_.events().log(LogLevel::kWarn, "node", "member dead", {{"name", name}});
  EXPECT_EQ(events()["events"].size(), 3U);
}

TEST_F(JournalTest, BrokenTextFromOthersIsStillJson) {
  journal_.events().log(LogLevel::kInfo, "node", "member joined",
                        {{"name", std::string("\xff\xfe\"\n<b>", 7)}});
  EXPECT_EQ(events()["events"].size(), 1U);
}

TEST_F(JournalTest, CountsExchangesByPeer) {
  journal_.exchange_started(id_of(1), 2);
  journal_.exchange_started(id_of(1), 4);
  journal_.exchange_answered(id_of(1));
  journal_.exchange_failed(id_of(2));
  NodeSnapshot node;
  node.members.resize(1);
  node.members[0].id = id_of(1).hex();
  node.members[0].name = "peer";
  const json answer = json::parse(journal_.exchanges_json(node));
  ASSERT_EQ(answer["exchanges"].size(), 2U);
  const json& first = answer["exchanges"][0];
  EXPECT_EQ(first["name"], "peer");
  EXPECT_EQ(first["started"], 2);
  EXPECT_EQ(first["answered"], 1);
  EXPECT_EQ(first["staleness_steps"], 3.0);
  EXPECT_EQ(answer["exchanges"][1]["failed"], 1);
  EXPECT_EQ(answer["exchanges"][1]["staleness_steps"], nullptr);
}

TEST_F(JournalTest, ForgetsThePeerOfLongestAgoWhenThereAreTooMany) {
  for (std::size_t i = 0; i < ExchangePairs::kPeersMax + 10; ++i) {
    clock_.advance(std::chrono::seconds(1));
    journal_.exchange_answered(
        id_of(static_cast<std::uint8_t>(i / 256), static_cast<std::uint8_t>(i % 256)));
  }
  const auto pairs = journal_.pairs();
  EXPECT_EQ(pairs.size(), ExchangePairs::kPeersMax);
  EXPECT_FALSE(pairs.contains(id_of(0, 0).hex()));
  EXPECT_TRUE(pairs.contains(id_of(4, 9).hex()));
}

TEST(Recorder, LooksAgainAndAgainAndEndsAtOnce) {
  std::mutex mutex;
  std::condition_variable looked;
  int count = 0;
  {
    const Recorder recorder(
        [&]() noexcept {
          const std::lock_guard lock(mutex);
          ++count;
          looked.notify_all();
        },
        std::chrono::milliseconds(1));
    std::unique_lock lock(mutex);
    EXPECT_TRUE(looked.wait_for(lock, std::chrono::seconds(30), [&] { return count >= 3; }));
  }
  const auto began = std::chrono::steady_clock::now();
  {
    const Recorder recorder([]() noexcept {}, std::chrono::hours(1));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::minutes(1));
}

TEST(Recorder, TakesOnlyALookThatCannotThrow) {
  const auto may_throw = [] {};
  const auto never_throws = []() noexcept {};
  EXPECT_FALSE((std::is_constructible_v<Recorder, decltype(may_throw)>));
  EXPECT_TRUE((std::is_constructible_v<Recorder, decltype(never_throws)>));
}

}  // namespace
}  // namespace kith::monitoring
