// Peers that fall silent, vanish, return, restart: nothing waits for them, nothing is lost through
// them.
#include <gtest/gtest.h>

#include "tests/gossip/dialogue.h"

namespace kith::gossip {
namespace {

using Kind = ExchangeEvent::Kind;
using schema::AbortReason;

Fate drop_all(const Dialogue::Letter&, std::size_t) { return Fate::kDrop; }

ToySetup three_nodes() {
  ToySetup setup;
  setup.nodes = 3;
  return setup;
}

TEST(Suspension, FreesTheFragmentForAnotherPeerInTime) {
  Dialogue d(three_nodes());
  d[0].chooser.target = 1;
  d.set_rule([](const Dialogue::Letter& letter, std::size_t) {
    return letter.to == 1 ? Fate::kDrop : Fate::kPass;
  });
  d.step(0);
  d.advance(399ms);
  d[0].chooser.target = 2;
  d.step(0);
  d.deliver();
  EXPECT_EQ(d.machine(0).counters().completed_initiator, 0U) << "still with the silent one";
  d.advance(1ms);
  EXPECT_EQ(d.count_events(0, Kind::kSuspended), 1U);
  EXPECT_EQ(d.machine(0).counters().completed_initiator, 1U) << "the round's grant was not lost";
}

TEST(Suspension, AnAskComesBeforeIt) {
  Dialogue d;
  bool dropped = false;
  d.set_rule([&](const Dialogue::Letter& letter, std::size_t) {
    const bool drop = !std::exchange(dropped, dropped || letter.name() == "PROPOSE") &&
                      letter.name() == "PROPOSE";
    return drop ? Fate::kDrop : Fate::kPass;
  });
  d.step(0);
  d.advance(250ms);
  EXPECT_EQ(d.machine(0).counters().completed_initiator, 1U);
  EXPECT_EQ(d.machine(0).counters().retries, 1U);
}

TEST(Suspension, ALateResultIsAppliedThoughTheFragmentHasMovedOn) {
  Dialogue d(three_nodes());
  const std::int64_t mass = d.mass();
  d[0].chooser.target = 1;
  std::vector<Dialogue::Letter> held;
  d.set_rule([&](const Dialogue::Letter& letter, std::size_t) {
    if (letter.from != 1) return Fate::kPass;
    held.push_back(letter);
    return Fate::kDrop;
  });
  d.step(0);
  d.advance(450ms);
  EXPECT_EQ(d.machine(0).counters().suspended, 1U);
  EXPECT_EQ(d.machine(1).ledger_entries(), 1U);
  d[0].chooser.target = 2;
  d.step(0);
  d.deliver();
  EXPECT_EQ(d.machine(0).counters().completed_initiator, 1U);
  d.set_rule(nullptr);
  for (const Dialogue::Letter& letter : held) d.hand_over(letter);
  d.deliver();
  EXPECT_EQ(d.machine(0).counters().completed_initiator, 2U);
  EXPECT_TRUE(d.settle());
  EXPECT_EQ(d.mass(), mass);
  EXPECT_EQ(d.ledger_complaint(), "");
}

TEST(Suspension, AsksForTheSuspendedOneInsteadOfProposingAgain) {
  Dialogue d;
  d.set_rule(drop_all);
  d.step(0);
  d.advance(450ms);
  d.step(0);
  d.step(0);
  d.advance(100ms);
  EXPECT_EQ(d.machine(0).counters().proposed, 1U);
  EXPECT_EQ(d.machine(0).open_count(), 1U);
  d.set_rule(nullptr);
  EXPECT_TRUE(d.settle());
  d.step(0);
  d.deliver();
  EXPECT_EQ(d.machine(0).counters().completed_initiator, 1U);
}

TEST(Suspension, QuestionsBackOffToTenSeconds) {
  Dialogue d;
  std::size_t asks = 0;
  d.set_rule([&](const Dialogue::Letter& letter, std::size_t) {
    asks += letter.name() == "PROPOSE" ? 1 : 0;
    return Fate::kDrop;
  });
  d.step(0);
  d.advance(100s);
  EXPECT_GT(asks, 10U);
  const std::size_t before = asks;
  d.advance(100s);
  EXPECT_EQ(asks - before, 10U);
}

TEST(Suspension, ReleasesTheSnapshot) {
  Dialogue d;
  d.step(0);
  std::weak_ptr<const void> snapshot = d.wire().back().payload.owner();
  d.wire().clear();
  d.set_rule(drop_all);
  EXPECT_FALSE(snapshot.expired());
  d.advance(450ms);
  EXPECT_TRUE(snapshot.expired());
}

TEST(Suspension, WhatNeverLeftInFullIsWithdrawnAndForgotten) {
  ToySetup setup;
  setup.settings.window_chunks = 1;
  Dialogue d(setup);
  d.set_rule([](const Dialogue::Letter& letter, std::size_t) {
    return letter.name() == "CREDIT" ? Fate::kDrop : Fate::kPass;
  });
  d.step(0);
  d.deliver();
  EXPECT_EQ(d.machine(1).inbound_bytes(), 24U);
  d.advance(450ms);
  EXPECT_EQ(d.machine(0).open_count(), 0U);
  EXPECT_EQ(d.machine(1).inbound_bytes(), 0U) << "the other side has dropped it too";
}

TEST(Suspension, AResponderThatIsAskedWithoutTheMissingChunksAborts) {
  Dialogue d;
  const std::int64_t mass = d.mass();
  bool cut = true;
  d.set_rule([&](const Dialogue::Letter& letter, std::size_t) {
    const auto* chunk = std::get_if<schema::Chunk>(&letter.message);
    return cut && (letter.from == 1 || (chunk != nullptr && chunk->index == 1)) ? Fate::kDrop
                                                                                : Fate::kPass;
  });
  d.step(0);
  d.advance(450ms);
  ASSERT_EQ(d.machine(0).counters().suspended, 1U);
  ASSERT_EQ(d.machine(1).inbound_bytes(), 24U);
  cut = false;
  d.advance(1s);
  EXPECT_EQ(d.machine(0).open_count(), 0U);
  EXPECT_EQ(d.machine(1).inbound_bytes(), 0U);
  EXPECT_EQ(d[0].events.back().reason, AbortReason::kUnknown);
  EXPECT_EQ(d.mass(), mass);
}

TEST(Suspension, SilenceOfTheLinkCountsNotThatOfOneExchangeOnIt) {
  // Eight fragments through a window of one chunk, answers a little slow: the last waits far longer
  // than suspend_after.
  ToySetup setup;
  setup.fragments = 8;
  setup.settings.window_chunks = 1;
  Dialogue d(setup);
  d.step(0);
  for (int i = 0; i < 400 && !d.is_quiet(); ++i) {
    if (!d.wire().empty()) d.deliver_first();
    d.advance(20ms, false);
  }
  EXPECT_EQ(d.machine(0).counters().suspended, 0U);
  EXPECT_EQ(d.machine(0).counters().completed_initiator, 8U);
}

TEST(Suspension, AvoidsTheSilentPeerWhileAnotherCanBeDrawn) {
  class Alternating final : public PartnerChooser {
   public:
    std::optional<std::uint32_t> partner(std::uint32_t, std::uint32_t, std::uint64_t,
                                         Random& random) const override {
      return static_cast<std::uint32_t>(1 + random.below(2));
    }
    bool is_matching() const override { return false; }
  } chooser;
  ToyStore store(1, 3, 0);
  ExchangeSettings settings;
  settings.self = toy_id(1);
  settings.incarnation = 1;
  ExchangeMachine machine(settings, store, chooser, Random(4));
  machine.set_active(true);
  machine.set_peers({}, {{toy_id(2), 1, true}, {toy_id(3), 1, true}});
  TimePoint now;
  const auto propose = [&]() -> std::optional<schema::Propose> {
    for (Outgoing& out : machine.take_outgoing()) {
      if (auto* message = std::get_if<schema::Propose>(&out.message);
          message != nullptr && message->attempt == 0) {
        EXPECT_TRUE(out.to == toy_id(2) || out.to == toy_id(3));
        return *message;
      }
    }
    return std::nullopt;
  };
  machine.on_step(now, 1);
  machine.take_outgoing();
  now = now + 450ms;
  machine.tick(now);  // whoever it was is silent now
  machine.take_outgoing();
  const NodeId silent = machine.take_events().back().peer;
  for (Step step = 2; step < 40; ++step) {
    machine.on_step(now, step);
    const auto message = propose();
    ASSERT_TRUE(message) << "step " << step;
    const NodeId other = silent == toy_id(2) ? toy_id(3) : toy_id(2);
    machine.on_message(now, other, schema::Busy{message->e, 0}, {});
  }
}

TEST(Peers, OnlyConnectedOnesAreChosen) {
  Dialogue d;
  d.set_peers(0, {{d[1].id, 1, false}});
  d.step(0);
  EXPECT_TRUE(d.wire().empty());
  d.set_peers(0, {{d[1].id, 1, true}});
  d.step(0);
  EXPECT_FALSE(d.wire().empty());
}

TEST(Peers, AVanishedOneFreesItsFragmentsAtOnce) {
  Dialogue d;
  d.step(0);
  d.wire().clear();
  d.set_peers(0, {});
  EXPECT_EQ(d.machine(0).counters().suspended, 1U);
  EXPECT_EQ(d.machine(0).open_count(), 1U);
  EXPECT_TRUE(d.machine(0).drained());
  EXPECT_EQ(d.machine(0).next_deadline(), TimePoint::max()) << "nobody to ask";
}

TEST(Peers, AReturningOneIsAskedAtOnceAndReplays) {
  Dialogue d;
  const std::int64_t mass = d.mass();
  d.step(0);
  while (d.machine(1).ledger_entries() == 0) d.deliver_first();
  d.wire().clear();
  d.set_peers(0, {});
  d.set_peers(1, {});
  d.advance(60s);
  EXPECT_EQ(d.machine(1).ledger_entries(), 1U) << "kept for its return";
  d.introduce();
  d.deliver();
  EXPECT_TRUE(d.is_quiet());
  EXPECT_EQ(d.mass(), mass);
  EXPECT_EQ(d.ledger_complaint(), "");
}

TEST(Peers, AVanishedInitiatorsCollectionsAreDropped) {
  Dialogue d;
  d.step(0);
  d.deliver_first();
  EXPECT_EQ(d.machine(1).inbound_bytes(), 24U);
  d.set_peers(1, {});
  EXPECT_EQ(d.machine(1).inbound_bytes(), 0U);
}

TEST(Peers, ACollectionThatNeverGrowsIsDroppedInTime) {
  Dialogue d;
  d.step(0);
  d.deliver_first();
  d.wire().clear();
  d.set_rule(drop_all);
  d.advance(5s);
  EXPECT_EQ(d.machine(1).inbound_bytes(), 0U);
  d.set_rule(nullptr);
  EXPECT_TRUE(d.settle());
}

TEST(Peers, TheResponderRemindsUntilItIsAcknowledged) {
  Dialogue d;
  const std::int64_t mass = d.mass();
  d.set_rule([](const Dialogue::Letter& letter, std::size_t) {
    return letter.name() == "ACK" ? Fate::kDrop : Fate::kPass;
  });
  d.step(0);
  d.deliver();
  EXPECT_EQ(d.machine(0).open_count(), 0U);
  d.advance(3s);
  EXPECT_EQ(d.machine(1).ledger_entries(), 1U);
  d.set_rule(nullptr);
  d.advance(4s);
  EXPECT_EQ(d.machine(1).ledger_entries(), 0U);
  EXPECT_GT(d.machine(0).counters().duplicates_ignored, 0U);
  EXPECT_EQ(d.mass(), mass);
  EXPECT_EQ(d.ledger_complaint(), "");
}

TEST(Peers, ANewProposalFreesTheOlderEntryOfItsSlot) {
  Dialogue d;
  d.set_rule([](const Dialogue::Letter& letter, std::size_t) {
    return letter.name() == "ACK" ? Fate::kDrop : Fate::kPass;
  });
  for (int i = 0; i < 5; ++i) {
    d.step(0);
    d.deliver();
    EXPECT_EQ(d.machine(1).ledger_entries(), 1U);
  }
  EXPECT_EQ(d.machine(1).counters().completed_responder, 5U);
  EXPECT_EQ(d.machine(1).counters().forfeited, 0U);
}

TEST(Peers, ARestartedResponderWithoutMemoryAborts) {
  Dialogue d;
  bool cut = true;
  d.set_rule([&](const Dialogue::Letter& letter, std::size_t) {
    return cut && letter.from == 1 ? Fate::kDrop : Fate::kPass;
  });
  d.step(0);
  d.deliver();
  EXPECT_EQ(d.machine(1).ledger_entries(), 1U);
  d[1].incarnation = 2;
  d.boot(1);
  cut = false;
  d.introduce();
  d.deliver();
  EXPECT_EQ(d.machine(0).open_count(), 0U);
  EXPECT_EQ(d[0].events.back().reason, AbortReason::kUnknown);
  EXPECT_EQ(d[0].store->value(0), 0) << "what its partner has lost is not applied";
}

TEST(Peers, ARestartedInitiatorAcknowledgesWhatItNoLongerKnows) {
  Dialogue d;
  d.step(0);
  while (d.machine(1).ledger_entries() == 0) d.deliver_first();
  d.wire().clear();
  d[0].incarnation = 2;
  d.boot(0);
  d.introduce();
  EXPECT_TRUE(d.settle());
  EXPECT_EQ(d[0].store->value(0), 0);
  d.step(0);
  d.deliver();
  EXPECT_EQ(d.machine(0).counters().completed_initiator, 1U);
}

TEST(Peers, ARestartDropsWhatTheOlderLifeWasSending) {
  Dialogue d;
  d.step(0);
  const auto old_letters = d.wire();
  d.deliver_first();
  EXPECT_EQ(d.machine(1).inbound_bytes(), 24U);
  d[0].incarnation = 2;
  d.boot(0);
  d.introduce();
  EXPECT_EQ(d.machine(1).inbound_bytes(), 0U);
  for (const Dialogue::Letter& letter : old_letters) d.hand_over(letter);
  EXPECT_EQ(d.machine(1).counters().completed_responder, 0U) << "a ghost's proposal";
}

TEST(Peers, SupersededEntriesAreForfeitedFirstThoughTheirNodeLives) {
  ToySetup setup = three_nodes();
  setup.settings.ledger_bytes_max = 30;
  Dialogue d(setup);
  d[1].chooser.target = d[2].chooser.target = 0;
  d.step(1);
  while (d.machine(0).ledger_entries() == 0) d.deliver_first();
  d.wire().clear();
  d[1].incarnation = 2;
  d.boot(1);
  d.set_peers(0, d.others(0));
  d.wire().clear();
  d.step(2);
  d.deliver();
  EXPECT_EQ(d.machine(2).counters().completed_initiator, 1U);
  EXPECT_EQ(d.machine(0).counters().forfeited, 1U);
}

TEST(Peers, RefutationsAreNotRestarts) {
  ToySetup setup;
  Dialogue d(setup);
  const Incarnation boot = std::uint64_t{5} << 32;
  d[0].incarnation = boot;
  d.boot(0);
  d.set_peers(0, {{d[1].id, 1, true}});
  d.set_peers(1, {{d[0].id, boot, true}});
  d.step(0);
  d.deliver_first();
  d.set_peers(1, {{d[0].id, boot + 3, true}});
  EXPECT_EQ(d.machine(1).inbound_bytes(), 24U);
  d.deliver();
  EXPECT_EQ(d.machine(0).counters().completed_initiator, 1U);
}

TEST(Abandon, ClosesEverythingAndTheOtherSideCountsWhatIsForfeited) {
  ToySetup setup;
  setup.fragments = 2;
  Dialogue d(setup);
  d.step(0);
  d.step(1);
  while (d.machine(1).ledger_entries() == 0) d.deliver_first();
  d.machine(0).abandon_open(d.now());
  d.collect(0);
  EXPECT_EQ(d.machine(0).open_count(), 0U);
  EXPECT_EQ(d.machine(0).inbound_bytes(), 0U);
  EXPECT_TRUE(d.settle());
  EXPECT_EQ(d.machine(1).counters().forfeited, d.machine(1).counters().completed_responder);
  EXPECT_GE(d.machine(1).counters().forfeited, 1U);
  EXPECT_EQ(d.machine(0).counters().completed_initiator, 0U);
}

TEST(NotReady, StillReplaysAndAcknowledges) {
  Dialogue d;
  const std::int64_t mass = d.mass();
  bool cut = true;
  d.set_rule([&](const Dialogue::Letter& letter, std::size_t) {
    return cut && letter.from == 1 ? Fate::kDrop : Fate::kPass;
  });
  d.step(0);
  d.deliver();
  d.machine(0).set_active(false);
  d.machine(1).set_active(false);
  cut = false;
  EXPECT_TRUE(d.settle());
  EXPECT_EQ(d.machine(0).counters().completed_initiator, 1U);
  EXPECT_EQ(d.mass(), mass);
}

TEST(NotReady, DoesNotCommitWhatItWasCollecting) {
  Dialogue d;
  d.step(0);
  d.deliver_first();
  d.machine(1).set_active(false);
  d.deliver();
  EXPECT_EQ(d.machine(1).counters().completed_responder, 0U);
  EXPECT_EQ(d[0].events.back().reason, AbortReason::kNotReady);
}

}  // namespace
}  // namespace kith::gossip
