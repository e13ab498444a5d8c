// The same at full size and length: minutes of one core. Labelled `full`.
#include <gtest/gtest.h>

#include <array>

#include "gossip/sim/aggregates.h"
#include "gossip/sim/simulate.h"

namespace kith::sim {
namespace {

SimulationSettings swarm_of(std::uint32_t nodes, double seconds) {
  SimulationSettings settings;
  settings.nodes = nodes;
  settings.seconds = seconds;
  settings.method = "local";
  return settings;
}

TEST(MembershipAtFullSize, AThousandNodesForAMinuteWithChurn) {
  SimulationSettings settings = swarm_of(1000, 60);
  settings.churn = 0.05;
  const SimulationReport report = run_simulation(settings);
  EXPECT_TRUE(report.ok) << report.text;
  EXPECT_GT(report.deaths, 3U);
  EXPECT_GT(report.dissemination_samples, 10000U);
}

TEST(MembershipAtFullSize, TenThousandNodesCostEachNoMoreThanAHundred) {
  const SimulationReport small = run_simulation(swarm_of(100, 20));
  const SimulationReport large = run_simulation(swarm_of(10000, 10));
  EXPECT_TRUE(large.ok) << large.text;
  const auto found = check_flat(
      std::array{small.control_bytes_per_node_second, large.control_bytes_per_node_second});
  EXPECT_FALSE(found.has_value()) << found->text;
}

TEST(MembershipAtFullSize, FewerThanOneFalseDeathInAThousandNodeHours) {
  SimulationSettings settings = swarm_of(100, 7200);  // 200 node-hours
  settings.loss = 0.05;
  settings.slow = 0.1;
  const SimulationReport report = run_simulation(settings);
  EXPECT_TRUE(report.ok) << report.text;
  EXPECT_GT(report.node_hours, 199.0);
}

class LongSwarm : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, LongSwarm, testing::Range<std::uint64_t>(1000, 1200));

TEST_P(LongSwarm, HoldsAllProperties) {
  SimulationSettings settings;
  settings.nodes = 3 + static_cast<std::uint32_t>(GetParam() % 60);
  settings.seconds = 60;
  settings.seed = GetParam();
  settings.swarm = true;
  if (GetParam() % 2 == 0) settings.method = "local";
  const SimulationReport report = run_simulation(settings);
  EXPECT_TRUE(report.ok) << report.text;
}

}  // namespace
}  // namespace kith::sim
