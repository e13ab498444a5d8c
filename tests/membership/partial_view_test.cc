// Partial views: everybody stays connected to everybody with a handful of links, whatever share of
// them fails.
#include "gossip/membership/partial_view.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/membership/partial_view_network.h"

namespace kith::gossip::testing {
namespace {

using schema::MemberRecord;
using schema::View;
using schema::ViewKind;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const PartialViewSettings kSettings = PartialViewSettings::preset(seconds(1));

// Nodes come one after the other, each through somebody who is there.
void join_all(ViewNetwork& network, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t i = 1; i < network.size(); ++i) {
    network.join(i, random.below(i));
    if (i % 20 == 0) network.run(milliseconds(500));
  }
  network.run(seconds(10));
  // A lost JOIN leaves islands; their owners reach a seed again and see that they did not know it.
  for (int turn = 0; turn < 5 && network.reached() < network.size(); ++turn) {
    const std::vector<bool> reached = network.reached_ones();
    for (std::size_t i = 0; i < network.size(); ++i)
      if (!reached[i]) network.join(i, 0);
    network.run(seconds(10));
  }
}

TEST(PartialView, ManyThatJoinAtOnceThroughOneAreConnected) {
  ViewNetwork network(300, kSettings, 1);
  for (std::size_t i = 1; i < 300; ++i) network.join(i, 0);
  network.run(seconds(60));
  EXPECT_EQ(network.reached(), 300U);
  for (std::size_t i = 0; i < 300; ++i) {
    EXPECT_GE(network.view(i).active().size(), 2U) << i;
    EXPECT_LE(network.view(i).active().size(), kSettings.active_max);
    EXPECT_LE(network.view(i).passive().size(), kSettings.passive_max);
  }
}

TEST(PartialView, ActiveViewsAreSymmetricAtRest) {
  ViewNetwork network(200, kSettings, 2);
  network.loss = 0.05;
  join_all(network, 2);
  network.run(minutes(2));
  network.loss = 0.0;
  network.run(minutes(3));
  EXPECT_EQ(network.reached(), 200U);
  EXPECT_EQ(network.one_sided(), 0U);
}

TEST(PartialView, IsConnectedAfterEightOfTenFailedAtOnce) {
  ViewNetwork network(1000, kSettings, 3);
  join_all(network, 3);
  network.run(minutes(3));
  ASSERT_EQ(network.reached(), 1000U);
  Random random(3);
  for (std::size_t failed = 0; failed < 800;) {
    const std::size_t index = random.below(1000);
    if (!network.up(index)) continue;
    network.crash(index);
    ++failed;
  }
  // Links to the crashed break at the next message at the latest; probes send one each second.
  for (std::size_t i = 0; i < 1000; ++i) {
    if (!network.up(i)) continue;
    for (const NodeId& id : network.view(i).active())
      if (!network.up(network.index_of(id))) network.view(i).on_link_lost(network.now(), id);
    network.take_outgoing(i);
  }
  network.run(seconds(20));
  EXPECT_EQ(network.running(), 200U);
  EXPECT_EQ(network.reached(), 200U);
  network.run(seconds(60));
  EXPECT_EQ(network.one_sided(), 0U);
}

TEST(PartialView, HoldsEverybodyAboutAsOften) {
  ViewNetwork network(500, kSettings, 4);
  join_all(network, 4);
  network.run(minutes(60));
  const std::vector<double> degrees = network.in_degrees();
  EXPECT_LT(chi_square_per_degree(degrees), 1.0) << "swapping evens out more than drawing would";
  EXPECT_GT(*std::ranges::min_element(degrees), 10.0) << "nobody is nearly forgotten";
}

TEST(PartialView, SamplesCloseToUniformlyOverTime) {
  ViewNetwork network(200, kSettings, 5);
  join_all(network, 5);
  network.run(minutes(30));
  Random random(5);
  std::vector<double> drawn(200, 0.0);
  for (int turn = 0; turn < 60; ++turn) {
    network.run(seconds(10));
    for (std::size_t i = 0; i < 200; ++i)
      ++drawn[network.index_of(*network.view(i).sample(random))];
  }
  EXPECT_LT(chi_square_per_degree(drawn), 2.0);
}

TEST(PartialView, OneWhoLostAllNeighboursGetsBackIn) {
  ViewNetwork network(60, kSettings, 6);
  join_all(network, 6);
  network.run(minutes(2));
  for (const NodeId& id : network.view(7).active()) {
    network.view(7).on_link_lost(network.now(), id);
    network.view(network.index_of(id)).on_link_lost(network.now(), test_id(7));
    network.take_outgoing(network.index_of(id));
  }
  network.take_outgoing(7);
  network.run(seconds(5));
  EXPECT_FALSE(network.view(7).isolated());
  network.run(seconds(40));
  EXPECT_EQ(network.reached(), 60U);
  EXPECT_EQ(network.one_sided(), 0U);
}

TEST(PartialView, TheCrashedDisappearFromAllViews) {
  ViewNetwork network(100, kSettings, 7);
  join_all(network, 7);
  network.run(minutes(2));
  network.crash(42);
  for (std::size_t i = 0; i < 100; ++i)  // Swim's word
    if (i != 42) network.view(i).on_gone(network.now(), test_id(42), 1ULL << 32);
  network.run(minutes(1));
  EXPECT_EQ(network.in_degrees().size(), 99U);
  for (std::size_t i = 0; i < 100; ++i)
    if (i != 42) {
      EXPECT_EQ(network.view(i).record_of(test_id(42)), nullptr);
    }
}

TEST(PartialView, SaysWhenItsNeighboursChanged) {
  ViewNetwork network(3, kSettings, 8);
  EXPECT_FALSE(network.view(0).take_changed());
  network.join(1, 0);
  network.run(seconds(1));
  EXPECT_TRUE(network.view(0).take_changed());
  EXPECT_FALSE(network.view(0).take_changed());
  network.view(0).on_link_lost(network.now(), test_id(1));
  EXPECT_TRUE(network.view(0).take_changed());
}

// ---- one view alone, with whatever is sent to it

class HostileViews : public ::testing::Test {
 protected:
  HostileViews() : view_(kSettings, record_of(0), authority_, Random(1), now_) {}
  MemberRecord record_of(std::size_t number) {
    MemberRecord out;
    out.id = test_id(number);
    out.incarnation = 1ULL << 32;
    authority_.sign(out);
    return out;
  }
  void fill() {
    for (std::size_t i = 1; i <= kSettings.active_max; ++i)
      view_.on_view(now_, test_id(i), View{ViewKind::kJoin, 0, 1, test_id(i), {record_of(i)}});
    view_.take_outgoing();
  }
  ToyAuthority authority_;
  TimePoint now_{std::chrono::hours(1)};
  PartialView view_;
};

TEST_F(HostileViews, ACrowdOfJoinersReplacesOnlyAFew) {
  fill();
  for (std::size_t i = 100; i < 1100; ++i)
    view_.on_view(now_, test_id(i), View{ViewKind::kJoin, 0, 1, test_id(i), {record_of(i)}});
  EXPECT_LE(view_.counters().evictions, 12U);
  EXPECT_LE(view_.active().size(), kSettings.active_max);
  EXPECT_LE(view_.passive().size(), kSettings.passive_max);
}

TEST_F(HostileViews, OneSenderIsHeardOnlySoOften) {
  fill();
  for (int i = 0; i < 10000; ++i)
    view_.on_view(now_, test_id(50), View{ViewKind::kJoin, 0, 1, test_id(50), {record_of(50)}});
  EXPECT_LE(view_.take_outgoing().size(), 60U * (kSettings.active_max + 1) + 2);
  EXPECT_GT(view_.counters().dropped, 9000U);
}

TEST_F(HostileViews, NobodyEntersByAnAnswerThatWasNotAskedFor) {
  view_.on_view(now_, test_id(5), View{ViewKind::kAccepted, 0, 1, test_id(5), {record_of(5)}});
  view_.on_view(now_, test_id(6),
                View{ViewKind::kShuffleReply, 0, 1, test_id(6), {record_of(6), record_of(7)}});
  view_.on_view(now_, test_id(8),
                View{ViewKind::kRefused, 0, 1, test_id(8), {record_of(8), record_of(9)}});
  EXPECT_TRUE(view_.active().empty());
  EXPECT_TRUE(view_.passive().empty());
}

TEST_F(HostileViews, ForgedForeignAndOwnRecordsAreNotEntered) {
  fill();
  MemberRecord forged = record_of(70);
  forged.control_address = "127.0.0.1:666";
  const auto shuffle = [&](std::vector<MemberRecord> records) {
    view_.on_view(now_, test_id(1), View{ViewKind::kShuffle, 1, 9, test_id(1), std::move(records)});
  };
  MemberRecord dead = record_of(71);
  dead.state = schema::MemberState::kDead;
  shuffle({record_of(1), forged, record_of(0), dead, record_of(72)});
  EXPECT_EQ(view_.record_of(test_id(70)), nullptr);
  EXPECT_EQ(view_.record_of(test_id(71)), nullptr);
  EXPECT_EQ(view_.record_of(test_id(0)), nullptr);
  EXPECT_NE(view_.record_of(test_id(72)), nullptr);
  EXPECT_EQ(view_.counters().bad_signatures, 1U);
  // A shuffle in another's name, or with too many records, is none.
  view_.on_view(now_, test_id(1), View{ViewKind::kShuffle, 1, 9, test_id(2), {record_of(80)}});
  std::vector<MemberRecord> many = {record_of(1)};
  for (std::size_t i = 0; i < 31; ++i) many.push_back(record_of(200 + i));
  shuffle(many);
  EXPECT_EQ(view_.record_of(test_id(80)), nullptr);
  EXPECT_EQ(view_.record_of(test_id(200)), nullptr);
}

TEST_F(HostileViews, WalksEndHoweverLongTheyClaimToBe) {
  fill();
  view_.on_view(now_, test_id(1),
                View{ViewKind::kForwardJoin, 4000000000U, 1, test_id(90), {record_of(90)}});
  auto out = view_.take_outgoing();
  ASSERT_EQ(out.size(), 1U);
  EXPECT_LT(std::get<View>(out[0].message).ttl, kSettings.join_walk);
  view_.on_view(now_, test_id(1),
                View{ViewKind::kShuffle, 4000000000U, 1, test_id(1), {record_of(1)}});
  out = view_.take_outgoing();
  ASSERT_EQ(out.size(), 1U);
  EXPECT_LT(std::get<View>(out[0].message).ttl, kSettings.join_walk);
}

TEST_F(HostileViews, TheGoneDoNotComeBackByOthersWordOfTheSameLife) {
  fill();
  view_.on_gone(now_, test_id(1), 1ULL << 32);
  view_.take_outgoing();
  view_.on_view(now_, test_id(2),
                View{ViewKind::kShuffle, 1, 9, test_id(2), {record_of(2), record_of(1)}});
  EXPECT_EQ(view_.record_of(test_id(1)), nullptr);
  MemberRecord back = record_of(1);
  back.incarnation = 2ULL << 32;
  authority_.sign(back);
  view_.on_view(now_, test_id(2), View{ViewKind::kShuffle, 1, 9, test_id(2), {record_of(2), back}});
  EXPECT_NE(view_.record_of(test_id(1)), nullptr);
}

TEST_F(HostileViews, TheGoneComeBackByTheirOwnWord) {
  fill();
  view_.on_gone(now_, test_id(1), 1ULL << 32);
  view_.on_view(now_, test_id(1), View{ViewKind::kJoin, 0, 1, test_id(1), {record_of(1)}});
  EXPECT_NE(view_.record_of(test_id(1)), nullptr);
  // And by ours, when a link to one of an island apart was made: Swim still holds it for dead.
  view_.on_gone(now_, test_id(2), 1ULL << 32);
  view_.take_outgoing();
  MemberRecord dead = record_of(2);
  dead.state = schema::MemberState::kDead;
  view_.join(now_, dead);
  const auto out = view_.take_outgoing();
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(std::get<View>(out[0].message).kind, ViewKind::kJoin);
}

TEST_F(HostileViews, OnlyTheReplyToItsLastShuffleIsTaken) {
  fill();
  std::uint64_t sequence = 0;
  while (sequence == 0) {
    now_ = std::max(now_ + milliseconds(1), view_.next_deadline());
    view_.tick(now_);
    for (const SwimOutgoing& out : view_.take_outgoing()) {
      const View& view = std::get<View>(out.message);
      if (view.kind == ViewKind::kShuffle) sequence = view.sequence;
    }
  }
  const auto reply = [&](std::uint64_t to, std::size_t number) {
    view_.on_view(now_, test_id(9),
                  View{ViewKind::kShuffleReply, 0, to, test_id(9), {record_of(number)}});
    return view_.record_of(test_id(number)) != nullptr;
  };
  EXPECT_FALSE(reply(sequence + 1, 301));
  EXPECT_TRUE(reply(sequence, 302));
  EXPECT_FALSE(reply(sequence, 303)) << "once";
}

TEST(PartialView, HalvesThatForgotEachOtherGrowTogetherAgain) {
  ViewNetwork network(200, kSettings, 9);
  join_all(network, 9);
  network.run(minutes(1));
  for (std::size_t i = 0; i < 200; ++i)
    for (std::size_t j = 0; j < 200; ++j)
      if (i % 2 != j % 2) network.view(i).on_gone(network.now(), test_id(j), 1ULL << 32);
  for (std::size_t i = 0; i < 200; ++i) network.view(i).take_outgoing();  // lost in the cut
  network.run(minutes(3));
  ASSERT_EQ(network.reached(), 100U);
  // A few reach a seed of the other half, whom they hold for dead. Then Swim hears the others'
  // refutations.
  for (std::size_t i = 0; i < 3; ++i) network.join(2 * i, 2 * i + 1);
  network.run(seconds(5));
  EXPECT_EQ(network.reached(), 200U);
  for (std::size_t j = 0; j < 200; ++j) network.refute(j);
  for (std::size_t i = 0; i < 200; ++i)
    for (std::size_t j = 0; j < 200; ++j)
      if (i % 2 != j % 2) network.view(i).offer(network.record(j));
  network.run(minutes(30));
  EXPECT_EQ(network.reached(), 200U);
  EXPECT_EQ(network.one_sided(), 0U);
  EXPECT_LT(chi_square_per_degree(network.in_degrees()), 2.0);
  std::size_t across = 0;
  for (std::size_t i = 0; i < 200; ++i)
    for (const NodeId& id : network.view(i).passive())
      across += network.index_of(id) % 2 != i % 2 ? 1 : 0;
  EXPECT_GT(across, 200U * 48 / 4) << "each knows of both halves";
}

TEST_F(HostileViews, AnUrgentRequestIsNotRefusedAnOrdinaryOneIs) {
  fill();
  view_.on_view(now_, test_id(50), View{ViewKind::kNeighbour, 0, 4, test_id(50), {record_of(50)}});
  auto out = view_.take_outgoing();
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(std::get<View>(out[0].message).kind, ViewKind::kRefused);
  view_.on_view(now_, test_id(51),
                View{ViewKind::kNeighbourUrgent, 0, 4, test_id(51), {record_of(51)}});
  out = view_.take_outgoing();
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(std::get<View>(out[0].message).kind, ViewKind::kDisconnect);
  EXPECT_EQ(std::get<View>(out[1].message).kind, ViewKind::kAccepted);
  EXPECT_EQ(view_.active().size(), kSettings.active_max);
}

}  // namespace
}  // namespace kith::gossip::testing
