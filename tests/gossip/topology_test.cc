// Topologies: matchings for every count and round, and the mixing that each promises.
#include "gossip/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

namespace kith::gossip {
namespace {

std::unique_ptr<PartnerChooser> make(std::string_view name) {
  return (*find_topology(name))->make();
}

class Matching : public testing::TestWithParam<const char*> {};

TEST_P(Matching, IsAnInvolutionForEveryCountAndRound) {
  const auto chooser = make(GetParam());
  ASSERT_TRUE(chooser->is_matching());
  Random random(1);
  for (std::uint32_t n = 0; n <= 33; ++n) {
    for (std::uint64_t round = 0; round < 70; ++round) {
      for (std::uint32_t i = 0; i < n; ++i) {
        const auto j = chooser->partner(i, n, round, random);
        if (!j) continue;
        ASSERT_LT(*j, n);
        ASSERT_NE(*j, i);
        ASSERT_EQ(chooser->partner(*j, n, round, random), i) << n << " nodes, round " << round;
      }
    }
  }
}

TEST_P(Matching, LeavesNobodyAloneForEver) {
  const auto chooser = make(GetParam());
  Random random(1);
  for (std::uint32_t n = 2; n <= 33; ++n) {
    for (std::uint32_t i = 0; i < n; ++i) {
      bool met = false;
      for (std::uint64_t round = 0; round < 8; ++round) {
        met = met || chooser->partner(i, n, round, random).has_value();
      }
      EXPECT_TRUE(met) << "node " << i << " of " << n;
    }
  }
}

// The graph of all rounds is connected, so that repeated averaging reaches everybody.
TEST_P(Matching, MixesAllNodes) {
  const auto chooser = make(GetParam());
  Random random(1);
  for (std::uint32_t n = 2; n <= 33; ++n) {
    std::vector<double> x(n, 0.0);
    x[0] = n;
    for (std::uint64_t round = 0; round < 3000; ++round) {
      for (std::uint32_t i = 0; i < n; ++i) {
        const auto j = chooser->partner(i, n, round, random);
        if (j && *j > i) x[i] = x[*j] = (x[i] + x[*j]) / 2;
      }
    }
    for (const double value : x) EXPECT_NEAR(value, 1.0, 1e-3) << n << " nodes";
  }
}

INSTANTIATE_TEST_SUITE_P(All, Matching, testing::Values("ring", "complete", "hypercube"));

TEST(Ring, AnyThreeRoundsUseEveryEdgeAndNoOther) {
  const auto ring = make("ring");
  Random random(1);
  for (std::uint32_t n = 2; n <= 33; ++n) {
    for (std::uint64_t first = 0; first < n + 2; ++first) {
      std::set<std::uint32_t> edges;  // by lower end going right
      for (std::uint64_t round = first; round < first + 3; ++round) {
        for (std::uint32_t i = 0; i < n; ++i) {
          const auto j = ring->partner(i, n, round, random);
          if (!j) continue;
          const bool right = *j == (i + 1) % n;
          ASSERT_TRUE(right || i == (*j + 1) % n) << "not neighbours";
          if (right) edges.insert(i);
        }
      }
      EXPECT_EQ(edges.size(), n) << n << " nodes from round " << first;
    }
  }
}

TEST(Ring, EvenRingsUseTwoColoursAndOddOnesRestOneNode) {
  const auto ring = make("ring");
  Random random(1);
  for (std::uint32_t n = 2; n <= 33; ++n) {
    for (std::uint64_t round = 0; round < 40; ++round) {
      std::uint32_t resting = 0;
      for (std::uint32_t i = 0; i < n; ++i) {
        if (!ring->partner(i, n, round, random)) ++resting;
      }
      EXPECT_EQ(resting, n % 2);
    }
  }
}

TEST(Complete, MeetsEverybodyOnceInNMinusOneRounds) {
  const auto complete = make("complete");
  Random random(1);
  for (std::uint32_t n = 2; n <= 33; ++n) {
    const std::uint64_t rounds = n % 2 == 0 ? n - 1 : n;
    for (std::uint32_t i = 0; i < n; ++i) {
      std::set<std::uint32_t> met;
      std::size_t rests = 0;
      for (std::uint64_t round = 0; round < rounds; ++round) {
        const auto j = complete->partner(i, n, round, random);
        j ? static_cast<void>(met.insert(*j)) : static_cast<void>(++rests);
      }
      EXPECT_EQ(met.size(), n - 1);
      EXPECT_EQ(rests, n % 2);
    }
  }
}

TEST(Hypercube, GivesTheExactMeanInLog2Rounds) {
  const auto cube = make("hypercube");
  Random random(1);
  for (std::uint32_t n = 2; n <= 64; n *= 2) {
    for (std::uint64_t first = 0; first < 3; ++first) {
      std::vector<std::int64_t> x(n);
      std::iota(x.begin(), x.end(), 0);
      for (auto& value : x) value *= 2 * n;  // halves stay whole
      const std::int64_t mean = static_cast<std::int64_t>(n - 1) * n;
      for (std::uint64_t round = first; std::uint32_t{1} << (round - first) < n; ++round) {
        auto next = x;
        for (std::uint32_t i = 0; i < n; ++i) {
          next[i] = (x[i] + x[*cube->partner(i, n, round, random)]) / 2;
        }
        x = next;
      }
      for (const std::int64_t value : x) EXPECT_EQ(value, mean) << n << " nodes";
    }
  }
}

TEST(RandomTopology, IsUniformOverTheOthers) {
  const auto chooser = make("random");
  EXPECT_FALSE(chooser->is_matching());
  Random random(5);
  constexpr std::uint32_t kNodes = 9;
  constexpr int kDraws = 80000;
  for (const std::uint32_t self : {0U, 4U, 8U}) {
    std::vector<int> count(kNodes);
    for (int i = 0; i < kDraws; ++i) ++count[*chooser->partner(self, kNodes, 0, random)];
    EXPECT_EQ(count[self], 0);
    double chi_squared = 0;
    for (std::uint32_t j = 0; j < kNodes; ++j) {
      const double expected = kDraws / 8.0;
      if (j != self) chi_squared += std::pow(count[j] - expected, 2) / expected;
    }
    EXPECT_LT(chi_squared, 24.3) << "7 degrees of freedom, one in a thousand";
  }
}

TEST(Topologies, NobodyToMeetAlone) {
  Random random(1);
  for (const TopologyInfo& topology : topologies()) {
    EXPECT_EQ(topology.make()->partner(0, 1, 3, random), std::nullopt) << topology.name;
    EXPECT_EQ(topology.make()->partner(1, 2, 0, random), 0U) << topology.name;
  }
}

TEST(Topologies, UnknownNamesGetTheNearestKnownOne) {
  const auto unknown = find_topology("rnig");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kUsage);
  EXPECT_THAT(unknown.error().message, testing::HasSubstr("did you mean \"ring\""));
  EXPECT_THAT(find_topology("zzzzzzzz").error().message,
              testing::HasSubstr("random, ring, complete, hypercube"));
}

}  // namespace
}  // namespace kith::gossip
