// Who comes, goes, returns or was cut off: every view heals by itself.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/membership/swim_network.h"

namespace kith::gossip::testing {
namespace {

using schema::MemberState;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const SwimSettings kLocal = SwimSettings::preset(milliseconds(200));

TEST(Join, ThroughOneMemberReachesEverybody) {
  SwimNetwork network(16, kLocal, 1);
  for (std::size_t i = 1; i < 16; ++i) network.introduce(i, i / 2);
  EXPECT_TRUE(network.run_until([&] { return network.all_well(); }, seconds(10)));
  EXPECT_EQ(network.events_of(SwimEvent::Kind::kJoined), 16U * 15U);
}

TEST(Leave, IsLeftEverywhereAndNeverFailed) {
  SwimNetwork network(10, kLocal, 1);
  network.introduce_all();
  network.run(seconds(3));
  const schema::MemberRecord last_word = network.swim(4).own();
  network.swim(4).leave(network.now());
  network.run(seconds(1));
  EXPECT_TRUE(network.all_see(4, MemberState::kLeft));
  network.crash(4);
  network.run(seconds(20));
  EXPECT_TRUE(network.all_see(4, MemberState::kLeft));
  EXPECT_EQ(network.events_of(SwimEvent::Kind::kDead), 0U);
  // An older record, relayed or shown, brings nobody back.
  network.swim(0).on_record(network.now(), last_word, true);
  network.swim(1).on_record(network.now(), last_word, false);
  schema::MemberRecord later = last_word;
  later.version += 1000;
  network.node(4).authority.sign(later);
  network.swim(2).on_record(network.now(), later, true);
  later.incarnation += 5;  // of the same life
  network.node(4).authority.sign(later);
  network.swim(3).on_record(network.now(), later, true);
  EXPECT_TRUE(network.all_see(4, MemberState::kLeft));
}

TEST(Leave, IsRelayedToWhoMissedIt) {
  SwimNetwork network(10, kLocal, 2);
  network.introduce_all();
  network.run(seconds(3));
  network.cut = [](std::size_t from, std::size_t to) { return from == 4 && to != 5; };
  network.swim(4).leave(network.now());
  network.run(milliseconds(300));
  network.crash(4);
  EXPECT_TRUE(
      network.run_until([&] { return network.all_see(4, MemberState::kLeft); }, seconds(4)));
  EXPECT_EQ(network.events_of(SwimEvent::Kind::kDead), 0U);
}

TEST(Restart, ReturnsAtANewAddressWithAHigherBoot) {
  SwimNetwork network(8, kLocal, 3);
  network.introduce_all();
  network.run(seconds(3));
  network.crash(2);
  network.run(seconds(15));
  ASSERT_TRUE(network.all_see(2, MemberState::kDead));
  network.node(2).boot = 2;
  network.start(2, 77, "127.0.0.1:9999");
  network.introduce(2, 5);
  EXPECT_TRUE(network.run_until([&] { return network.all_well(); }, seconds(5)));
  for (std::size_t i = 0; i < 8; ++i)
    if (i != 2) {
      EXPECT_EQ(network.swim(i).find(network.node(2).id)->record().control_address,
                "127.0.0.1:9999");
    }
  network.run(seconds(20));
  EXPECT_TRUE(network.all_well());
}

TEST(Restart, BeforeItsDeathWasNoticedIsNoFailure) {
  SwimNetwork network(8, kLocal, 3);
  network.introduce_all();
  network.run(seconds(3));
  network.crash(2);
  network.run(seconds(1));
  network.node(2).boot = 2;
  network.start(2, 77, "127.0.0.1:9999");
  network.introduce(2, 5);
  network.run(seconds(20));
  EXPECT_TRUE(network.all_well());
  EXPECT_EQ(network.events_of(SwimEvent::Kind::kDead), 0U);
}

TEST(Leave, IsBelievedOfOneWhoSaidItWasLeavingAndFellSilent) {
  SwimNetwork network(4, kLocal, 3);
  network.introduce_all();
  schema::MemberRecord own = network.swim(2).own();
  own.run_state = schema::RunState::kLeaving;
  network.swim(2).set_own(network.now(), own);
  network.run(seconds(2));
  network.crash(2);
  EXPECT_TRUE(
      network.run_until([&] { return network.all_see(2, MemberState::kLeft); }, seconds(10)));
  EXPECT_EQ(network.events_of(SwimEvent::Kind::kDead), 0U);
}

TEST(CopiedIdentity, TheHigherBootNonceWinsOnBothSidesWithoutFlapping) {
  SwimNetwork network(4, kLocal, 4);
  network.introduce_all();
  network.run(seconds(3));
  // A second process with node 1's key and boot: the same id, another nonce.
  ToyAuthority authority;
  schema::MemberRecord copy = network.swim(1).own();
  copy.incarnation = network.node(1).boot << 32;
  copy.boot_nonce = 5000;  // above node 1's 1001
  copy.version = 0;
  Swim second(kLocal, copy, authority, Random(99), network.now());
  EXPECT_TRUE(second.on_record(network.now(), network.swim(1).own(), false));
  EXPECT_TRUE(second.take_events().empty()) << "it wins";
  EXPECT_GT(second.own().incarnation, network.swim(1).own().incarnation);
  network.swim(0).on_record(network.now(), second.own(), true);
  // Who is behind is told by the answer to its own PING.
  schema::News news;
  news.records.push_back(network.swim(1).own());
  network.swim(0).take_outgoing();
  network.swim(0).on_message(network.now(), network.node(1).id, schema::Ping{1, news});
  const auto answers = network.swim(0).take_outgoing();
  ASSERT_EQ(answers.size(), 1U);
  const auto& told = std::get<schema::Pong>(answers[0].message).news.records;
  EXPECT_TRUE(
      std::ranges::any_of(told, [](const auto& record) { return record.boot_nonce == 5000; }));
  network.run(seconds(2));
  EXPECT_EQ(std::ranges::count(network.node(1).events, SwimEvent::Kind::kUsurped, &SwimEvent::kind),
            1);
  // The loser's old word changes nothing any more, however high its refutations.
  schema::MemberRecord loud = network.swim(1).own();
  loud.incarnation += 100;
  loud.version += 100;
  authority.sign(loud);
  for (const std::size_t i : {0, 2, 3}) {
    network.swim(i).on_record(network.now(), loud, true);
    EXPECT_EQ(network.swim(i).find(network.node(1).id)->record().boot_nonce, 5000U);
  }
}

TEST(Digests, RepairWhatNewsMissed) {
  SwimSettings settings = kLocal;
  settings.gossip_fanout = 0;
  settings.retransmit_mult = 0;
  SwimNetwork network(64, settings, 5);
  for (std::size_t i = 1; i < 64; ++i) network.introduce(i, 0);
  EXPECT_TRUE(network.run_until([&] { return network.all_well(); }, seconds(60)));
  std::uint64_t repaired = 0;
  for (std::size_t i = 0; i < 64; ++i) repaired += network.swim(i).counters().records_repaired;
  EXPECT_GT(repaired, 400U);
}

TEST(Digests, AreSilentWhenAllAgree) {
  SwimNetwork network(16, kLocal, 5);
  network.introduce_all();
  network.run(seconds(10));
  std::size_t syncs = 0;
  network.cut = [](std::size_t, std::size_t) { return false; };
  for (std::size_t i = 0; i < 16; ++i) syncs += network.swim(i).counters().records_repaired;
  network.run(minutes(1));
  std::size_t later = 0;
  for (std::size_t i = 0; i < 16; ++i) later += network.swim(i).counters().records_repaired;
  EXPECT_EQ(syncs, later);
}

void cut_halves(SwimNetwork& network) {
  network.cut = [half = network.size() / 2](std::size_t from, std::size_t to) {
    return (from < half) != (to < half);
  };
}

TEST(Partition, OfHalvesHealsByItself) {
  SwimNetwork network(10, kLocal, 6);
  network.introduce_all();
  network.run(seconds(3));
  cut_halves(network);
  network.run(seconds(60));
  EXPECT_EQ(network.swim(0).count(MemberState::kDead), 5U);
  EXPECT_EQ(network.swim(0).count(MemberState::kAlive), 4U);
  network.cut = nullptr;
  EXPECT_TRUE(network.run_until([&] { return network.all_well(); }, seconds(70)));
}

TEST(Partition, BeyondForgettingHealsWhenLinksComeBack) {
  SwimSettings settings = kLocal;
  settings.forget_after = seconds(60);
  SwimNetwork network(10, settings, 7);
  network.introduce_all();
  network.run(seconds(3));
  cut_halves(network);
  network.run(seconds(120));
  EXPECT_EQ(network.swim(0).members().size(), 4U);
  EXPECT_EQ(network.events_of(SwimEvent::Kind::kForgotten), 50U);
  network.cut = nullptr;
  network.introduce(0, 9);  // one seed answers again
  EXPECT_TRUE(network.run_until([&] { return network.all_well(); }, seconds(20)));
}

TEST(Partition, WithOneNodeThatHearsBothHalvesKillsNobody) {
  for (const std::size_t nodes : {5U, 9U, 15U}) {
    SwimNetwork network(nodes, kLocal, 8);
    network.introduce_all();
    for (std::size_t i = 0; i < nodes; ++i)
      for (std::size_t j = 0; j < nodes; ++j)
        if (i != j) network.swim(i).on_link(network.now(), network.node(j).id, true);
    network.run(seconds(5));
    const auto apart = [half = nodes / 2](std::size_t a,
                                          std::size_t b) {  // `half` itself hears all
      return (a < half && b > half) || (a > half && b < half);
    };
    network.cut = apart;
    for (std::size_t i = 0; i < nodes; ++i)
      for (std::size_t j = 0; j < nodes; ++j)
        if (apart(i, j)) network.swim(i).on_link(network.now(), network.node(j).id, false);
    network.run(minutes(2));
    EXPECT_EQ(network.events_of(SwimEvent::Kind::kDead), 0U) << nodes << " nodes";
  }
}

TEST(Partition, SeenFromOneNodeIsIsolation) {
  SwimNetwork network(6, kLocal, 8);
  network.introduce_all();
  network.run(seconds(3));
  network.cut = [](std::size_t from, std::size_t to) { return from == 2 || to == 2; };
  EXPECT_TRUE(network.run_until([&] { return network.swim(2).isolated(); }, seconds(20)));
  for (const std::size_t i : {0, 1, 3, 4, 5}) EXPECT_FALSE(network.swim(i).isolated());
  network.run(seconds(60));
  network.cut = nullptr;
  EXPECT_TRUE(network.run_until([&] { return network.all_well(); }, seconds(70)));
  EXPECT_FALSE(network.swim(2).isolated());
}

TEST(Forgotten, HearsayOfADeathDoesNotBringItBack) {
  SwimSettings settings = kLocal;
  settings.forget_after = seconds(30);
  SwimNetwork network(4, settings, 9);
  network.introduce_all();
  network.run(seconds(3));
  schema::MemberRecord hearsay = network.swim(3).own();
  network.crash(3);
  network.run(seconds(60));
  EXPECT_EQ(network.swim(0).members().size(), 2U);
  hearsay.state = MemberState::kDead;
  network.swim(0).on_record(network.now(), hearsay, false);
  EXPECT_EQ(network.swim(0).find(hearsay.id), nullptr);
}

TEST(Hearsay, OfADeathIsClearedByTheOwner) {
  SwimNetwork network(3, kLocal, 10);
  network.introduce(0, 1);
  schema::MemberRecord hearsay = network.swim(2).own();
  hearsay.state = MemberState::kDead;
  network.swim(0).on_record(network.now(), hearsay, false);
  EXPECT_EQ(network.view(0, 2), MemberState::kDead);
  network.swim(0).on_record(network.now(), network.swim(2).own(), true);
  EXPECT_EQ(network.view(0, 2), MemberState::kAlive);
}

TEST(Links, AMemberWithoutALinkIsProbedThroughHelpers) {
  SwimNetwork network(5, kLocal, 11);
  network.introduce_all();
  for (std::size_t i = 1; i < 4; ++i)
    network.swim(0).on_link(network.now(), network.node(i).id, true);
  network.cut = [](std::size_t from, std::size_t to) { return from == 0 && to == 4; };
  network.run(seconds(30));
  EXPECT_TRUE(network.all_well());
  EXPECT_GT(network.swim(0).counters().indirect_saved, 10U);
  network.crash(4);
  EXPECT_TRUE(
      network.run_until([&] { return network.all_see(4, MemberState::kDead); }, seconds(12)));
}

TEST(Links, ALinkToADeadMemberBringsItBackAtOnce) {
  SwimSettings settings = kLocal;
  settings.dead_retry = hours(1);
  SwimNetwork network(2, settings, 12);
  network.introduce_all();
  network.cut = [](std::size_t, std::size_t) { return true; };
  network.run(seconds(20));
  ASSERT_EQ(network.view(0, 1), MemberState::kDead);
  network.cut = nullptr;
  network.swim(0).on_link(network.now(), network.node(1).id, true);
  network.send(0, 1, network.swim(0).take_outgoing().back().message);
  network.run(milliseconds(50));
  EXPECT_EQ(network.view(0, 1), MemberState::kAlive);
}

}  // namespace
}  // namespace kith::gossip::testing
