// Checkers over whole runs: each seen to fail with what it is there to find.
#include "gossip/sim/aggregates.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace kith::sim {
namespace {

TEST(FlatTraffic, AllowsAFifthAndNoMore) {
  EXPECT_FALSE(check_flat(std::array{100.0, 119.0, 81.0}).has_value());
  EXPECT_TRUE(check_flat(std::array{100.0, 110.0, 121.0}).has_value());
  EXPECT_TRUE(check_flat(std::array{100.0, 79.0}).has_value());
}

TEST(Mixing, ComparesRatesOfDecay) {
  EXPECT_FALSE(check_mixing(0.5, 0.5).has_value());
  EXPECT_FALSE(check_mixing(std::pow(0.5, 0.81), 0.5).has_value());
  EXPECT_TRUE(check_mixing(std::pow(0.5, 0.79), 0.5).has_value());
  EXPECT_TRUE(check_mixing(1.0, 0.5).has_value());
}

TEST(SameAggregates, SeesEachFigureThatDiffers) {
  SimulationReport a;
  a.completed_per_node_step = 0.9;
  a.bytes_per_node_second = 1000;
  a.variance_factor_per_step = 0.8;
  a.control_bytes_per_node_second = 60000;
  a.detection_median_seconds = 8;
  a.crashes = 20;
  EXPECT_FALSE(check_same_aggregates(a, a).has_value());
  for (double SimulationReport::*figure :
       {&SimulationReport::completed_per_node_step, &SimulationReport::bytes_per_node_second,
        &SimulationReport::variance_factor_per_step,
        &SimulationReport::control_bytes_per_node_second,
        &SimulationReport::detection_median_seconds}) {
    SimulationReport b = a;
    b.*figure *= 0.75;
    EXPECT_TRUE(check_same_aggregates(a, b).has_value());
  }
}

// Everybody knows `degree` others in a random union of cycles: mutual and connected.
ViewGraph mutual_views(NodeIndex nodes, unsigned cycles, Random& random) {
  ViewGraph views(nodes);
  std::vector<NodeIndex> order(nodes);
  for (NodeIndex i = 0; i < nodes; ++i) order[i] = i;
  for (unsigned c = 0; c < cycles; ++c) {
    random.shuffle(std::span(order));
    for (NodeIndex i = 0; i < nodes; ++i) {
      const NodeIndex next = order[(i + 1) % nodes];
      views[order[i]].push_back(next);
      views[next].push_back(order[i]);
    }
  }
  return views;
}

TEST(ViewGraphs, OneSidedKnowledgeIsSeen) {
  Random random(1);
  ViewGraph views = mutual_views(50, 3, random);
  EXPECT_FALSE(check_symmetric(views).has_value());
  views[7].push_back(views[7][0] == 9 ? 10 : 9);
  EXPECT_TRUE(check_symmetric(views).has_value());
}

TEST(ViewGraphs, SurvivorsOfManyFailuresMustHangTogether) {
  Random random(2);
  EXPECT_FALSE(check_connected(mutual_views(500, 24, random), 0.8, random).has_value());
  EXPECT_TRUE(check_connected(mutual_views(500, 2, random), 0.8, random).has_value());
  ViewGraph islands = {{1}, {0}, {3}, {2}};
  EXPECT_TRUE(check_connected(islands, 0.0, random).has_value());
}

TEST(ViewGraphs, UnevenInDegreesAreSeen) {
  Random random(3);
  constexpr NodeIndex kNodes = 1000;
  ViewGraph uniform(kNodes), stars(kNodes);
  for (NodeIndex i = 0; i < kNodes; ++i) {
    for (int k = 0; k < 30; ++k) {
      uniform[i].push_back(static_cast<NodeIndex>(random.below(kNodes)));
      stars[i].push_back(static_cast<NodeIndex>(random.below(random.chance(0.2) ? 50 : kNodes)));
    }
  }
  EXPECT_NEAR(in_degree_chi_square(uniform), 1.0, 0.15);
  EXPECT_FALSE(check_in_degrees(uniform, 1.3).has_value());
  EXPECT_TRUE(check_in_degrees(stars, 1.3).has_value());
}

}  // namespace
}  // namespace kith::sim
