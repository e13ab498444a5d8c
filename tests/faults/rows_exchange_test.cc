// Rows 2 to 6: a node dies at a chosen step of the exchange protocol. Training is off and all start
// values differ, so that TearDown() can compare the sum over all nodes with what it was: whatever
// was applied twice, or by one side, moves it. n2 alone proposes; n1 takes an hour a step, and its
// first one before n2 is there, so that nothing else happens to be on the way.
#include <signal.h>

#include <algorithm>

#include "base/fault_point.h"
#include "base/random.h"
#include "tests/faults/fault_row.h"

namespace kith::e2e {
namespace {

const std::vector<std::string> kPassive = {"train.min_step_ms=3600000"};

NodeOptions armed(const std::string& fault) {
  NodeOptions options;
  options.environment["KITH_FAULTS"] = fault;
  return options;
}

class ExchangeRow : public FaultRow {
 protected:
  // n2 proposes, n1 answers; `fault` arms one of them from its start.
  void start_pair(std::size_t armed_node, const std::string& fault, bool forfeits = false) {
    start(2, {.sets = {"checkpoint.every_seconds=3600"},
              .of_node = {kPassive, {}},
              .still = true,
              .forfeits = forfeits,
              .one_by_one = true,
              .armed = {{armed_node, fault}}});
    idles(0);
  }
  bool dies(std::size_t index) {
    return cluster().wait(seconds(30), "it dies at its fault point", [&] {
      return !node(index).running();
    }) && node(index).wait_exit(milliseconds(0))->signal == SIGKILL;
  }
  bool stops(std::size_t index) {
    return cluster().wait(seconds(30), "it stops at its fault point", [&] {
      const std::string stat = bytes_of("/proc/" + std::to_string(node(index).pid()) + "/stat");
      const auto name_end = stat.rfind(')');
      return name_end != std::string::npos && stat[name_end + 2] == 'T';
    });
  }
  std::string checkpoint_now(std::size_t index) {
    const auto run =
        run_program({kith_path(), "checkpoint", "now", "--at", data_dir(index)}, seconds(30));
    EXPECT_EQ(run.exit.code, 0) << run.output;
    return run.output;
  }
  double metric(std::size_t index, const std::string& name) { return node(index).metric(name); }
  bool ledger_is_empty(std::size_t index) {
    return cluster().wait(seconds(20), "its ledger is empty",
                          [&] { return metric(index, "kith_exchange_ledger_entries") == 0; });
  }
};

using Row2 = ExchangeRow;
using Row3 = ExchangeRow;
using Row4 = ExchangeRow;
using Row5 = ExchangeRow;
using Row6 = FaultRow;

TEST_F(Row2, AnInitiatorKilledAfterItsProposalLeavesTheOtherFree) {
  // n2's checkpoint knows nothing of the exchange: if n1 commits, the delta is lost with n2's life.
  start_pair(1, "propose-sent=kill@1", true);
  ASSERT_TRUE(dies(1));
  restart(1);
  ASSERT_TRUE(exchange({0, 1}));
  EXPECT_TRUE(ledger_is_empty(0));
}

TEST_F(Row3, APassiveNodeKilledBeforeItsCommitCostsNothing) {
  start_pair(0, "before-commit=kill@1");
  ASSERT_TRUE(dies(0));
  restart(0);
  ASSERT_TRUE(exchange({0, 1}));
}

TEST_F(Row4, APassiveNodeKilledAfterItsCommitForgetsIt) {
  start_pair(0, "after-commit=kill@1");
  ASSERT_TRUE(dies(0));
  restart(0);
  ASSERT_TRUE(exchange({0, 1}));
}

// The commit is in n1's checkpoint, its result never left: n2, stopped meanwhile, asks the restored
// ledger for it.
TEST_F(Row4, ARestoredLedgerReplaysWhatWasCommittedBeforeTheKill) {
  start_pair(1, "before-apply=stop@1");
  ASSERT_TRUE(stops(1));
  ASSERT_TRUE(cluster().wait(seconds(10), "n1 has committed",
                             [&] { return metric(0, "kith_exchange_ledger_entries") >= 1; }));
  checkpoint_now(0);
  node(0).kill_now();
  restart(0);
  ASSERT_TRUE(cluster().wait(seconds(3), "the ledger is restored",
                             [&] { return metric(0, "kith_exchange_ledger_entries") >= 1; }));
  node(1).signal(SIGCONT);
  ASSERT_TRUE(exchange({0, 1}));
  EXPECT_TRUE(ledger_is_empty(0));
}

// n2 has the open exchange in its checkpoint, applies the result, dies without ACK, and is restored
// to before.
TEST_F(Row5, AnInitiatorKilledBetweenResultAndAckAsksAgainAndAppliesOnce) {
  // Should the second life die in an exchange of its own, its checkpoint knows nothing of that one:
  // counted then.
  start_pair(0, "propose-received=stop@1", true);
  ASSERT_TRUE(stops(0));
  checkpoint_now(1);
  node(1).kill_now();
  restart(1, armed("after-apply=kill@1"));
  node(0).signal(SIGCONT);
  ASSERT_TRUE(dies(1));
  restart(1);
  ASSERT_TRUE(exchange({0, 1}));
  EXPECT_TRUE(ledger_is_empty(0));
  note("replays " + std::to_string(metric(0, "kith_exchange_replays_total")));
}

TEST_F(Row6, KilledAtFiftyRandomPointsANodeIsBackInTrafficWithinFiveSeconds) {
  start(4, {.sets = {"checkpoint.every_seconds=1"}});
  const char* text = std::getenv("KITH_FAULT_KILLS");
  const int kills = text != nullptr ? std::atoi(text) : 50;
  const auto points = fault_point_names();
  Random random(6);
  double slowest = 0.0;
  for (int kill = 0; kill < kills; ++kill) {
    const std::string point(points[random.below(points.size())]);
    const std::string fault = point + "=kill@" + std::to_string(1 + random.below(20));
    SCOPED_TRACE("kill " + std::to_string(kill) + ": " + fault);
    node(3).kill_now();
    const Stopwatch watch;
    restart(3, armed(fault));
    // Some faults strike before the second exchange is done: then the next life must show the
    // traffic.
    const bool lives =
        wait_until(seconds(5), [&] { return !node(3).running() || exchanges_of(node(3)) >= 1; });
    ASSERT_TRUE(lives) << "no traffic 5 s after the restart\n" << node(3).log();
    if (node(3).running()) slowest = std::max(slowest, watch.seconds());
    wait_until(seconds(2), [&] { return !node(3).running(); });
    for (const std::size_t i : {0, 1, 2}) ASSERT_TRUE(node(i).running()) << "n" << i + 1;
  }
  node(3).kill_now();
  const Stopwatch watch;
  restart(3);
  ASSERT_TRUE(exchange({3}, 1, seconds(5)));
  note(std::to_string(kills) + " kills, traffic again at latest " +
       std::to_string(std::max(slowest, watch.seconds())) + " s after a restart");
}

}  // namespace
}  // namespace kith::e2e
