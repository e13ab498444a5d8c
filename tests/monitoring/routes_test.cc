#include "monitoring/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "monitoring/page_assets.h"

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
  NullLog log_;
  Journal journal_{clock_, log_, [](auto, auto) { return ""; }};
  Routes routes_{node_, metrics_, journal_, clock_};
};

TEST_F(RoutesTest, EveryDocumentedPathAnswers) {
  for (const char* path : {"/metrics", "/healthz", "/readyz", "/status", "/members", "/live",
                           "/history", "/events", "/exchanges", "/"}) {
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
  for (const char* path : {"/", "/assets/page.css", "/assets/page.js", "/assets/format.js",
                           "/assets/charts.js", "/assets/members.js"}) {
    const std::string text = routes_.get(path, {}).body;
    EXPECT_FALSE(text.empty()) << path;
    EXPECT_THAT(text, Not(HasSubstr("https:"))) << path;
    EXPECT_THAT(text, Not(HasSubstr("innerHTML"))) << path;
    EXPECT_THAT(text, Not(HasSubstr("@import"))) << path;
  }
}

std::string header_of(const HttpReply& reply, const std::string& name) {
  for (const auto& [key, value] : reply.headers)
    if (key == name) return value;
  return "";
}

TEST_F(RoutesTest, ThePageMayOnlyLoadFromItsOwnNode) {
  const HttpReply page = routes_.get("/", {});
  EXPECT_THAT(page.content_type, HasSubstr("text/html"));
  const std::string policy = header_of(page, "Content-Security-Policy");
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(policy, HasSubstr("script-src 'self'"));
  EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
}

// What the page names by a hash of its bytes may be kept; the page itself, which names it, never.
TEST_F(RoutesTest, FilesOfThePageAreKeptByBrowsersUnderAHash) {
  const std::string page = routes_.get("/", {}).body;
  std::size_t files = 0;
  for (auto at = page.find("\"assets/"); at != std::string::npos;
       at = page.find("\"assets/", at + 1), ++files) {
    const std::string url = page.substr(at + 1, page.find('"', at + 1) - at - 1);
    const auto question = url.find("?v=");
    ASSERT_NE(question, std::string::npos) << url;
    const HttpReply reply =
        routes_.get("/" + url.substr(0, question), {{"v", url.substr(question + 3)}});
    EXPECT_EQ(reply.status, 200) << url;
    EXPECT_THAT(header_of(reply, "Cache-Control"), HasSubstr("immutable")) << url;
  }
  EXPECT_GE(files, 7U);
  EXPECT_EQ(header_of(routes_.get("/", {}), "Cache-Control"), "");
  EXPECT_EQ(header_of(routes_.get("/assets/page.js", {}), "Cache-Control"), "");
  EXPECT_EQ(routes_.get("/assets/other.js", {}).status, 404);
}

}  // namespace
}  // namespace kith::monitoring
