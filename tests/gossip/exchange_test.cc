// One exchange between two machines: the plain course, and every single or double accident on its
// way.
#include <gtest/gtest.h>

#include "tests/gossip/dialogue.h"

namespace kith::gossip {
namespace {

using Kind = ExchangeEvent::Kind;

TEST(Exchange, AveragesTwoReplicasInOneRound) {
  Dialogue d;
  d.step(0);
  d.deliver();
  EXPECT_EQ(d[0].store->value(0), 1 << 19);
  EXPECT_EQ(d[1].store->value(0), 1 << 19);
  EXPECT_TRUE(d.is_quiet());
  EXPECT_EQ(d.count_events(0, Kind::kCompletedInitiator), 1U);
  EXPECT_EQ(d.count_events(1, Kind::kCompletedResponder), 1U);
  EXPECT_EQ(d.machine(0).counters().completed_initiator, 1U);
}

TEST(Exchange, CostsTheMessagesThatTheHeaderNames) {
  Dialogue d;
  std::map<std::string, int> count;
  d.set_rule([&](const Dialogue::Letter& letter, std::size_t) {
    ++count[letter.name()];
    return Fate::kPass;
  });
  d.step(0);
  d.deliver();
  const std::map<std::string, int> expected{
      {"PROPOSE", 1}, {"CHUNK", 6}, {"CREDIT", 4}, {"RESULT", 1}, {"ACK", 1}};
  EXPECT_EQ(count, expected);
}

TEST(Exchange, ElasticWeightLeavesTheRestOfTheGap) {
  ToySetup setup;
  setup.settings.weight = 0.25;
  Dialogue d(setup);
  d.step(0);
  d.deliver();
  EXPECT_EQ(d[1].store->value(0) - d[0].store->value(0), 1 << 19);
}

TEST(Exchange, EventTellsDistanceStalenessAndDuration) {
  Dialogue d;
  d.step(0);
  d.machine(0).set_depth(0, 4);
  d.advance(5ms, false);
  d.deliver();
  const ExchangeEvent& event = d[0].events.back();
  ASSERT_EQ(event.kind, Kind::kCompletedInitiator);
  EXPECT_EQ(event.distance_squared, 3.0 * (1 << 20) * (1 << 20));
  EXPECT_EQ(event.staleness_steps, 3U);
  EXPECT_EQ(event.duration, Duration(5ms));
  EXPECT_EQ(event.payload_bytes, 24U);
}

TEST(Exchange, ProposesOncePerFragmentAndStep) {
  ToySetup setup;
  setup.fragments = 4;
  Dialogue d(setup);
  d.step(0);
  EXPECT_EQ(d.machine(0).counters().proposed, 4U);
  d.step(0);
  EXPECT_EQ(d.machine(0).counters().proposed, 4U) << "all four are still open";
  d.deliver();
  EXPECT_EQ(d.machine(0).counters().proposed, 8U) << "the second step's grant, used when idle";
  EXPECT_EQ(d.machine(0).counters().completed_initiator, 8U);
}

TEST(Exchange, RoundsFollowEverySteps) {
  ToySetup setup;
  setup.settings.every_steps = 3;
  Dialogue d(setup);
  for (int i = 0; i < 9; ++i) {
    d.step(0);
    d.deliver();
  }
  EXPECT_EQ(d.machine(0).counters().proposed, 3U);
  d.machine(0).on_round(d.now());
  EXPECT_EQ(d.machine(0).counters().proposed, 4U) << "a round by time needs no steps";
}

TEST(Exchange, EveryStepsZeroNeverProposes) {
  ToySetup setup;
  setup.settings.every_steps = 0;
  Dialogue d(setup);
  for (int i = 0; i < 5; ++i) d.step(0);
  EXPECT_EQ(d.machine(0).counters().proposed, 0U);
}

TEST(Exchange, NodesThatDrawEachOtherStartAtDifferentFragments) {
  ToySetup setup;
  setup.fragments = 64;
  setup.settings.proposal_bytes_max = 24;  // one at a time
  Dialogue d(setup);
  std::set<FragmentIndex> first;
  for (int round = 0; round < 8; ++round) {
    for (const std::size_t i : {0U, 1U}) {
      d.step(i);
      first.insert(std::get<schema::Propose>(d.wire().front().message).fragment);
      d.wire().clear();
      d.machine(i).abandon_open(d.now());
      d.machine(i).take_outgoing();
    }
  }
  EXPECT_GT(first.size(), 8U);
}

TEST(Exchange, NeitherProposesNorAcceptsBeforeItIsActive) {
  Dialogue d;
  d.machine(0).set_active(false);
  d.step(0);
  EXPECT_TRUE(d.wire().empty());
  d.step(1);
  d.deliver();
  ASSERT_EQ(d.count_events(1, Kind::kRefused), 1U);
  EXPECT_EQ(d[1].events.back().reason, schema::AbortReason::kNotReady);
}

TEST(Exchange, DrainingNodeAnswersButInitiatesNothing) {
  Dialogue d;
  d.machine(0).set_draining(true);
  d.step(0);
  EXPECT_TRUE(d.wire().empty());
  d.step(1);
  d.deliver();
  EXPECT_EQ(d.machine(1).counters().completed_initiator, 1U);
  EXPECT_TRUE(d.machine(0).drained());
}

TEST(Exchange, ADrainDoesNotWaitForAnInitiatorThatIsGone) {
  Dialogue d;
  d.set_rule([](const Dialogue::Letter& letter, std::size_t) {
    return std::holds_alternative<schema::Ack>(letter.message) ? Fate::kDrop : Fate::kPass;
  });
  d.step(0);
  d.deliver();
  ASSERT_EQ(d.machine(1).ledger_entries(), 1U);
  EXPECT_FALSE(d.machine(1).drained());
  EXPECT_FALSE(d.machine(1).drained([](const NodeId&) { return true; }));
  EXPECT_TRUE(d.machine(1).drained([](const NodeId&) { return false; }));
  EXPECT_EQ(d.machine(1).ledger_entries(), 1U) << "a checkpoint still holds it";
}

// ---- accidents ----

std::size_t letters_of_one_exchange(std::size_t window) {
  ToySetup setup;
  setup.settings.window_chunks = static_cast<unsigned>(window);
  Dialogue d(setup);
  d.set_rule([](const Dialogue::Letter&, std::size_t) { return Fate::kPass; });
  d.step(0);
  d.deliver();
  return d.letters_seen();
}

void expect_exact(Dialogue& d, std::int64_t mass, const std::string& what) {
  EXPECT_TRUE(d.settle()) << what << ": something stays open";
  EXPECT_EQ(d.mass(), mass) << what;
  EXPECT_EQ(d.ledger_complaint(), "") << what;
}

class Accidents : public testing::TestWithParam<std::tuple<Fate, Fate, unsigned>> {};

// Every pair of letters of an exchange, the answers to the first accident included, meets every
// pair of fates.
TEST_P(Accidents, NeverLoseOrCreateMass) {
  const auto [first_fate, second_fate, window] = GetParam();
  const std::size_t letters = letters_of_one_exchange(window) + 6;
  for (std::size_t first = 0; first < letters; ++first) {
    for (std::size_t second = first; second < letters; ++second) {
      ToySetup setup;
      setup.settings.window_chunks = window;
      Dialogue d(setup);
      const std::int64_t mass = d.mass();
      d.set_rule([&, f1 = first_fate, f2 = second_fate](const Dialogue::Letter&, std::size_t n) {
        return n == first ? f1 : n == second ? f2 : Fate::kPass;
      });
      d.step(0);
      expect_exact(d, mass, std::to_string(first) + " and " + std::to_string(second));
      d.step(0);
      d.deliver();
      expect_exact(d, mass, "the next one after " + std::to_string(first));
      EXPECT_GE(d.machine(0).counters().completed_initiator, 1U)
          << "accidents at " << first << " and " << second;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs, Accidents,
                         testing::Combine(testing::Values(Fate::kDrop, Fate::kTwice, Fate::kLate),
                                          testing::Values(Fate::kDrop, Fate::kTwice, Fate::kLate),
                                          testing::Values(1U, 2U, 8U)));

TEST(Exchange, LostChunksAreResentAndNoOthers) {
  Dialogue d;
  std::map<std::uint32_t, int> sent;
  d.set_rule([&](const Dialogue::Letter& letter, std::size_t) {
    const auto* chunk = std::get_if<schema::Chunk>(&letter.message);
    if (chunk == nullptr || chunk->stream != schema::Stream::kProposal) return Fate::kPass;
    return ++sent[chunk->index] == 1 && chunk->index == 1 ? Fate::kDrop : Fate::kPass;
  });
  d.step(0);
  d.advance(300ms);
  const std::map<std::uint32_t, int> expected{{0, 1}, {1, 2}, {2, 1}};
  EXPECT_EQ(sent, expected);
  EXPECT_EQ(d.machine(0).counters().completed_initiator, 1U);
  EXPECT_EQ(d.machine(0).counters().suspended, 0U) << "repaired before the fragment is given up";
}

TEST(Exchange, ManyExchangesUnderHeavyLossStayExact) {
  ToySetup setup;
  setup.nodes = 3;
  setup.fragments = 3;
  setup.settings.window_chunks = 2;
  Dialogue d(setup);
  const std::int64_t mass = d.mass();
  Random random(11);
  d.set_rule([&](const Dialogue::Letter&, std::size_t) {
    const double u = random.uniform();
    return u < 0.2 ? Fate::kDrop : u < 0.3 ? Fate::kTwice : u < 0.4 ? Fate::kLate : Fate::kPass;
  });
  for (int round = 0; round < 3000; ++round) {
    for (std::size_t i = 0; i < 3; ++i) {
      d[i].chooser.target = static_cast<std::uint32_t>(random.below(3));
      d.step(i);
    }
    d.advance(50ms);
  }
  d.set_rule(nullptr);
  expect_exact(d, mass, "three nodes");
  EXPECT_GT(d.machine(0).counters().completed_initiator, 100U);
  EXPECT_GT(d.machine(0).counters().suspended, 10U);
}

}  // namespace
}  // namespace kith::gossip
