#include "monitoring/live_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace kith::monitoring {
namespace {

using nlohmann::json;

class LiveViewTest : public ::testing::Test {
 protected:
  LiveViewTest() {
    clock_.advance(std::chrono::hours(3));
    node_.id = std::string(64, 'a');
    add(node_.id, "self", "alive");
  }
  void add(const std::string& id, const std::string& name, const std::string& state) {
    MemberSnapshot member;
    member.id = id;
    member.name = name;
    member.state = state;
    node_.members.push_back(member);
  }
  json live(const HttpQuery& query = {}) {
    return json::parse(view_.json([this] { return ++rendered_, node_; }, query));
  }
  ManualClock clock_;
  NullLog log_;
  Journal journal_{clock_, log_, [](auto, auto) { return ""; }};
  NodeSnapshot node_;
  int rendered_ = 0;
  LiveView view_{journal_, clock_};
};

TEST_F(LiveViewTest, RowsHaveTheFieldsThatTheyName) {
  node_.loss = 0.123456789;
  const json answer = live();
  EXPECT_EQ(answer["node"]["loss"], 0.12346);
  EXPECT_EQ(answer["node"]["accuracy"], nullptr);
  EXPECT_EQ(answer["members"]["fields"].size(), answer["members"]["rows"][0].size());
  EXPECT_EQ(answer["members"]["known"], 1);
  EXPECT_EQ(answer["now"], 3 * 3600.0);
}

TEST_F(LiveViewTest, ManyPagesCostOneLookAtTheNode) {
  for (int i = 0; i < 100; ++i) live();
  EXPECT_EQ(rendered_, 1);
  clock_.advance(LiveView::kFreshFor);
  live();
  EXPECT_EQ(rendered_, 2);
}

TEST_F(LiveViewTest, APageGetsOnlyWhatItLacks) {
  for (int i = 0; i < 10; ++i) {
    journal_.record(node_);
    journal_.events().log(LogLevel::kInfo, "node", "member joined", {{"name", "x"}});
    clock_.advance(std::chrono::seconds(1));
  }
  const json first = live();
  EXPECT_EQ(first["history"]["rows"].size(), 10U);
  EXPECT_EQ(first["events"]["events"].size(), 10U);
  HttpQuery query = {{"boot", first["boot"]},
                     {"after", first["history"]["rows"][7][0].dump()},
                     {"step", "1"},
                     {"event", "9"}};
  const json second = live(query);
  EXPECT_EQ(second["history"]["rows"].size(), 2U);
  EXPECT_EQ(second["events"]["events"].size(), 1U);
  query["boot"] = "of an earlier life";
  EXPECT_EQ(live(query)["history"]["rows"].size(), 10U);
  EXPECT_EQ(live(query)["events"]["events"].size(), 10U);
}

TEST_F(LiveViewTest, NonsenseInAQueryIsAsIfItWereNotThere) {
  journal_.record(node_);
  const std::string boot = live()["boot"];
  for (const char* nonsense : {"", "x", "1e999", "-", "99999999999999999999", "nan"}) {
    const json answer = live({{"boot", boot},
                              {"after", nonsense},
                              {"step", nonsense},
                              {"event", nonsense},
                              {"span", nonsense}});
    EXPECT_EQ(answer["history"]["rows"].size(), 1U) << nonsense;
  }
}

TEST_F(LiveViewTest, ShowsThoseInTroubleWhenThereAreTooManyMembers) {
  for (std::size_t i = 0; i < 3000; ++i) add("m" + std::to_string(i), "m", "alive");
  add("dead", "the dead", "dead");
  add("suspect", "the suspect", "suspect");
  const json members = live()["members"];
  EXPECT_EQ(members["known"], 3003);
  ASSERT_EQ(members["rows"].size(), LiveView::kMembersMax);
  EXPECT_EQ(members["rows"][0][1], "self");
  EXPECT_EQ(members["rows"][1][1], "the suspect");
  EXPECT_EQ(members["rows"][2][1], "the dead");
}

TEST_F(LiveViewTest, NamesOfOthersStayText) {
  add("x", "\"],<script>\xff", "alive");
  EXPECT_EQ(live()["members"]["rows"].size(), 2U);
}

}  // namespace
}  // namespace kith::monitoring
