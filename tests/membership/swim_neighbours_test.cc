// With partial views: links to a few neighbours only, who watch each other; records and accusations
// still reach everybody.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/membership/swim_network.h"

namespace kith::gossip::testing {
namespace {

using schema::MemberState;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const SwimSettings kLocal = SwimSettings::preset(milliseconds(200));

// A ring in which everybody is linked with the nearest three on each side, and with nobody else.
class Ring : public ::testing::Test {
 protected:
  static constexpr std::size_t kNodes = 64;
  Ring() : network_(kNodes, kLocal, 1) {
    for (std::size_t i = 0; i < kNodes; ++i) {
      std::vector<NodeId> ids;
      for (const std::size_t j : neighbours_of(i)) {
        ids.push_back(network_.node(j).id);
        network_.swim(i).on_link(network_.now(), network_.node(j).id, true);
        network_.introduce(i, j);
      }
      network_.swim(i).set_neighbours(ids);
    }
    // Without a link between them: a sweep, for which the owner makes one.
    network_.cut = [this](std::size_t from, std::size_t to) {
      if (!are_neighbours(from, to)) ++unlinked_;
      return false;
    };
  }
  static bool are_neighbours(std::size_t a, std::size_t b) {
    const std::size_t apart = (a + kNodes - b) % kNodes;
    return apart <= 3 || apart >= kNodes - 3;
  }
  static std::vector<std::size_t> neighbours_of(std::size_t i) {
    std::vector<std::size_t> out;
    for (std::size_t d = 1; d <= 3; ++d) {
      out.push_back((i + d) % kNodes);
      out.push_back((i + kNodes - d) % kNodes);
    }
    return out;
  }
  std::vector<NodeId> ids_of_neighbours(std::size_t i, std::size_t without) {
    std::vector<NodeId> out;
    for (const std::size_t j : neighbours_of(i))
      if (j != without) out.push_back(network_.node(j).id);
    return out;
  }
  SwimNetwork network_;
  std::size_t unlinked_ = 0;
};

TEST_F(Ring, EverybodyIsKnownToEverybody) {
  EXPECT_TRUE(network_.run_until([&] { return network_.all_well(); }, seconds(60)));
  unlinked_ = 0;
  network_.run(minutes(1));  // nobody's figures change here: all are swept
  EXPECT_TRUE(network_.all_well());
  EXPECT_EQ(network_.events_of(SwimEvent::Kind::kDead), 0U);
  const std::size_t sweeps = kNodes * static_cast<std::size_t>(minutes(1) / kLocal.sweep_interval);
  EXPECT_LE(unlinked_, 2 * sweeps + 2 * kNodes) << "a PING and a PONG each, and nothing else";
  EXPECT_GE(unlinked_, sweeps / 2) << "old news alone is looked into";
}

// The neighbours of 24 and 25 die with them: nobody is left who watches those two.
TEST_F(Ring, WhoDiesWithAllItsNeighboursIsSweptUp) {
  ASSERT_TRUE(network_.run_until([&] { return network_.all_well(); }, seconds(60)));
  for (std::size_t i = 20; i < 30; ++i) network_.crash(i);
  const auto all_known = [&] {
    for (std::size_t i = 20; i < 30; ++i)
      if (!network_.all_see(i, MemberState::kDead)) return false;
    return true;
  };
  EXPECT_TRUE(network_.run_until(all_known, network_.swim(0).suspicion_max() + seconds(30)));
  EXPECT_EQ(network_.swim(0).count(MemberState::kDead), 10U) << "and nobody who lives";
}

TEST_F(Ring, ADeathSeenByNeighboursIsConcludedByAll) {
  ASSERT_TRUE(network_.run_until([&] { return network_.all_well(); }, seconds(60)));
  network_.crash(10);
  EXPECT_TRUE(network_.run_until([&] { return network_.all_see(10, MemberState::kDead); },
                                 network_.swim(0).suspicion_max() + seconds(4)));
  EXPECT_EQ(network_.events_of(SwimEvent::Kind::kDead), kNodes - 1);
}

TEST_F(Ring, HalvesThatHoldEachOtherForDeadHealOverOneLink) {
  ASSERT_TRUE(network_.run_until([&] { return network_.all_well(); }, seconds(60)));
  const auto half = [](std::size_t i) { return i < kNodes / 2; };
  network_.cut = [half](std::size_t from, std::size_t to) { return half(from) != half(to); };
  network_.run(seconds(120));
  EXPECT_EQ(network_.swim(5).count(MemberState::kDead), kNodes / 2);
  const auto figures = [this](TestNode& node) {
    schema::MemberRecord own = node.swim->own();
    own.step = static_cast<Step>(network_.now().since_start / milliseconds(500));
    node.swim->set_own(network_.now(), own);
  };
  network_.each_tick = figures;
  // Everybody keeps to its side, as partial views do; only one pair finds each other again. All
  // others must hear of what the other side holds against them from afar.
  const auto bridge = [](std::size_t a, std::size_t b) {
    return (a == 0 && b == 63) || (a == 63 && b == 0);
  };
  network_.cut = [half, bridge](std::size_t from, std::size_t to) {
    return half(from) != half(to) && !bridge(from, to);
  };
  for (std::size_t i = 0; i < kNodes; ++i) {
    std::vector<NodeId> ids;
    for (const std::size_t j : neighbours_of(i))
      if (half(i) == half(j) || bridge(i, j)) ids.push_back(network_.node(j).id);
    network_.swim(i).set_neighbours(ids);
  }
  network_.introduce(0, 63);
  EXPECT_TRUE(network_.run_until([&] { return network_.all_well(); }, minutes(2)));
}

TEST_F(Ring, WhoIsDroppedWithItsLinkIsLookedAtOnceMore) {
  ASSERT_TRUE(network_.run_until([&] { return network_.all_well(); }, seconds(60)));
  network_.crash(10);
  // All its neighbours lose the link at once and replace it before any probe failed.
  for (const std::size_t i : neighbours_of(10)) {
    network_.swim(i).on_link(network_.now(), network_.node(10).id, false);
    network_.swim(i).set_neighbours(ids_of_neighbours(i, 10));
  }
  EXPECT_TRUE(network_.run_until([&] { return network_.all_see(10, MemberState::kDead); },
                                 network_.swim(0).suspicion_max() + seconds(4)));
}

TEST_F(Ring, ALinkClosedAfterItsMemberWasDroppedAccusesNobody) {
  ASSERT_TRUE(network_.run_until([&] { return network_.all_well(); }, seconds(60)));
  const std::size_t suspicions = network_.events_of(SwimEvent::Kind::kSuspect);
  for (const std::size_t i : neighbours_of(10)) {
    if (i == 11) continue;  // one is left to it
    network_.swim(i).set_neighbours(ids_of_neighbours(i, 10));
    network_.swim(i).on_link(network_.now(), network_.node(10).id, false);
  }
  network_.run(seconds(20));
  EXPECT_EQ(network_.events_of(SwimEvent::Kind::kSuspect), suspicions);
}

}  // namespace
}  // namespace kith::gossip::testing
