// The invariants themselves: each must be able to fail, and must not fail without cause.
#include "gossip/sim/oracle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "gossip/sim/node_ids.h"

namespace kith::sim {
namespace {

// Two nodes with one value each, an exchange by hand.
class OracleTest : public testing::Test {
 protected:
  OracleTest() : oracle({1, 1}, 2, true), a({1, 1}, 0, &oracle), b({1, 1}, 1, &oracle) {
    a.set_live(std::vector<Fixed>{10});
    b.set_live(std::vector<Fixed>{20});
    oracle.start(0, a);
    oracle.start(1, b);
  }
  static ExchangeId e(std::uint64_t sequence = 1, std::uint32_t boot = 1) {
    return {node_id(0), incarnation_of(boot), sequence};
  }
  Slice propose(const ExchangeId& id = e()) {
    oracle.proposed(id, 1, 0);
    return *a.snapshot(id, 0, CodecId::kFp32);
  }
  Slice commit(const Slice& proposal, const ExchangeId& id = e()) {
    const auto committed = b.commit(id, 0, {{proposal}}, CodecId::kFp32, 0.5);
    oracle.check(1, b);
    return committed->delta;
  }
  void apply(const Slice& delta, const ExchangeId& id = e()) {
    ASSERT_TRUE(a.apply(id, 0, {{delta}}, CodecId::kFp32).has_value());
    oracle.check(0, a);
  }
  void checkpoint_a() { oracle.checkpointed(0, 1, a.published()); }
  void checkpoint_b() { oracle.checkpointed(1, 1, b.published()); }
  std::string violation() { return oracle.violation() ? oracle.violation()->invariant : "none"; }

  Oracle oracle;
  FixedPointStore a, b;
};

TEST_F(OracleTest, IsContentWithAnExchangeThatEndsOnBothSides) {
  apply(commit(propose()));
  oracle.check_settled();
  EXPECT_EQ(violation(), "none");
  EXPECT_EQ(a.mass(0), 15);
  EXPECT_EQ(b.mass(0), 15);
}

TEST_F(OracleTest, SeesAResultAppliedTwice) {
  const Slice delta = commit(propose());
  apply(delta);
  apply(delta);
  EXPECT_EQ(violation(), "at most once");
}

TEST_F(OracleTest, SeesACommitRepeated) {
  const Slice proposal = propose();
  commit(proposal);
  commit(proposal);
  EXPECT_EQ(violation(), "at most once");
}

TEST_F(OracleTest, SeesSidesThatRoundForThemselves) {
  FixedPointStore other({1, 1}, 1, &oracle, true);
  other.set_live(std::vector<Fixed>{20});
  a.set_live(std::vector<Fixed>{17});  // a delta of 1 and a half: rounded down on the wire, up here
  oracle = Oracle({1, 1}, 2, true);
  oracle.start(0, a);
  oracle.start(1, other);
  oracle.proposed(e(), 1, 0);
  const auto committed =
      other.commit(e(), 0, {{*a.snapshot(e(), 0, CodecId::kFp32)}}, CodecId::kFp32, 0.5);
  ASSERT_TRUE(committed.has_value());
  oracle.check(1, other);
  EXPECT_EQ(violation(), "mass");
}

TEST_F(OracleTest, SeesADeltaWithOtherBits) {
  commit(propose());
  Fixed other = 4;
  apply(Slice::copy_of(std::as_bytes(std::span(&other, 1))));
  EXPECT_EQ(violation(), "same bits");
}

TEST_F(OracleTest, SeesAnInitiatorThatClosesWhatIsCommitted) {
  commit(propose());
  oracle.closed(e());
  EXPECT_EQ(violation(), "both or neither");
}

TEST_F(OracleTest, SeesACommitAfterARefusal) {
  const Slice proposal = propose();
  oracle.closed(e());
  commit(proposal);
  EXPECT_EQ(violation(), "both or neither");
}

TEST_F(OracleTest, SeesADeltaThatNeverArrived) {
  commit(propose());
  oracle.check_settled();
  EXPECT_EQ(violation(), "both or neither");
}

TEST_F(OracleTest, ExcusesAForfeit) {
  commit(propose());
  oracle.forfeited(e());
  oracle.closed(e());
  oracle.check(1, b);
  oracle.check_settled();
  EXPECT_EQ(violation(), "none");
  EXPECT_EQ(oracle.excused(), 1U);
}

TEST_F(OracleTest, SeesMassThatAppears) {
  a.add_live(0, 1);
  oracle.check(0, a);
  EXPECT_EQ(violation(), "mass");
}

TEST_F(OracleTest, BooksWhatTrainersAdd) {
  a.add_live(0, 5);
  oracle.trained(std::vector<Fixed>{5});
  oracle.check(0, a);
  EXPECT_EQ(violation(), "none");
}

TEST_F(OracleTest, SeesAChangeOutsideANodesOwnEvents) {
  b.add_live(0, 1);
  oracle.check(0, a);
  EXPECT_EQ(violation(), "none");
  const FixedPointStore* all[] = {&a, &b};
  oracle.recount(all);
  EXPECT_EQ(violation(), "mass");
}

TEST_F(OracleTest, SeesAValueOutOfRange) {
  a.set_live(std::vector<Fixed>{kFixedLimit});
  a.add_live(0, 1);
  a.begin_merge(0);
  a.finish_merge(0);
  oracle = Oracle({1, 1}, 2, true);
  oracle.start(0, a);
  oracle.check(0, a);
  EXPECT_EQ(violation(), "finite");
}

TEST_F(OracleTest, LetsAnInitiatorApplyAgainWhatItsCrashUndid) {
  const Slice proposal = propose();
  checkpoint_a();
  const std::vector<Fixed> saved = a.published();
  const Slice delta = commit(proposal);
  apply(delta);
  oracle.crashed(0, 0);
  a.set_live(saved);
  oracle.restarted(0, a, {});
  apply(delta);  // replayed by the responder
  oracle.check_settled();
  EXPECT_EQ(violation(), "none");
  apply(delta);
  EXPECT_EQ(violation(), "at most once");
}

TEST_F(OracleTest, DoesNotLetALostExchangeBeApplied) {
  checkpoint_a();
  const std::vector<Fixed> saved = a.published();
  const Slice delta = commit(propose());  // proposed after the checkpoint: forgotten
  oracle.crashed(0, 0);
  a.set_live(saved);
  oracle.restarted(0, a, {});
  EXPECT_EQ(violation(), "none");
  apply(delta);
  EXPECT_EQ(violation(), "both or neither");
}

TEST_F(OracleTest, LetsAResponderCommitAgainWhatItsCrashUndid) {
  checkpoint_b();
  const std::vector<Fixed> saved = b.published();
  const Slice proposal = propose();
  const Slice first = commit(proposal);
  oracle.crashed(1, 0);
  b.set_live(saved);
  oracle.restarted(1, b, {});
  apply(commit(proposal));
  oracle.check_settled();
  EXPECT_EQ(violation(), "none");
}

TEST_F(OracleTest, ExcusesARefusalByAResponderThatLostItsDisk) {
  commit(propose());
  oracle.crashed(1, std::nullopt);
  b.set_live(a.published());
  oracle.restarted(1, b, a.published());
  oracle.closed(e());
  oracle.check(1, b);
  oracle.check_settled();
  EXPECT_EQ(violation(), "none");
}

TEST_F(OracleTest, ReplaysALedgerThatSurvivedTheCrash) {
  const Slice delta = commit(propose());
  checkpoint_b();
  const std::vector<Fixed> saved = b.published();
  oracle.crashed(1, 0);
  b.set_live(saved);
  oracle.restarted(1, b, {});
  oracle.closed(e());  // no excuse: the ledger was in the checkpoint
  EXPECT_EQ(violation(), "both or neither");
}

TEST_F(OracleTest, BooksAnAdoptionAndLetsNothingGivenUpBeApplied) {
  const Slice delta = commit(propose());
  oracle.abandoned(0);
  a.set_live(b.published());
  oracle.adopted(0, a, b.published());
  oracle.check_settled();
  EXPECT_EQ(violation(), "none");
  EXPECT_FALSE(oracle.is_open(e()));
  apply(delta);
  EXPECT_EQ(violation(), "both or neither");
}

TEST_F(OracleTest, LetsARefusalBeUndoneByACrash) {
  const Slice proposal = propose();
  checkpoint_a();
  const std::vector<Fixed> saved = a.published();
  const Slice delta = commit(proposal);
  oracle.forfeited(e());
  oracle.closed(e());
  oracle.crashed(0, 0);
  a.set_live(saved);
  oracle.restarted(0, a, {});
  EXPECT_TRUE(oracle.is_open(e()));
  apply(delta);  // from a ledger that a restore has brought back
  oracle.check(1, b);
  oracle.check_settled();
  EXPECT_EQ(violation(), "none");
}

TEST_F(OracleTest, SeesARestoreThatIsNotTheCheckpoint) {
  checkpoint_a();
  oracle.crashed(0, 0);
  a.set_live(std::vector<Fixed>{11});
  oracle.restarted(0, a, {});
  EXPECT_EQ(violation(), "mass");
}

}  // namespace
}  // namespace kith::sim
