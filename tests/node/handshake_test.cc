#include "node/daemon/handshake.h"

#include <gtest/gtest.h>

#include <algorithm>

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
      {"cluster", [](auto& h) { h.cluster = "other"; }, RejectCode::kCluster,
       "other here, digits there"},
      {"run", [](auto& h) { h.run_id = "x"; }, RejectCode::kRun, "x here, digits-1 there"},
      {"schema", [](auto& h) { h.schema_hash.bytes[0] = 9; }, RejectCode::kSchema, "model schema"},
      {"protocol", [](auto& h) { h.protocol_min = h.protocol_max = 9; }, RejectCode::kProtocol,
       "9 to 9 here"},
      {"facts", [](auto& h) { h.facts[0].second = "8"; }, RejectCode::kFacts,
       "run.seed: 8 here, 7 there"},
      {"missing fact", [](auto& h) { h.facts.pop_back(); }, RejectCode::kFacts,
       "data.mean: 0.13 here, not stated"},
      {"own key", [](auto& h) { h.record.id = id(1); }, RejectCode::kIdentity,
       "copied data directory"},
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

class FakeBook final : public MemberBook {
 public:
  std::optional<schema::MemberRecord> record_of(const NodeId& id) const override {
    for (const auto& record : members)
      if (record.id == id) return record;
    return std::nullopt;
  }
  std::vector<schema::MemberRecord> sample(std::size_t most) override {
    return {members.begin(),
            members.begin() + static_cast<std::ptrdiff_t>(std::min(most, members.size()))};
  }
  std::vector<schema::MemberRecord> members;
};

schema::MemberRecord record(std::uint8_t n, Incarnation boot, std::uint64_t nonce) {
  schema::MemberRecord r;
  r.id = id(n);
  r.incarnation = boot << 32;
  r.boot_nonce = nonce;
  return r;
}

TEST(RunPolicy, WelcomeTellsWhoIsThereButNotTheJoinerItself) {
  RunPolicy here(run(), id(1));
  FakeBook book;
  for (std::uint8_t n = 2; n < 100; ++n) book.members.push_back(record(n, n, 5));
  here.set_book(&book);
  schema::Hello hello;
  hello.record = record(2, 3, 9);
  const auto welcome = here.make_welcome(schema::Plane::kControl, hello);
  EXPECT_EQ(welcome.records.size(), 63U);
  EXPECT_TRUE(welcome.tallies);
  EXPECT_TRUE(here.make_hello(schema::Plane::kControl).tallies);
  EXPECT_EQ(welcome.records[0].id, id(3));
  EXPECT_EQ(welcome.seen_incarnation, Incarnation{2} << 32) << "an earlier start is told";
  hello.record.boot_nonce = 5;
  EXPECT_EQ(here.make_welcome(schema::Plane::kControl, hello).seen_incarnation, 0U)
      << "the same start is not";
  EXPECT_TRUE(here.make_welcome(schema::Plane::kBulk, hello).records.empty());
}

TEST(RunPolicy, OfTwoProcessesWithOneKeyBothComputeTheSameOneToGoOn) {
  const struct {
    schema::MemberRecord a, b;
    bool a_goes_on;
  } cases[] = {{record(7, 3, 1), record(7, 2, 9), true},   // the later boot
               {record(7, 3, 1), record(7, 3, 2), false},  // equal boots: the nonce
               {record(7, 2, 9), record(7, 3, 1), false}};
  for (const auto& c : cases) {
    EXPECT_EQ(outlives(c.a, c.b), c.a_goes_on);
    EXPECT_EQ(outlives(c.b, c.a), !c.a_goes_on);
  }
  schema::MemberRecord refuted = record(7, 2, 9);
  refuted.incarnation += 50;
  EXPECT_TRUE(outlives(record(7, 3, 1), refuted)) << "refutations do not count";
}

TEST(RunPolicy, ATwinThatMustGoIsToldAnIncarnationAboveItsOwn) {
  RunPolicy here(run(), id(1));
  here.set_record(record(1, 3, 4));
  schema::Hello hello = good(here);
  hello.record = record(1, 3, 2);
  auto reject = here.judge(hello);
  ASSERT_TRUE(reject.has_value());
  EXPECT_EQ(reject->code, RejectCode::kIdentity);
  EXPECT_GT(reject->seen_incarnation, hello.record.incarnation);
  EXPECT_FALSE(here.take_twin().has_value());

  hello.record = record(1, 4, 2);  // it outlives us: it is told nothing, and we know
  reject = here.judge(hello);
  ASSERT_TRUE(reject.has_value());
  EXPECT_EQ(reject->seen_incarnation, 0U);
  EXPECT_TRUE(here.take_twin().has_value());
}

TEST(RunPolicy, AMemberTellsAnOlderCopyOfALivingNodeToGoAndLetsItsLaterStartIn) {
  RunPolicy here(run(), id(1));
  FakeBook book;
  book.members.push_back(record(7, 3, 4));
  here.set_book(&book);
  schema::Hello hello = good(here);
  hello.record = record(7, 2, 9);
  const auto reject = here.judge(hello);
  ASSERT_TRUE(reject.has_value());
  EXPECT_GT(reject->seen_incarnation, hello.record.incarnation);
  book.members[0].state = schema::MemberState::kDead;
  EXPECT_FALSE(here.judge(hello).has_value())
      << "its incarnation file may have been lost: WELCOME says what is known";
  book.members[0].state = schema::MemberState::kAlive;
  hello.record = record(7, 4, 1);
  EXPECT_FALSE(here.judge(hello).has_value()) << "an ordinary restart";
}

TEST(RunPolicy, TheRunDigestTellsClusterFromRun) {
  EXPECT_NE(run_digest("ab", "c"), run_digest("a", "bc"));
  EXPECT_EQ(run_digest("a", "b"), run_digest("a", "b"));
}

// Whatever it says of itself: it compares, and needs to know what is there.
TEST(RunPolicy, TellsAProbeWhatIsHereAndNothingOfTheMembers) {
  RunPolicy here(run(), id(1));
  schema::Hello probe;
  probe.probe = true;
  probe.record.id = id(1);
  EXPECT_FALSE(here.judge(probe).has_value());
  EXPECT_FALSE(here.take_twin().has_value());
  const auto welcome = here.make_welcome(schema::Plane::kControl, probe);
  ASSERT_TRUE(welcome.about.has_value());
  EXPECT_EQ(welcome.about->cluster, "digits");
  EXPECT_EQ(welcome.about->run_id, "digits-1");
  EXPECT_EQ(welcome.about->schema_hash, run().schema_hash);
  EXPECT_EQ(welcome.facts, run().facts);
  EXPECT_TRUE(welcome.records.empty());
  probe.protocol_min = probe.protocol_max = 9;
  ASSERT_TRUE(here.judge(probe).has_value());
  EXPECT_EQ(here.judge(probe)->code, RejectCode::kProtocol);
}

}  // namespace
}  // namespace kith::node
