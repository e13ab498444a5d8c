#include "node/handshake.h"

#include <gtest/gtest.h>

namespace kith::node {
namespace {

using schema::RejectCode;

NodeId id(std::uint8_t n) {
  NodeId node;
  node.bytes[0] = n;
  return node;
}

RunIdentity run() {
  RunIdentity r;
  r.cluster = "digits";
  r.run_id = "digits-1";
  r.schema_hash.bytes[0] = 1;
  r.facts = {{"run.seed", "7"}, {"data.mean", "0.13"}};
  return r;
}

schema::Hello good(RunPolicy& other, schema::Plane plane = schema::Plane::kControl) {
  schema::Hello hello = other.make_hello(plane);
  hello.record.id = id(2);
  return hello;
}

struct Case {
  const char* name;
  std::function<void(schema::Hello&)> change;
  RejectCode code;
  const char* text;
};

TEST(RunPolicy, RefusalsNameBothValues) {
  RunPolicy here(run(), id(1));
  RunPolicy there(run(), id(2));
  ASSERT_FALSE(here.judge(good(there)).has_value());
  const Case cases[] = {
      {"cluster", [](auto& h) { h.cluster = "other"; }, RejectCode::kCluster, "digits here, other there"},
      {"run", [](auto& h) { h.run_id = "x"; }, RejectCode::kRun, "digits-1 here, x there"},
      {"schema", [](auto& h) { h.schema_hash.bytes[0] = 9; }, RejectCode::kSchema, "model schema"},
      {"protocol", [](auto& h) { h.protocol_min = h.protocol_max = 9; }, RejectCode::kProtocol, "9 to 9 there"},
      {"facts", [](auto& h) { h.facts[0].second = "8"; }, RejectCode::kFacts, "run.seed: 7 here, 8 there"},
      {"missing fact", [](auto& h) { h.facts.pop_back(); }, RejectCode::kFacts, "data.mean: 0.13 here, not stated"},
      {"self", [](auto& h) { h.record.id = id(1); }, RejectCode::kSelf, "itself"},
  };
  for (const Case& c : cases) {
    schema::Hello hello = good(there);
    c.change(hello);
    const auto reject = here.judge(hello);
    ASSERT_TRUE(reject.has_value()) << c.name;
    EXPECT_EQ(reject->code, c.code) << c.name;
    EXPECT_NE(reject->detail.find(c.text), std::string::npos) << c.name << ": " << reject->detail;
    EXPECT_EQ(reject->id, id(1));
  }
}

TEST(RunPolicy, BulkLinksNeedNoFactsButTheSameRun) {
  RunPolicy here(run(), id(1));
  RunPolicy there(run(), id(2));
  schema::Hello hello = good(there, schema::Plane::kBulk);
  EXPECT_TRUE(hello.facts.empty());
  EXPECT_FALSE(here.judge(hello).has_value());
  hello.schema_hash.bytes[5] = 1;
  EXPECT_TRUE(here.judge(hello).has_value());
}

TEST(RunPolicy, WelcomeTellsWhoIsThereButNotTheJoinerItself) {
  RunPolicy here(run(), id(1));
  std::vector<schema::MemberRecord> members;
  for (std::uint8_t n = 2; n < 100; ++n) {
    members.emplace_back();
    members.back().id = id(n);
    members.back().incarnation = n;
  }
  here.set_members(members, 1234);
  schema::Hello hello;
  hello.record.id = id(2);
  const auto welcome = here.make_welcome(schema::Plane::kControl, hello);
  EXPECT_EQ(welcome.records.size(), 64U);
  EXPECT_EQ(welcome.records[0].id, id(3));
  EXPECT_EQ(welcome.seen_incarnation, 2U);
  EXPECT_EQ(welcome.progress, 1234U);
  EXPECT_TRUE(here.make_welcome(schema::Plane::kBulk, hello).records.empty());
}

TEST(RunPolicy, TheRunDigestTellsClusterFromRun) {
  EXPECT_NE(run_digest("ab", "c"), run_digest("a", "bc"));
  EXPECT_EQ(run_digest("a", "b"), run_digest("a", "b"));
}

}  // namespace
}  // namespace kith::node
