// The update rules, one exchange at a time: elastic gossip (Pramod 2018), AD-PSGD (Lian et al.
// 2018), and the contraction of the topologies (GossipGraD's hypercube, Daily et al. 2018; the
// edge-coloured ring).
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "gossip/sim/trainer.h"
#include "gossip/topology.h"
#include "tests/sim/serial_pairs.h"

namespace kith::sim {
namespace {

class ElasticGossip : public testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(Alphas, ElasticGossip, testing::Values(0.05, 0.125, 0.25, 0.4, 0.5));

TEST_P(ElasticGossip, KeepsTheSumAndMultipliesTheGapByOneMinusTwoAlpha) {
  SerialPairs pairs({3.0, -1.0, 7.5}, GetParam());
  const Fixed sum = pairs.sum();
  double gap = pairs.value(0) - pairs.value(1);
  for (int round = 0; round < 5; ++round) {
    pairs.exchange(0, 1);
    gap *= 1.0 - 2.0 * GetParam();
    EXPECT_NEAR(pairs.value(0) - pairs.value(1), gap, 1e-8);
    EXPECT_EQ(pairs.sum(), sum);
    EXPECT_EQ(pairs.value(2), 7.5);
  }
  EXPECT_EQ(pairs.completed(), 5U);
}

TEST(AdPsgd, SetsBothToTheirMean) {
  SerialPairs pairs({3.0, -1.0}, 0.5);
  pairs.exchange(1, 0);
  EXPECT_EQ(pairs.value(0), 1.0);
  EXPECT_EQ(pairs.value(1), 1.0);
}

// Expected variance over uniform pairs: exactly 1 - 1/(N-1) per exchange. 6,000 trials; the ratio's
// deviation within one trial is below 0.2, so the mean is off by more than 0.01 once in 10^4 seeds.
// With alpha = 1/4 it would be 0.893.
TEST(AdPsgd, ContractsVarianceByOneMinusOneOverNMinusOneOverUniformPairs) {
  constexpr std::size_t kNodes = 8;
  const auto topology = gossip::find_topology("random");
  ASSERT_TRUE(topology.has_value());
  const auto chooser = (*topology)->make();
  SerialPairs pairs(std::vector<double>(kNodes), 0.5, chooser.get());
  Random random(14);
  double ratio = 0.0;
  constexpr int kTrials = 6000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> start;
    for (std::size_t i = 0; i < kNodes; ++i) start.push_back(random.normal());
    pairs.set(start);
    const Fixed sum = pairs.sum();
    const double before = pairs.variance();
    pairs.step(static_cast<NodeIndex>(random.below(kNodes)));
    ASSERT_EQ(pairs.sum(), sum);
    ratio += pairs.variance() / before;
  }
  EXPECT_EQ(pairs.completed(), static_cast<std::uint64_t>(kTrials));
  EXPECT_NEAR(ratio / kTrials, 1.0 - 1.0 / (kNodes - 1), 0.01);
}

// x0 = 4, x1 = 0, rate times curvature 1/4, centre 0: the rule gives 2 - 1 = 1 on both sides for
// node 0's gradient of 4 and node 1's of 0. Gradient after averaging: 1.5; averaging after the
// update: (3 + 0) / 2 = 1.5.
TEST(AdPsgd, TakesTheGradientBeforeAveragingAndAppliesItAfter) {
  SerialPairs pairs({4.0, 0.0}, 0.5);
  QuadraticTrainer first(pairs.store(0), kOne / 4, {0});
  QuadraticTrainer second(pairs.store(1), kOne / 4, {0});
  first.begin_step();
  second.begin_step();
  pairs.exchange(0, 1);  // merges at once: the model has been averaged before the steps end
  EXPECT_EQ(pairs.value(0), 2.0);
  first.end_step();
  second.end_step();
  EXPECT_EQ(pairs.value(0), 1.0);
  EXPECT_EQ(pairs.value(1), 2.0);
}

std::unique_ptr<gossip::PartnerChooser> make_topology(std::string_view name) {
  const auto topology = gossip::find_topology(name);
  EXPECT_TRUE(topology.has_value());
  return topology ? (*topology)->make() : nullptr;
}

// Everybody once: the second of a pair to speak finds nothing left to average.
void lock_step_round(SerialPairs& pairs) {
  for (NodeIndex i = 0; i < pairs.size(); ++i) pairs.step(i);
}

std::vector<double> normal_start(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> start;
  for (std::size_t i = 0; i < count; ++i) start.push_back(random.normal());
  return start;
}

TEST(Hypercube, ReachesTheExactMeanInLogNRounds) {
  const auto chooser = make_topology("hypercube");
  SerialPairs pairs(normal_start(16, 39), 0.5, chooser.get());
  const Fixed sum = pairs.sum();
  for (int round = 0; round < 3; ++round) lock_step_round(pairs);
  EXPECT_GT(pairs.variance(), 1e-6) << "one dimension is still missing";
  lock_step_round(pairs);
  EXPECT_EQ(pairs.sum(), sum);
  for (NodeIndex i = 0; i < 16; ++i)
    EXPECT_NEAR(static_cast<double>(pairs.fixed(i)), static_cast<double>(sum) / 16, 16);
}

// Two colours in turn: pairs are equal after the first round, and from then on each round
// multiplies the slowest mode by cos(2 pi / N).
TEST(Ring, ContractsByTheCosinePerRound) {
  constexpr std::size_t kNodes = 12;
  const auto chooser = make_topology("ring");
  SerialPairs pairs(normal_start(kNodes, 48), 0.5, chooser.get());
  const Fixed sum = pairs.sum();
  for (int round = 0; round < 40; ++round) lock_step_round(pairs);
  const double before = pairs.variance();
  for (int round = 0; round < 20; ++round) lock_step_round(pairs);
  const double factor = std::pow(pairs.variance() / before, 0.5 / 20);
  EXPECT_NEAR(factor, std::cos(2.0 * M_PI / kNodes), 2e-3);
  EXPECT_EQ(pairs.sum(), sum);
}

}  // namespace
}  // namespace kith::sim
