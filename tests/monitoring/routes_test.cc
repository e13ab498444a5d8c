#include "monitoring/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "monitoring/status_page.h"

namespace kith::monitoring {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class FakeNode final : public NodeView {
 public:
  NodeSnapshot snapshot() override {
    NodeSnapshot s;
    s.steps = 42;
    return s;
  }
  std::string status_json() override { return R"({"name":"a"})"; }
  std::string members_json() override { return R"({"members":[]})"; }
  HealthReport health() override { return report; }
  HttpReply command(const std::string& name, const HttpQuery& query) override {
    const auto address = query.find("address");
    return HttpReply::text(name + " " + (address == query.end() ? "-" : address->second));
  }
  HealthReport report;
};

class RoutesTest : public ::testing::Test {
 protected:
  ManualClock clock_;
  FakeNode node_;
  Metrics metrics_{clock_};
  Routes routes_{node_, metrics_};
};

TEST_F(RoutesTest, EveryDocumentedPathAnswers) {
  for (const char* path : {"/metrics", "/healthz", "/readyz", "/status", "/members", "/"}) {
    EXPECT_EQ(routes_.get(path, {}).status, 200) << path;
  }
  EXPECT_THAT(routes_.get("/metrics", {}).body, HasSubstr("kith_train_steps_total 42"));
  EXPECT_THAT(routes_.get("/metrics", {}).content_type, HasSubstr("version=0.0.4"));
  EXPECT_EQ(routes_.get("/status", {}).body, R"({"name":"a"})");
  EXPECT_THAT(routes_.get("/status", {}).content_type, HasSubstr("application/json"));
}

TEST_F(RoutesTest, AnUnknownPathNamesTheOnesThereAre) {
  const HttpReply reply = routes_.get("/metric", {});
  EXPECT_EQ(reply.status, 404);
  EXPECT_THAT(reply.body, HasSubstr("/metrics"));
}

TEST_F(RoutesTest, JoiningIsHealthyButNotReady) {
  node_.report.checks = {{"trainer", true, "stepping"},
                         {"joined", false, "waiting for a seed", HealthCheck::Concern::kReadiness}};
  EXPECT_EQ(routes_.get("/healthz", {}).status, 200);
  const HttpReply ready = routes_.get("/readyz", {});
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(ready.body, "ok   trainer: stepping\nFAIL joined: waiting for a seed\n");
}

TEST_F(RoutesTest, AFailedCheckIsUnhealthyInTextAndJson) {
  node_.report.checks = {{"trainer", false, "loss is not finite \xff"}};
  EXPECT_EQ(routes_.get("/healthz", {}).status, 503);
  const HttpReply reply = routes_.get("/healthz", {{"format", "json"}});
  EXPECT_EQ(reply.status, 503);
  const auto parsed = nlohmann::json::parse(reply.body);
  EXPECT_EQ(parsed["healthy"], false);
  EXPECT_EQ(parsed["checks"][0]["name"], "trainer");
}

TEST_F(RoutesTest, CommandsReachTheNodeByName) {
  EXPECT_EQ(routes_.post("/join", {{"address", "127.0.0.1:7400"}}).body, "join 127.0.0.1:7400");
  EXPECT_EQ(routes_.post("/leave", {}).body, "leave -");
}

TEST_F(RoutesTest, ThePageNeedsNothingFromOutside) {
  const std::string page(status_page());
  EXPECT_THAT(page, Not(HasSubstr("http:")));
  EXPECT_THAT(page, Not(HasSubstr("https:")));
  EXPECT_THAT(page, Not(HasSubstr("innerHTML")));
}

}  // namespace
}  // namespace kith::monitoring
