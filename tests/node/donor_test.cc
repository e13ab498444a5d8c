#include "node/daemon/donor.h"

#include <gtest/gtest.h>

namespace kith::node {
namespace {

using gossip::ItemKey;
using schema::StateItem;

TEST(Donor, AFinalStateIsGivenUntilItIsWithdrawnAndWhatIsAskedForInVainIsNoSign) {
  compute::Replica replica(10, 16);
  ManualClock clock;
  Donor donor(replica, 64, clock);
  const ItemKey manifest{StateItem::kManifest, 0, true}, fragment{StateItem::kFragment, 0, true};
  const TimePoint first{std::chrono::seconds(1)};
  donor.set_final(Slice::copy_of(std::vector<std::byte>(8)), {3});
  clock.set(first);
  EXPECT_TRUE(donor.item(manifest));
  EXPECT_EQ(donor.last_given(), first);
  donor.withdraw_final();
  clock.advance(std::chrono::seconds(1));
  for (const ItemKey& key : {manifest, fragment}) {
    const auto refused = donor.item(key);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  }
  EXPECT_EQ(donor.last_given(), first);
}

}  // namespace
}  // namespace kith::node
