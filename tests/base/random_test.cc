#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/hash.h"

namespace kith {
namespace {

// The published test vector of splitmix64 (seed 0) and xoshiro256** started from it.
TEST(Random, IsXoshiroSeededBySplitMix) {
  const Random::State state = Random(0).state();
  EXPECT_EQ(state[0], 0xE220A8397B1DCDAFULL);
  EXPECT_EQ(state[1], 0x6E789E6AA1B965F4ULL);
  EXPECT_EQ(state[2], 0x06C45D188009454FULL);
  EXPECT_EQ(state[3], 0xF88BB8A8724C81ECULL);
  Random random(0);
  EXPECT_EQ(random.next(), 0x99EC5F36CB75F2B4ULL);
}

// Everything a seed can draw, hashed: one number stands for 40,000 draws and must be the same for
// every compiler, optimisation level and machine.
TEST(Random, ReplaysTheSameNumbersEverywhere) {
  Random random(7);
  Hasher hasher;
  for (int i = 0; i < 10000; ++i) {
    hasher.add(random.next());
    hasher.add(random.below(1 + static_cast<std::uint64_t>(i)));
    hasher.add(std::bit_cast<std::uint64_t>(random.normal()));
    hasher.add(std::bit_cast<std::uint64_t>(random.exponential(3.0)));
  }
  EXPECT_EQ(hasher.finish().hex(), "695187eb6f16461ff7eed06b71f898384531cb120bdd6f06de5e12d91ef8853c");
}

TEST(Random, FirstDrawsOfASeedAreKnown) {
  Random random(1);
  EXPECT_DOUBLE_EQ(random.uniform(), 0.70292183315885048);
  EXPECT_EQ(random.below(1000), 520U);
  EXPECT_DOUBLE_EQ(random.normal(), 1.302090250702661);
  EXPECT_DOUBLE_EQ(random.exponential(2.0), 2.389222960869084);
}

struct Moments {
  double mean = 0.0, variance = 0.0;
};
template <typename Draw>
Moments moments(Draw draw, int count = 200000) {
  double sum = 0.0, squares = 0.0;
  for (int i = 0; i < count; ++i) {
    const double value = draw();
    sum += value;
    squares += value * value;
  }
  const double mean = sum / count;
  return {mean, squares / count - mean * mean};
}

TEST(Random, DistributionsHaveTheirMeansAndVariances) {
  Random random(5);
  const Moments uniform = moments([&] { return random.uniform(); });
  EXPECT_NEAR(uniform.mean, 0.5, 0.003);
  EXPECT_NEAR(uniform.variance, 1.0 / 12, 0.002);
  const Moments normal = moments([&] { return random.normal(); });
  EXPECT_NEAR(normal.mean, 0.0, 0.01);
  EXPECT_NEAR(normal.variance, 1.0, 0.015);
  const Moments exponential = moments([&] { return random.exponential(2.0); });
  EXPECT_NEAR(exponential.mean, 2.0, 0.03);
  EXPECT_NEAR(exponential.variance, 4.0, 0.15);
  const Moments chance = moments([&] { return random.chance(0.3) ? 1.0 : 0.0; });
  EXPECT_NEAR(chance.mean, 0.3, 0.005);
}

TEST(Random, LogarithmAgreesWithTheLibrarys) {
  Random random(9), same(9);
  for (int i = 0; i < 10000; ++i) {
    const double expected = -std::log(1.0 - same.uniform());
    EXPECT_NEAR(random.exponential(1.0), expected, 4e-16 * (1.0 + expected));
  }
}

TEST(Random, StaysInItsInterval) {
  Random random(6);
  for (int i = 0; i < 10000; ++i) {
    EXPECT_LT(random.below(3), 3U);
    EXPECT_EQ(random.below(1), 0U);
    const double value = random.uniform(-2.0, -1.0);
    EXPECT_GE(value, -2.0);
    EXPECT_LT(value, -1.0);
    EXPECT_FALSE(random.chance(0.0));
    EXPECT_TRUE(random.chance(1.0));
  }
}

TEST(Random, BelowIsUniformAlsoForBoundsThatDoNotDivide) {
  Random random(8);
  // With a plain multiplication, the lower half of this bound would come up half as often again.
  const std::uint64_t bound = (1ULL << 63) + (1ULL << 62);
  int low = 0;
  for (int i = 0; i < 100000; ++i) low += random.below(bound) % 3 == 0;
  EXPECT_NEAR(low, 33333, 600);
}

TEST(Random, ShuffleIsAPermutationAndReachesEveryOrder) {
  Random random(4);
  std::array<int, 6> seen{};
  for (int i = 0; i < 6000; ++i) {
    std::array<int, 3> values = {0, 1, 2};
    random.shuffle(std::span<int>(values));
    ASSERT_EQ(values[0] + values[1] + values[2], 3);
    ++seen[static_cast<std::size_t>(values[0] * 2 + (values[1] > values[2] ? 1 : 0))];
  }
  for (const int count : seen) EXPECT_NEAR(count, 1000, 150);
}

TEST(RandomFork, IsTheSameForTheSameLabelHoweverMuchWasDrawn) {
  Random random(3);
  Random early = random.fork("a");
  for (int i = 0; i < 100; ++i) random.next();
  Random late = random.fork("a");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(early.next(), late.next());
}

TEST(RandomFork, DiffersByLabelSeedAndFromItsParent) {
  const Random random(3);
  EXPECT_NE(random.fork("a").next(), random.fork("b").next());
  EXPECT_NE(random.fork("a").next(), Random(4).fork("a").next());
  EXPECT_NE(random.fork("").next(), Random(3).next());
  EXPECT_NE(random.fork("a").fork("b").next(), random.fork("b").fork("a").next());
}

TEST(RandomState, ContinuesWhereItWasSaved) {
  Random random(2);
  for (int i = 0; i < 17; ++i) random.normal();
  Random restored(99);
  restored.restore(random.state());
  EXPECT_EQ(restored.fork("x").next(), random.fork("x").next());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(restored.next(), random.next());
}

}  // namespace
}  // namespace kith
