// Nobody's word alone removes anybody, and nobody's words grow anybody's memory: liars, forgers,
// floods, nonsense.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/membership/swim_network.h"

namespace kith::gossip::testing {
namespace {

using schema::Accusation;
using schema::MemberRecord;
using schema::MemberState;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const SwimSettings kLocal = SwimSettings::preset(milliseconds(200));

Accusation signed_accusation(SwimNetwork& network, std::size_t accuser, std::size_t subject) {
  Accusation out{network.node(subject).id,
                 network.swim(subject).own().incarnation,
                 network.node(accuser).id,
                 {}};
  network.node(accuser).authority.sign(out);
  return out;
}

schema::Gossip gossip_of(SwimNetwork& network, std::size_t from) {
  schema::Gossip out;
  out.news.records.push_back(network.swim(from).own());
  return out;
}

TEST(Liar, WhoAccusesEverybodyEachIntervalRemovesNobody) {
  SwimNetwork network(32, kLocal, 1);
  network.introduce_all();
  network.run(seconds(5));
  constexpr std::size_t kLiar = 7;
  for (int round = 0; round < 300; ++round) {
    schema::Gossip lie = gossip_of(network, kLiar);
    for (std::size_t i = 0; i < 32; ++i)
      if (i != kLiar) lie.news.accusations.push_back(signed_accusation(network, kLiar, i));
    for (std::size_t i = 0; i < 32; ++i)
      if (i != kLiar) network.send(kLiar, i, lie);
    network.run(kLocal.probe_interval);
  }
  EXPECT_EQ(network.events_of(SwimEvent::Kind::kDead), 0U);
  std::uint64_t dropped = 0;
  std::uint64_t suspicions = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    dropped += network.swim(i).counters().accusations_dropped;
    suspicions += network.swim(i).counters().suspicions;
    EXPECT_LE(network.swim(i).local_health(), 2U) << "a liar makes nobody slow";
  }
  EXPECT_GT(dropped, 31U * 300 * 10);
  // Bucket and rate of one accuser, at each of the others.
  EXPECT_LE(suspicions, 31U * (40 + 300 * 4));
  network.run(seconds(20));
  EXPECT_TRUE(network.all_well());
}

TEST(Liar, CannotConvictTheLastButOne) {
  // Three nodes: the liar accuses 0 to 1; 1 sees 0 answer and does not convict, though only two
  // could vote.
  SwimNetwork network(3, kLocal, 2);
  network.introduce_all();
  network.run(seconds(3));
  for (int round = 0; round < 200; ++round) {
    schema::Gossip lie = gossip_of(network, 2);
    lie.news.accusations.push_back(signed_accusation(network, 2, 0));
    network.send(2, 1, lie);
    network.run(kLocal.probe_interval);
  }
  EXPECT_EQ(network.events_of(SwimEvent::Kind::kDead), 0U);
  EXPECT_GT(network.swim(0).counters().refutations, 5U);
}

TEST(Forger, IsFoundOut) {
  SwimNetwork network(4, kLocal, 3);
  network.introduce_all();
  network.run(seconds(2));
  Swim& swim = network.swim(0);
  MemberRecord forged = network.swim(1).own();
  forged.version += 10;
  forged.control_address = "127.0.0.1:1";
  EXPECT_FALSE(swim.on_record(network.now(), forged, true));
  EXPECT_NE(swim.find(forged.id)->record().control_address, forged.control_address);
  Accusation accusation = signed_accusation(network, 2, 1);
  accusation.accuser = network.node(3).id;
  schema::Gossip lie = gossip_of(network, 2);
  lie.news.accusations.push_back(accusation);
  swim.on_message(network.now(), network.node(2).id, lie);
  EXPECT_EQ(network.view(0, 1), MemberState::kAlive);
  EXPECT_EQ(swim.counters().bad_signatures, 2U);
}

TEST(Accusation, OfAnUnknownMemberWaitsForItsRecord) {
  SwimNetwork network(4, kLocal, 4);
  network.introduce(0, 1);
  schema::Gossip news = gossip_of(network, 1);
  news.news.accusations.push_back(signed_accusation(network, 1, 3));
  network.swim(0).on_message(network.now(), network.node(1).id, news);
  EXPECT_EQ(network.swim(0).counters().suspicions, 0U);
  network.swim(0).on_record(network.now(), network.swim(3).own(), false);
  EXPECT_EQ(network.view(0, 3), MemberState::kSuspect);
  EXPECT_EQ(network.swim(0).accusations(network.node(3).id).size(), 1U);
}

TEST(Accusation, OfAnOlderIncarnationIsVoid) {
  SwimNetwork network(3, kLocal, 5);
  network.introduce_all();
  const Accusation old = signed_accusation(network, 1, 2);
  schema::Gossip news = gossip_of(network, 1);
  news.news.accusations.push_back(old);
  network.swim(2).on_message(network.now(), network.node(1).id, news);  // it refutes
  EXPECT_EQ(network.swim(2).counters().refutations, 1U);
  network.swim(0).on_record(network.now(), network.swim(2).own(), true);
  network.swim(0).on_message(network.now(), network.node(1).id, news);
  EXPECT_EQ(network.view(0, 2), MemberState::kAlive);
}

TEST(Accusation, IsToldToTheAccusedFirst) {
  SwimNetwork network(10, kLocal, 6);
  network.introduce_all();
  network.run(seconds(2));
  schema::Gossip news = gossip_of(network, 1);
  news.news.accusations.push_back(signed_accusation(network, 1, 2));
  Swim& swim = network.swim(0);
  swim.on_message(network.now(), network.node(1).id, news);
  swim.take_outgoing();
  swim.on_message(network.now(), network.node(2).id, schema::Ping{5, gossip_of(network, 2).news});
  const auto out = swim.take_outgoing();
  ASSERT_EQ(out.size(), 1U);
  const auto& pong = std::get<schema::Pong>(out[0].message);
  ASSERT_FALSE(pong.news.accusations.empty());
  EXPECT_EQ(pong.news.accusations.front().subject, network.node(2).id);
}

TEST(Refutation, IsSaidOnceHoweverLongALiarGoesOn) {
  SwimNetwork network(3, kLocal, 7);
  network.introduce_all();
  for (int i = 0; i < 60; ++i) {
    schema::Gossip news = gossip_of(network, 1);
    news.news.accusations.push_back(signed_accusation(network, 1, 0));
    network.swim(0).on_message(network.now(), network.node(1).id, news);
    network.run(seconds(1));
  }
  EXPECT_GT(network.swim(0).counters().refutations, 30U);
  EXPECT_EQ(network.events_of(SwimEvent::Kind::kRefuted), 1U);
}

TEST(Refutation, KeepsADistanceAndLosesNone) {
  SwimNetwork network(3, kLocal, 7);
  network.introduce_all();
  const auto accuse_zero = [&] {
    schema::Gossip news = gossip_of(network, 1);
    news.news.accusations.push_back(signed_accusation(network, 1, 0));
    network.swim(0).on_message(network.now(), network.node(1).id, news);
  };
  accuse_zero();
  accuse_zero();
  EXPECT_EQ(network.swim(0).counters().refutations, 1U);
  network.run(milliseconds(400));
  EXPECT_EQ(network.swim(0).counters().refutations, 2U);
}

TEST(Strangers, AreNotAnswered) {
  SwimNetwork network(2, kLocal, 8);
  Swim& swim = network.swim(0);
  swim.take_outgoing();
  swim.on_message(network.now(), test_id(77), schema::Ping{1, {}});
  swim.on_message(network.now(), test_id(77), schema::Digest{std::vector<std::uint64_t>(64, 9)});
  EXPECT_TRUE(swim.take_outgoing().empty());
}

TEST(OwnMessages, AreNotHandled) {
  SwimNetwork network(2, kLocal, 8);
  network.introduce_all();
  Swim& swim = network.swim(0);
  swim.take_outgoing();
  swim.on_message(network.now(), network.node(0).id, schema::Ping{1, {}});
  EXPECT_TRUE(swim.take_outgoing().empty());
}

TEST(Strangers, ShareOneAllowanceOfAccusations) {
  SwimNetwork network(3, kLocal, 8);
  network.introduce_all();
  Swim& swim = network.swim(0);
  const std::uint64_t before = network.node(0).authority.verified;
  for (std::size_t i = 0; i < 2000; ++i) {  // one member makes up an accuser for each
    Accusation accusation{
        network.node(2).id, network.swim(2).own().incarnation, test_id(5000 + i), {}};
    network.node(1).authority.sign(accusation);
    schema::Gossip lie = gossip_of(network, 1);
    lie.news.accusations.push_back(accusation);
    swim.on_message(network.now(), network.node(1).id, lie);
  }
  EXPECT_EQ(network.view(0, 2), MemberState::kAlive);
  EXPECT_LE(network.node(0).authority.verified - before, 41U);
}

TEST(PingRequests, OfOneMemberAreLimited) {
  SwimNetwork network(4, kLocal, 9);
  network.introduce_all();
  Swim& swim = network.swim(0);
  swim.take_outgoing();
  for (std::uint64_t i = 0; i < 1000; ++i) {
    swim.on_message(network.now(), network.node(1).id,
                    schema::PingRequest{i, network.node(2).id, gossip_of(network, 1).news});
  }
  EXPECT_LE(swim.take_outgoing().size(), 16U);
}

TEST(Digests, OfOneMemberAreAnsweredOnlySoOften) {
  SwimNetwork network(4, kLocal, 10);
  network.introduce_all();
  Swim& swim = network.swim(0);
  swim.take_outgoing();
  for (int i = 0; i < 1000; ++i)
    swim.on_message(network.now(), network.node(1).id,
                    schema::Digest{std::vector<std::uint64_t>(64, 9)});
  EXPECT_LE(swim.take_outgoing().size(), 8U);
}

TEST(Nonsense, ChangesNothing) {
  SwimNetwork network(4, kLocal, 11);
  network.introduce_all();
  Swim& swim = network.swim(0);
  const NodeId from = network.node(1).id;
  schema::Sync sync;
  sync.buckets = {0, 63, 64, 4000000000U};
  sync.entries.resize(100);
  sync.wanted.assign(100, test_id(55));
  swim.on_message(network.now(), from, sync);
  swim.on_message(network.now(), from, schema::Digest{{1, 2, 3}});
  swim.on_message(network.now(), from, schema::Pong{999, network.node(2).id, {}});
  swim.on_message(network.now(), from, schema::Nack{999, network.node(2).id, {}});
  swim.on_message(network.now(), from, schema::PingRequest{1, test_id(56), {}});
  swim.on_message(network.now(), from, schema::Leave{network.swim(2).own()});  // not left
  swim.on_message(network.now(), from, schema::View{});
  EXPECT_EQ(swim.count(MemberState::kAlive), 3U);
  EXPECT_EQ(swim.members().size(), 3U);
  network.run(seconds(5));
  EXPECT_TRUE(network.all_well());
}

TEST(Nacks, OnlyCountOncePerHelperThatWasAsked) {
  SwimNetwork network(6, kLocal, 12);
  network.introduce_all();
  network.run(seconds(2));
  // Node 0 hears nobody but node 1, who sends NACKs for everything without being asked.
  network.cut = [](std::size_t, std::size_t to) { return to == 0; };
  network.each_tick = [&](TestNode& node) {
    if (&node != &network.node(0)) return;
    for (std::uint64_t sequence = 0; sequence < 200; ++sequence)
      for (std::size_t subject = 2; subject < 6; ++subject)
        node.swim->on_message(network.now(), network.node(1).id,
                              schema::Nack{sequence, network.node(subject).id, {}});
  };
  network.run(seconds(4));
  EXPECT_GE(network.swim(0).local_health(), 1U);
}

TEST(Members, AreBounded) {
  SwimSettings settings = kLocal;
  settings.members_max = 50;
  SwimNetwork network(2, settings, 13);
  network.introduce_all();
  ToyAuthority authority;
  for (std::size_t i = 100; i < 1100; ++i) {
    MemberRecord record;
    record.id = test_id(i);
    record.incarnation = 1ULL << 32;
    authority.sign(record);
    network.swim(0).on_record(network.now(), record, false);
  }
  EXPECT_EQ(network.swim(0).members().size(), 50U);
}

}  // namespace
}  // namespace kith::gossip::testing
