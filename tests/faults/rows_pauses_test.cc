// Rows 9 to 13: nodes that stand still, or nearly.
#include <signal.h>

#include "tests/faults/fault_row.h"
#include "tests/faults/limits.h"

namespace kith::e2e {
namespace {

using Row9 = FaultRow;
using Row10 = FaultRow;
using Row11 = FaultRow;
using Row12 = FaultRow;
using Row13 = FaultRow;

TEST_F(Row9, ThreeSecondsOfStandstillKillNobody) {
  start(4);
  ASSERT_TRUE(exchange(healthy()));
  node(3).signal(SIGSTOP);
  holds_for(seconds(3), "n4 is not dead", [&] { return !any_sees({0, 1, 2}, {3}, "dead"); });
  node(3).signal(SIGCONT);
  holds_for(seconds(10), "nobody is dead", [&] {
    return !any_sees({0, 1, 2, 3}, {0, 1, 2, 3}, "dead");
  });
  EXPECT_TRUE(exchange(healthy()));
}

TEST_F(Row10, TwoMinutesOfStandstillAreADeathAndAReturnThatAccusesNobody) {
  start(4);
  ASSERT_TRUE(exchange(healthy()));
  node(3).signal(SIGSTOP);
  const Stopwatch stopped;
  ASSERT_TRUE(cluster().wait(kSuspicionMax + seconds(2), "all see it dead", [&] {
    return all_see({0, 1, 2}, 3, {"dead"});
  }));
  note("dead everywhere after " + std::to_string(stopped.seconds()) + " s");
  const auto rest = seconds(120) - std::chrono::duration_cast<milliseconds>(
                                       std::chrono::duration<double>(stopped.seconds()));
  holds_for(std::chrono::duration_cast<milliseconds>(rest), "the others are well", [&] {
    return !any_sees({0, 1, 2}, {0, 1, 2}, "dead");
  });
  node(3).signal(SIGCONT);
  const Stopwatch back;
  bool accused = false;
  ASSERT_TRUE(cluster().wait(seconds(30), "all views are equal", [&] {
    accused = accused || any_sees({0, 1, 2, 3}, {0, 1, 2}, "dead");
    return views_agree(cluster(), healthy());
  }));
  note("views equal " + std::to_string(back.seconds()) + " s after it went on");
  holds_for(seconds(10), "and stay so", [&] {
    accused = accused || any_sees({0, 1, 2, 3}, {0, 1, 2}, "dead");
    return views_agree(cluster(), healthy());
  });
  EXPECT_FALSE(accused) << "the one that stood still called others dead";
  for (const std::size_t i : {0, 1, 2})
    EXPECT_EQ(lines(3, {"n" + std::to_string(i + 1) + " ", "dead"}), 0U) << node(3).log();
}

// Wider than a socket buffer, so that the one who stands still leaves the others sitting on bytes.
TEST_F(Row11, OneThatStopsMidTransferCostsTheOthersNoMemoryAndNoTime) {
  RowOptions options;
  options.sets = {"model.kind=linear",
                  "data.format=npy",
                  "data.train=[\"x.npy\",\"y.npy\"]",
                  "data.test=[]",
                  "train.learning_rate=0.00001",
                  "train.batch_size=2",
                  "exchange.fragment_bytes=4194304",
                  "exchange.chunk_bytes=262144",
                  "checkpoint.every_seconds=3600"};
  constexpr std::size_t kFeatures = 300000, kSamples = 8;
  std::string inputs(kSamples * kFeatures, '\0'), labels(kSamples, '\0');
  for (std::size_t i = 0; i < inputs.size(); ++i)
    inputs[i] = static_cast<char>(i * 2654435761U >> 13);
  for (std::size_t i = 0; i < kSamples; ++i) labels[i] = static_cast<char>(i);
  const std::string folder = std::string(KITH_BINARY_DIR) + "/e2e";
  write_npy(folder + "/wide-x.npy", "|u1", "(8, 300000)", inputs);
  write_npy(folder + "/wide-y.npy", "|u1", "(8,)", labels);
  options.sets[2] = "data.train=[\"" + folder + "/wide-x.npy\",\"" + folder + "/wide-y.npy\"]";
  options.sets.insert(options.sets.end(),
                      {"data.classes=10", "train.min_step_ms=100", "train.momentum=0"});
  start(4, options);
  ASSERT_TRUE(exchange({0, 1, 2, 3}, 3, seconds(60)));
  node(3).kill_now();
  NodeOptions armed;
  armed.environment["KITH_FAULTS"] = "chunk-received=stop@5";
  restart(3, armed);
  gone(3);
  ASSERT_TRUE(cluster().wait(seconds(60), "it stops in the middle of a transfer", [&] {
    const std::string stat = bytes_of("/proc/" + std::to_string(node(3).pid()) + "/stat");
    const auto name_end = stat.rfind(')');
    return name_end != std::string::npos && stat[name_end + 2] == 'T';
  }));
  passes(seconds(3));
  std::map<std::size_t, double> resident;
  for (const std::size_t i : healthy()) resident[i] = usage_of(node(i).pid()).resident_mib;
  ASSERT_TRUE(exchange(healthy(), 10, seconds(30)));
  passes(seconds(15));
  for (const std::size_t i : healthy()) {
    const double grown = usage_of(node(i).pid()).resident_mib - resident[i];
    note("n" + std::to_string(i + 1) + " grew " + std::to_string(grown) + " MiB");
    EXPECT_LT(grown, 24.0) << "memory of n" << i + 1;
  }
}

TEST_F(Row12, WithAllOthersFrozenTheSurvivorTrainsAloneAndTheClusterHeals) {
  if (const auto why = ControlGroup::missing("freezer"); !why.empty()) GTEST_SKIP() << why;
  start(5);
  ASSERT_TRUE(exchange(healthy()));
  const ControlGroup ice("freezer");
  for (const std::size_t i : {1, 2, 3, 4}) ice.add(node(i).pid());
  ice.freeze(true);
  for (const std::size_t i : {1, 2, 3, 4}) gone(i);
  EXPECT_TRUE(step({0}, 20));
  passes(seconds(20));
  EXPECT_TRUE(step({0}, 20));
  ice.freeze(false);
  for (const std::size_t i : {1, 2, 3, 4}) back(i);
  const auto took = agree();
  ASSERT_TRUE(took);
  note("views equal " + std::to_string(*took) + " s after the thaw");
  EXPECT_TRUE(exchange(healthy()));
}

TEST_F(Row13, ANodeWithFivePercentOfACoreGetsNobodyHealthyDeclaredDead) {
  if (const auto why = ControlGroup::missing("cpu"); !why.empty()) GTEST_SKIP() << why;
  start(5);
  ASSERT_TRUE(exchange(healthy()));
  const ControlGroup slow("cpu");
  slow.add(node(4).pid());
  for (const unsigned percent : {5U, 1U}) {  // the model is so small that five percent do
    slow.cpu_percent(percent);
    const double before = steps_of(node(4));
    holds_for(seconds(25), "no healthy node is dead", [&] {
      return !any_sees({0, 1, 2, 3}, {0, 1, 2, 3}, "dead");
    });
    EXPECT_FALSE(any_sees({4}, {0, 1, 2, 3}, "dead")) << "the slow one calls others dead";
    note("with " + std::to_string(percent) + " % it made " +
         std::to_string(steps_of(node(4)) - before) + " steps and is " + seen(0, 4) + " to n1");
  }
  slow.cpu_percent(100);
}

}  // namespace
}  // namespace kith::e2e
