// Rows 1 to 8: nodes that die, at once or in order.
#include <signal.h>

#include "tests/faults/fault_row.h"

namespace kith::e2e {
namespace {

using Row1 = FaultRow;
using Row7 = FaultRow;
using Row8 = FaultRow;

// A node that never proposes, because it never steps: an hour a step.
const std::vector<std::string> kIdle = {"train.min_step_ms=3600000"};

TEST_F(Row1, AKilledIdleNodeIsDeadWithinSuspicionAndNobodyExchangesWithIt) {
  start(5, {.of_node = {{}, {}, {}, {}, kIdle}});
  ASSERT_TRUE(exchange({0, 1, 2, 3}));
  node(4).kill_now();
  gone(4);
  const Stopwatch watch;
  ASSERT_TRUE(cluster().wait(kSuspicionMax + seconds(2), "all see it dead",
                             [&] { return all_see(healthy(), 4, {"dead"}); }));
  note("dead everywhere after " + std::to_string(watch.seconds()) + " s");
  const auto last_exchange = [&](std::size_t observer) {
    for (const auto& member : node(observer).get("/members")["members"])
      if (member["name"] == "n5" && member["last_exchange_seconds"].is_number())
        return member["last_exchange_seconds"].get<double>();
    return 1e9;
  };
  ASSERT_TRUE(exchange({0, 1, 2, 3}, 20));
  for (const std::size_t i : healthy())
    EXPECT_GT(last_exchange(i), 1.0) << "n" << i + 1 << " exchanges with the dead";
}

TEST_F(Row7, AClusterKilledAsAWholeAndRestartedAtOnceReformsAndNobodyStaysDead) {
  start(5, {.sets = {"checkpoint.every_seconds=1"}});
  ASSERT_TRUE(step(healthy(), 30));
  for (const std::size_t i : all_but({})) node(i).signal(SIGKILL);
  for (const std::size_t i : all_but({})) node(i).kill_now();
  const Stopwatch watch;
  NodeOptions at_once;
  at_once.wait_ready = false;
  for (const std::size_t i : all_but({})) restart(i, at_once);
  for (const std::size_t i : all_but({})) ASSERT_TRUE(node(i).wait_ready()) << node(i).log();
  ASSERT_TRUE(agree(seconds(30)));
  ASSERT_TRUE(step(healthy()));
  note("trains again after " + std::to_string(watch.seconds()) + " s");
  for (const std::size_t i : healthy()) EXPECT_GE(lines(i, {"resuming from a checkpoint"}), 1U);
}

TEST_F(Row8, ANodeThatIsToldToLeaveIsLeftEverywhereAndNeverCalledFailed) {
  start(4);
  ASSERT_TRUE(exchange(healthy()));
  gone(3);
  node(3).signal(SIGTERM);
  const Stopwatch watch;
  bool called_failed = false;
  ASSERT_TRUE(cluster().wait(seconds(15), "all see it left", [&] {
    called_failed =
        called_failed || any_sees({0, 1, 2}, {3}, "suspect") || any_sees({0, 1, 2}, {3}, "dead");
    return all_see({0, 1, 2}, 3, {"left"});
  }));
  note("left everywhere after " + std::to_string(watch.seconds()) + " s");
  EXPECT_FALSE(called_failed);
  const auto exit = node(3).wait_exit(seconds(10));
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 0) << node(3).log();
  holds_for(seconds(10), "it stays left", [&] { return !any_sees({0, 1, 2}, {3}, "dead"); });
  for (const std::size_t i : healthy()) {
    EXPECT_EQ(lines(i, {"name=n4", "suspect"}) + lines(i, {"name=n4", "dead"}), 0U)
        << node(i).log();
    EXPECT_EQ(node(i).metric("kith_exchanges_failed_total{role=\"initiator\",reason=\"timeout\"}"),
              0);
  }
}

}  // namespace
}  // namespace kith::e2e
