#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "compute/torch/block_cache.h"
#include "compute/torch/relu_pool_kernels.h"

namespace kith::compute::torch {
namespace {

TEST(ReluPool, TakesTheLargestOfFourAndGivesTheGradientToTheFirstOfEquals) {
  const std::vector<float> inputs = {1,  2,  5, 5,  //
                                     3,  0,  5, 5,  //
                                     -1, -2, 0, -1, -3, -4, -2, 0};
  std::vector<float> outputs(4);
  relu_pool_forward(inputs.data(), outputs.data(), 1, 4, 4);
  EXPECT_EQ(outputs, (std::vector<float>{3, 5, 0, 0}));
  const std::vector<float> gradient = {10, 20, 30, 40};
  std::vector<float> spread(16, -7.0F);
  relu_pool_backward(inputs.data(), outputs.data(), gradient.data(), spread.data(), 1, 4, 4);
  EXPECT_EQ(spread, (std::vector<float>{0, 0, 20, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(ReluPool, AgreesWithASlowLoopOnOddExtents) {
  Random random(3);
  for (const auto& [height, width] : {std::pair{2, 2}, {3, 5}, {7, 7}, {28, 28}, {9, 64}}) {
    const std::size_t h = height, w = width, planes = 3;
    std::vector<float> inputs(planes * h * w);
    for (float& value : inputs) value = static_cast<float>(random.normal());
    std::vector<float> outputs(planes * (h / 2) * (w / 2)), gradient(outputs.size(), 1.0F),
        spread(inputs.size(), 9.0F);
    relu_pool_forward(inputs.data(), outputs.data(), planes, h, w);
    relu_pool_backward(inputs.data(), outputs.data(), gradient.data(), spread.data(), planes, h, w);
    std::vector<float> expected_spread(inputs.size(), 0.0F);
    for (std::size_t p = 0, o = 0; p < planes; ++p) {
      for (std::size_t y = 0; y < h / 2; ++y) {
        for (std::size_t x = 0; x < w / 2; ++x, ++o) {
          std::size_t best = (p * h + 2 * y) * w + 2 * x;
          for (const std::size_t at : {best + 1, best + w, best + w + 1}) {
            if (inputs[at] > inputs[best]) best = at;
          }
          ASSERT_EQ(outputs[o], std::max(0.0F, inputs[best]));
          if (inputs[best] > 0.0F) expected_spread[best] = 1.0F;
        }
      }
    }
    EXPECT_EQ(spread, expected_spread) << h << " x " << w;
  }
}

TEST(ReluPool, LetsNaNThroughWhereverItLies) {
  for (std::size_t at = 0; at < 4; ++at) {
    std::vector<float> inputs = {1, -2, 3, -4};
    inputs[at] = std::numeric_limits<float>::quiet_NaN();
    float output = 0.0F;
    relu_pool_forward(inputs.data(), &output, 1, 2, 2);
    EXPECT_TRUE(std::isnan(output)) << at;
  }
}

TEST(BlockCache, GivesTheSameBlockAgainAndKeepsNoMoreThanWasInUse) {
  BlockCache cache;
  void* large = cache.take(std::size_t{96} << 20);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large) % 64, 0U);
  cache.give(large);
  EXPECT_GE(cache.kept_bytes(), std::size_t{96} << 20);
  void* again = cache.take((std::size_t{96} << 20) - 4096);
  EXPECT_EQ(again, large);
  EXPECT_EQ(cache.kept_bytes(), 0U);
  cache.give(again);
  for (std::size_t i = 1; i < 20; ++i) {
    cache.give(cache.take(i << 20));
    ASSERT_LE(cache.kept_bytes(), (std::size_t{97} << 20));
  }
}

TEST(BlockCache, LeavesSmallBlocksToMalloc) {
  BlockCache cache;
  cache.give(cache.take(100));
  cache.give(cache.take(1));
  EXPECT_EQ(cache.kept_bytes(), 0U);
}

}  // namespace
}  // namespace kith::compute::torch
