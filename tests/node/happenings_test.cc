// What the exchange loop tells the control loop: of fetches only the last one counts.
#include "node/daemon/happenings.h"

#include <gtest/gtest.h>

#include <thread>

namespace kith::node {
namespace {

using gossip::ExchangeEvent;
using gossip::StateTransfer;

StateTransfer::Fetched item(std::uint32_t index) {
  StateTransfer::Fetched out;
  out.key.index = index;
  return out;
}

TEST(Happenings, ComeInTheirOrderOnce) {
  Happenings happenings;
  const auto fetch = happenings.next_fetch();
  happenings.add({ExchangeEvent{}});
  EXPECT_TRUE(happenings.add(fetch, item(7)));
  EXPECT_TRUE(happenings.add(fetch, FetchEnded{}));
  const auto taken = happenings.take();
  ASSERT_EQ(taken.size(), 3U);
  EXPECT_TRUE(std::holds_alternative<ExchangeEvent>(taken[0]));
  EXPECT_EQ(std::get<StateTransfer::Fetched>(taken[1]).key.index, 7U);
  EXPECT_TRUE(std::holds_alternative<FetchEnded>(taken[2]));
  EXPECT_TRUE(happenings.take().empty());
}

TEST(Happenings, OfAFetchThatIsNotTheLastOneAreDroppedAlsoWhenTheyWait) {
  Happenings happenings;
  const auto given_up = happenings.next_fetch();
  happenings.add({ExchangeEvent{}});
  EXPECT_TRUE(happenings.add(given_up, item(1)));
  const auto fetch = happenings.next_fetch();
  EXPECT_FALSE(happenings.add(given_up, item(2)));
  EXPECT_FALSE(happenings.add(given_up, FetchEnded{}));
  EXPECT_TRUE(happenings.add(fetch, item(3)));
  const auto taken = happenings.take();
  ASSERT_EQ(taken.size(), 2U) << "the exchange's event stays";
  EXPECT_EQ(std::get<StateTransfer::Fetched>(taken[1]).key.index, 3U);
}

TEST(Happenings, NothingOfAnEarlierFetchComesAfterTheNextOneHasBegun) {
  Happenings happenings;
  Happenings::FetchNumber fetch = happenings.next_fetch();
  for (std::uint32_t round = 0; round < 200; ++round) {
    std::thread other([&happenings, fetch, round] {
      for (int i = 0; i < 50; ++i) happenings.add(fetch, item(round));
    });
    fetch = happenings.next_fetch();
    for (const Happening& happening : happenings.take())
      EXPECT_NE(std::get<StateTransfer::Fetched>(happening).key.index, round);
    other.join();
    EXPECT_TRUE(happenings.take().empty());
  }
}

}  // namespace
}  // namespace kith::node
