// Moments (integers and optimiser pieces of a running state): all of one donor and of one of its
// safe points.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/gossip/several_donors.h"

namespace kith::gossip {
namespace {

using schema::StateItem;

class Moments : public testing::Test, public SeveralDonors {};

TEST_F(Moments, MoreMomentsThanThereCanBeAreRefused) {
  FetchOrder order = everything();
  t.donor(1).pieces = t.donor(2).pieces = 1000;
  t[0].fetch(t.now, donors, order);
  t.advance(1s);
  expect_success();
  EXPECT_EQ(moments[kIntegers], toy_id(4));
}

TEST_F(Moments, MomentsComeFromOneDonorOnly) {
  t[0].fetch(t.now, donors, everything());
  t.deliver();
  expect_success();
  expect_moments_of_one_donor();
  EXPECT_EQ(arrivals[kIntegers], 1);
}

// Wherever the giver of moments dies, they are begun anew with another, and the fragments are not.
TEST_F(Moments, IfTheirDonorDiesOnlyTheMomentsStartAgain) {
  std::set<int> integers;
  for (std::size_t at = 1; at < 400; at += 3) {
    SeveralDonors run;
    run.deliver_until(at, [&] {
      run.collect();
      if (!run.moments.empty()) run.t.kill(run.moments.begin()->second.bytes[0] - 1U);
    });
    run.t[0].fetch(run.t.now, donors, run.everything());
    run.t.advance(4s);
    run.expect_success();
    run.expect_moments_of_one_donor();
    integers.insert(run.arrivals[kIntegers]);
  }
  EXPECT_EQ(integers, (std::set<int>{1, 2})) << "both before and after the moments were whole";
}

TEST_F(Moments, IfTheirDonorFreezesTheMomentsStartAgainToo) {
  FetchOrder moments_alone;
  moments_alone.wanted.push_back(kIntegers);
  moments_alone.optimizer_pieces_max = 8;
  t.donor(1).on_asked = [&](const ItemKey& key) {
    if (key == piece(1)) t.freeze(1);
  };
  t[0].fetch(t.now, donors, moments_alone);
  t.advance(5s);
  collect();
  const auto end = t[0].take_end();
  ASSERT_TRUE(end && *end);
  expect_moments_of_one_donor();
  EXPECT_NE(moments[kIntegers], toy_id(2));
}

TEST_F(Moments, MomentsOfTwoImagesDoNotMix) {
  ToyDonor& donor = t.donor(1);
  int pieces_asked = 0;
  donor.on_asked = [&](const ItemKey& key) {
    if (key.item == StateItem::kOptimizer && ++pieces_asked == 2)
      donor.step = 50;  // the copy was dropped and made anew
  };
  t[0].fetch(t.now, {toy_id(2)}, everything());
  t.advance(1s);
  expect_success();
  expect_moments_of_one_donor();
  EXPECT_EQ(arrivals[kIntegers], 2);
  EXPECT_GE(pieces_asked, 4);
}

TEST_F(Moments, MomentsThatAreNotCopiedYetAreWaitedForWhereTheyWereAsked) {
  int left = 3;
  for (std::size_t i = 1; i <= 3; ++i) {
    t.donor(i).on_asked = [&, i](const ItemKey& key) {
      if (key == kIntegers && left-- > 0) t.donor(i).busy = 1;
    };
  }
  t[0].fetch(t.now, donors, everything());
  t.advance(2s);
  expect_success();
  expect_moments_of_one_donor();
  EXPECT_LT(left, 0);
}

TEST_F(Moments, MomentsThatOneNeverHasAreTakenFromAnother) {
  ToyDonor& first = t.donor(1);
  first.on_asked = [&](const ItemKey& key) { first.busy = key == kIntegers ? 1 : 0; };
  t[0].fetch(t.now, donors, everything());
  t.advance(4900ms);
  expect_success();
  EXPECT_NE(moments[kIntegers], toy_id(2));
}

}  // namespace
}  // namespace kith::gossip
