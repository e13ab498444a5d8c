#include "node/daemon/claims.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kith::node {
namespace {

constexpr Step kEnormous = ~0ULL;

TEST(Vouched, OneOtherMemberIsBelievedOfSeveralOnlyWhatTwoSay) {
  EXPECT_EQ(vouched(std::vector<Step>{}), 0U);
  EXPECT_EQ(vouched(std::vector<Step>{500}), 500U);
  EXPECT_EQ(vouched(std::vector<Step>{500, kEnormous}), 500U);
  EXPECT_EQ(vouched(std::vector<Step>{3, kEnormous, 500, 490}), 500U);
  EXPECT_EQ(vouched(std::vector<Step>{900, 905, 3, 4}), 900U) << "an older island of two counts";
}

TEST(Belief, TakesAStateNeitherFromOneWhoIsBehindNorFromOneAloneFarAhead) {
  const Belief belief{500, 3, 100};
  EXPECT_FALSE(belief.is_level(399));
  EXPECT_TRUE(belief.is_level(400));
  EXPECT_TRUE(belief.is_level(600));
  EXPECT_FALSE(belief.is_level(601));
  EXPECT_FALSE(belief.is_level(kEnormous));
  EXPECT_TRUE((Belief{kEnormous, 1, 100}).is_level(kEnormous))
      << "of two members the other is all there is";
}

TEST(Belief, CountsNoMoreStepsThanTheModelIsDeepAndNoMoreSamplesThanTheirBatches) {
  Belief belief;
  belief.steps_max = 600;
  belief.samples_per_step_max = 8 * 32;
  EXPECT_EQ(belief.counted(16000, 500).samples, 16000U);
  EXPECT_EQ(belief.counted(16000, 500).steps, 500U);
  EXPECT_EQ(belief.counted(kEnormous, 500).samples, 500U * 8 * 32);
  EXPECT_EQ(belief.counted(kEnormous, kEnormous).samples, 600U * 8 * 32);
  EXPECT_EQ(belief.counted(kEnormous, kEnormous).steps, 600U);
  EXPECT_EQ(belief.counted(kEnormous, 0).samples, 0U);
}

TEST(Belief, WithoutABoundCountsWhatIsSaid) {
  const auto counted = Belief{}.counted(1'000'000'000, 1000);
  EXPECT_EQ(counted.samples, 1'000'000'000U);
  EXPECT_EQ(counted.steps, 1000U);
}

TEST(Pace, OfOneMemberCountsUpToAHundredTimesThatOfTheOthers) {
  EXPECT_EQ(believed_pace(10, {}), 10.0);
  EXPECT_EQ(believed_pace(10, {1e18}), 1e18) << "one other member is believed";
  EXPECT_EQ(believed_pace(10, {500, 1}), 500.0) << "a fast one among slow ones";
  EXPECT_EQ(believed_pace(10, {1e18, 1}), 1000.0);
  EXPECT_EQ(believed_pace(0, {1e18, 0}), 100.0);
  EXPECT_EQ(believed_pace(2, {std::nan(""), 3}), 3.0);
}

}  // namespace
}  // namespace kith::node
