// Whole swarms under faults: nothing lost, nothing twice, the same hash every time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gossip/sim/simulate.h"

namespace kith::sim {
namespace {

using testing::HasSubstr;

void expect_clean(const SimulationReport& report) {
  EXPECT_TRUE(report.ok) << report.text;
  EXPECT_GT(report.completed, 0U) << report.text;
}

TEST(Simulation, ConservesMassWithoutFaults) {
  SimulationSettings settings;
  settings.nodes = 16;
  settings.seconds = 10;
  const SimulationReport report = run_simulation(settings);
  expect_clean(report);
  EXPECT_EQ(report.one_sided, 0U);
  EXPECT_EQ(report.invalid, 0U);
  EXPECT_EQ(report.suspended, 0U);
}

TEST(Simulation, LeavesNothingOnOneSideWithoutCrashes) {
  SimulationSettings settings;
  settings.nodes = 24;
  settings.seconds = 15;
  settings.loss = settings.duplicate = settings.reorder = 0.2;
  settings.partitions = 4;
  const SimulationReport report = run_simulation(settings);
  expect_clean(report);
  EXPECT_EQ(report.one_sided, 0U);
  EXPECT_GT(report.suspended, 0U);
}

TEST(Simulation, HoldsWithAThousandNodesLossDuplicatesReorderingAndCrashes) {
  SimulationSettings settings;
  settings.nodes = 1000;
  settings.seconds = 10;
  settings.loss = settings.duplicate = settings.reorder = 0.1;
  settings.churn = 0.5;
  settings.slow = 0.05;
  const SimulationReport report = run_simulation(settings);
  expect_clean(report);
  EXPECT_GT(report.crashes, 50U);
  EXPECT_GT(report.crashes_disk_lost, 0U);
}

TEST(Simulation, HoldsWhenProcessesStandStillAndStatesAreAdopted) {
  SimulationSettings settings;
  settings.nodes = 24;
  settings.seconds = 10;
  settings.loss = settings.duplicate = settings.reorder = 0.1;
  settings.pauses = 6.0;
  settings.adoptions = 6.0;
  const SimulationReport report = run_simulation(settings);
  expect_clean(report);
  EXPECT_GT(report.pauses, 10U);
  EXPECT_GT(report.adoptions, 10U);
}

TEST(Simulation, MeetsItsNumbersWithALatencyOfThreeStepsEachWay) {
  SimulationSettings settings;
  settings.nodes = 64;
  settings.seconds = 10;  // 200 steps
  settings.latency_steps = 3;
  settings.training = false;
  const SimulationReport report = run_simulation(settings);
  expect_clean(report);
  EXPECT_GE(report.completed_per_node_step, 0.14) << report.text;
  EXPECT_LT(report.refused_share, 0.05) << report.text;
  EXPECT_LT(report.variance_end / report.variance_start, 1e-8) << report.text;
}

TEST(Simulation, ElasticGossipContractsToo) {
  SimulationSettings settings;
  settings.nodes = 16;
  settings.seconds = 10;
  settings.method = "elastic-gossip";
  settings.alpha = 0.25;
  settings.training = false;
  const SimulationReport report = run_simulation(settings);
  expect_clean(report);
  EXPECT_LT(report.variance_end / report.variance_start, 1e-8) << report.text;
}

TEST(Simulation, IslandsThatMeetAgainHaveLostNothing) {
  SimulationSettings settings;
  settings.nodes = 16;
  settings.seconds = 20;
  settings.partitions = 6;
  settings.training = false;
  const SimulationReport report = run_simulation(settings);
  expect_clean(report);
  EXPECT_EQ(report.partitions, 6U);
  EXPECT_EQ(report.one_sided, 0U);
  EXPECT_LT(report.variance_end / report.variance_start, 1e-8) << report.text;
}

TEST(Simulation, EveryTopologyAveragesUnderFaults) {
  for (const char* topology : {"random", "ring", "complete", "hypercube"}) {
    SCOPED_TRACE(topology);
    SimulationSettings settings;
    settings.nodes = 16;
    settings.seconds = 10;
    settings.topology = topology;
    settings.loss = 0.05;
    settings.training = false;
    const SimulationReport report = run_simulation(settings);
    expect_clean(report);
    EXPECT_LT(report.variance_end / report.variance_start, 1e-3) << report.text;
  }
}

TEST(Simulation, LocalNodesNeverExchange) {
  SimulationSettings settings;
  settings.nodes = 4;
  settings.seconds = 3;
  settings.method = "local";
  const SimulationReport report = run_simulation(settings);
  EXPECT_TRUE(report.ok) << report.text;
  EXPECT_EQ(report.messages, 0U);
}

// ---- planted defects: each must be found

SimulationReport run_planted(gossip::PlantedFaults planted) {
  SimulationSettings settings;
  settings.nodes = 16;
  settings.seconds = 20;
  settings.loss = settings.duplicate = settings.reorder = 0.1;
  settings.planted = planted;
  return run_simulation(settings);
}

TEST(PlantedFault, AResultAppliedTwiceIsCaught) {
  const SimulationReport report = run_planted({.apply_result_twice = true});
  EXPECT_EQ(report.violations, 1U);
  EXPECT_THAT(report.violation, HasSubstr("applied twice"));
  EXPECT_THAT(report.violation, HasSubstr("--plant apply-result-twice"));
}

// A late copy of PROPOSE and of its chunk must arrive after the ACK: many copies, many of them
// late.
TEST(PlantedFault, ADroppedTombstoneIsCaught) {
  SimulationSettings settings;
  settings.nodes = 16;
  settings.seconds = 20;
  settings.chunks = 1;
  settings.duplicate = settings.reorder = 0.4;
  EXPECT_EQ(run_simulation(settings).violations, 0U);
  settings.planted.drop_tombstone = true;
  const SimulationReport report = run_simulation(settings);
  EXPECT_EQ(report.violations, 1U) << report.text;
  EXPECT_THAT(report.violation, HasSubstr("committed"));
}

TEST(PlantedFault, SidesQuantisedSeparatelyAreCaught) {
  const SimulationReport report = run_planted({.quantise_sides_separately = true});
  EXPECT_EQ(report.violations, 1U);
  EXPECT_THAT(report.violation, HasSubstr("mass"));
}

TEST(PlantedFault, NoneIsFoundWhereNoneIs) { EXPECT_EQ(run_planted({}).violations, 0U); }

// ---- swarm: each seed draws its own faults

class Swarm : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Swarm, testing::Range<std::uint64_t>(1, 41));

TEST_P(Swarm, HoldsAllInvariants) {
  SimulationSettings settings;
  settings.nodes = 3 + static_cast<std::uint32_t>(GetParam() % 14);
  settings.seconds = 15;
  settings.seed = GetParam();
  settings.swarm = true;
  const SimulationReport report = run_simulation(settings);
  EXPECT_TRUE(report.ok) << report.text;
}

// ---- the front

TEST(Simulation, ReportsInTheDocumentedForm) {
  SimulationSettings settings;
  settings.nodes = 4;
  settings.seconds = 2;
  settings.seed = 7;
  const SimulationReport report = run_simulation(settings);
  EXPECT_THAT(report.last_line,
              testing::MatchesRegex("seed=7 events=[0-9]+ hash=[0-9a-f]{16} violations=0"));
  EXPECT_EQ(report.text.substr(report.text.size() - report.last_line.size() - 1),
            report.last_line + "\n");
}

TEST(Simulation, CallsProgressInALongRun) {
  SimulationSettings settings;
  settings.nodes = 200;
  settings.seconds = 5;
  unsigned calls = 0;
  double last = 0.0;
  run_simulation(settings, [&](const SimulationProgress& progress) {
    ++calls;
    EXPECT_GE(progress.simulated_seconds, last);
    last = progress.simulated_seconds;
  });
  EXPECT_GT(calls, 0U);
}

TEST(Simulation, RefusesWhatMakesNoSense) {
  SimulationSettings settings;
  settings.method = "ad-psgdd";
  const auto unknown = try_simulation(settings);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::kUsage);
  settings = {};
  settings.chunks = 9;
  EXPECT_THAT(try_simulation(settings).error().message, HasSubstr("--chunks"));
}

TEST(SimulationOptions, ReplayCommandRoundTripsThroughTheTable) {
  SimulationSettings settings = draw_swarm({.nodes = 5, .seconds = 2.5, .seed = 99});
  settings.planted.drop_tombstone = true;
  SimulationSettings copy;
  for (const SimulationOption& option : simulation_options()) {
    const Status status = option.set(copy, option.get(settings));
    EXPECT_TRUE(status.has_value()) << option.name;
  }
  EXPECT_EQ(replay_command(copy), replay_command(settings));
  EXPECT_THAT(replay_command({.nodes = 5, .seed = 3, .loss = 0.1}),
              testing::StrEq("kith simulate --nodes 5 --seconds 20 --seed 3 --loss 0.1"));
}

TEST(SimulationOptions, RefuseValuesOutOfRange) {
  SimulationSettings settings;
  for (const SimulationOption& option : simulation_options()) {
    if (option.name == "method" || option.name == "topology" || option.name == "codec") continue;
    EXPECT_FALSE(option.set(settings, "nonsense").has_value()) << option.name;
  }
  for (const SimulationOption& option : simulation_options()) {
    if (option.name == "loss") {
      EXPECT_FALSE(option.set(settings, "1.5").has_value());
    }
    if (option.name == "nodes") {
      EXPECT_FALSE(option.set(settings, "0").has_value());
    }
  }
}

}  // namespace
}  // namespace kith::sim
