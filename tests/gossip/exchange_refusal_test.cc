// Refusals: crossing proposals, budgets, checks before anything is kept, and messages that make no
// sense.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/gossip/dialogue.h"

namespace kith::gossip {
namespace {

using Kind = ExchangeEvent::Kind;
using schema::AbortReason;

// ---- crossing ----

TEST(Crossing, TheLowerHashGoesOnAndTheOtherIsRefused) {
  for (int round = 0; round < 20; ++round) {
    Dialogue d;
    for (int i = 0; i < round; ++i) {  // other ids each time
      d.step(0);
      d.deliver();
    }
    const std::int64_t mass = d.mass();
    d[0].store->set(0, 0);
    d[1].store->set(0, 1 << 20);
    d.step(0);
    d.step(1);
    const auto e0 = std::get<schema::Propose>(d.wire()[0].message).e;
    const auto e1 = std::get<schema::Propose>(d.wire()[4].message).e;
    const std::size_t winner = e0.settle_hash() < e1.settle_hash() ? 0 : 1;
    d.deliver();
    EXPECT_TRUE(d.is_quiet());
    EXPECT_EQ(d.mass(), mass);
    const std::uint64_t before = winner == 0 ? static_cast<std::uint64_t>(round) : 0;
    EXPECT_EQ(d.machine(winner).counters().completed_initiator, before + 1);
    EXPECT_EQ(d.machine(1 - winner).counters().refused_crossing, 1U);
    EXPECT_EQ(d[0].store->value(0), d[1].store->value(0)) << "averaged, not swapped";
  }
}

TEST(Crossing, WinsByHashNotById) {
  int wins = 0;
  for (int round = 0; round < 40; ++round) {
    Dialogue d;
    for (int i = 0; i < round; ++i) {
      for (const std::size_t node : {0U, 1U}) {
        d.step(node);
        d.deliver();
      }
    }
    d.step(0);
    d.step(1);
    d.deliver();
    wins += d.machine(1).counters().refused_crossing == 1 ? 1 : 0;
  }
  EXPECT_GT(wins, 8);
  EXPECT_LT(wins, 32);
}

TEST(Crossing, OtherFragmentsAndOtherPeersDoNotCross) {
  ToySetup setup;
  setup.nodes = 3;
  setup.fragments = 2;
  Dialogue d(setup);
  d[0].chooser.target = 1;
  d[1].chooser.target = 2;
  d[2].chooser.target = 0;  // a circle: everybody has one open and accepts another's
  for (std::size_t i = 0; i < 3; ++i) d.step(i);
  d.deliver();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(d.machine(i).counters().completed_initiator, 2U);
    EXPECT_EQ(d.machine(i).counters().completed_responder, 2U);
  }
}

TEST(Crossing, AnAnsweredProposalNoLongerCrosses) {
  ToySetup setup;
  setup.settings.window_chunks = 1;
  Dialogue d(setup);
  d.set_rule([](const Dialogue::Letter& letter, std::size_t) {
    return letter.name() == "ACK" ? Fate::kLate : Fate::kPass;
  });
  d.step(0);
  while (d.machine(1).ledger_entries() == 0) d.deliver_first();
  d.deliver_first();  // RESULT has arrived, its chunks have not
  d.step(1);
  d.deliver();
  EXPECT_EQ(d.machine(1).counters().refused_crossing, 0U);
  EXPECT_EQ(d.machine(1).counters().completed_initiator, 1U);
}

// ---- budgets ----

TEST(Budget, AFullInboundIsAnsweredBusyAtOnce) {
  ToySetup setup;
  setup.nodes = 3;
  setup.settings.inbound_bytes_max = 30;
  Dialogue d(setup);
  d[1].chooser.target = d[2].chooser.target = 0;
  d.step(1);
  d.deliver_first();  // PROPOSE of 1: 24 bytes are reserved
  EXPECT_EQ(d.machine(0).inbound_bytes(), 24U);
  d.wire().clear();
  d.step(2);
  d.deliver();
  EXPECT_EQ(d.machine(2).counters().refused_busy, 1U);
  EXPECT_TRUE(d[2].events.back().busy);
  EXPECT_EQ(d.machine(2).open_count(), 0U);
  EXPECT_EQ(d.machine(0).inbound_bytes(), 24U);
}

TEST(Budget, AFullLedgerIsAnsweredBusyUntilAnEntryIsAcknowledged) {
  ToySetup setup;
  setup.nodes = 3;
  setup.settings.ledger_bytes_max = 30;
  Dialogue d(setup);
  d[1].chooser.target = d[2].chooser.target = 0;
  d.set_rule([](const Dialogue::Letter& letter, std::size_t) {
    return letter.name() == "ACK" ? Fate::kDrop : Fate::kPass;
  });
  d.step(1);
  d.deliver();
  EXPECT_EQ(d.machine(0).ledger_bytes(), 24U);
  d.step(2);
  d.deliver();
  EXPECT_EQ(d.machine(2).counters().refused_busy, 1U);
  d.set_rule(nullptr);
  EXPECT_TRUE(d.settle()) << "the responder reminds, the initiator acknowledges";
  d.step(2);
  d.deliver();
  EXPECT_EQ(d.machine(2).counters().completed_initiator, 1U);
  EXPECT_EQ(d.machine(0).counters().forfeited, 0U) << "both initiators live";
}

TEST(Budget, EntriesOfDeadInitiatorsGiveWayAndAreCounted) {
  ToySetup setup;
  setup.nodes = 3;
  setup.settings.ledger_bytes_max = 30;
  Dialogue d(setup);
  d[1].chooser.target = d[2].chooser.target = 0;
  d.step(1);
  while (d.machine(0).ledger_entries() == 0) d.deliver_first();
  d[1].up = false;
  d.wire().clear();
  d.introduce();
  d.step(2);
  d.deliver();
  EXPECT_EQ(d.machine(2).counters().completed_initiator, 1U);
  EXPECT_EQ(d.machine(0).counters().forfeited, 1U);
  EXPECT_NEAR(d.machine(0).counters().forfeited_norm, std::sqrt(3.0) * (1 << 19), 1.0);
  EXPECT_EQ(d.count_events(0, Kind::kForfeited), 1U);
}

TEST(Budget, AStoreWithoutBuffersTakesBackThoseLentToTheDead) {
  ToySetup setup;
  setup.nodes = 3;
  Dialogue d(setup);
  d[1].chooser.target = d[2].chooser.target = 0;
  d.step(1);
  while (d.machine(0).ledger_entries() == 0) d.deliver_first();
  d[1].up = false;
  d.wire().clear();
  d.introduce();
  d[0].store->commits_busy = 1;
  d.step(2);
  d.deliver();
  EXPECT_EQ(d.machine(2).counters().completed_initiator, 1U);
  EXPECT_EQ(d.machine(0).counters().forfeited, 1U);
}

TEST(Budget, ACommitWithoutBufferIsBusyAndNothingHasChanged) {
  Dialogue d;
  const std::int64_t mass = d.mass();
  d[1].store->commits_busy = 1;
  d.step(0);
  d.deliver();
  EXPECT_EQ(d.machine(0).counters().refused_busy, 1U);
  EXPECT_TRUE(d.is_quiet());
  EXPECT_EQ(d.mass(), mass);
}

TEST(Budget, OwnProposalsStayUnderTheirBoundAndGoOnAsAnswersCome) {
  ToySetup setup;
  setup.fragments = 8;
  setup.settings.proposal_bytes_max = 50;  // two of 24
  Dialogue d(setup);
  d.step(0);
  EXPECT_EQ(d.machine(0).open_count(), 2U);
  d.deliver();
  EXPECT_EQ(d.machine(0).counters().completed_initiator, 8U) << "the whole round in the end";
}

TEST(Budget, OneProposalAlwaysMay) {
  ToySetup setup;
  setup.settings.proposal_bytes_max = setup.settings.inbound_bytes_max =
      setup.settings.ledger_bytes_max = 1;
  Dialogue d(setup);
  d.step(0);
  d.deliver();
  EXPECT_EQ(d.machine(0).counters().completed_initiator, 1U);
}

TEST(Budget, NoBufferForASnapshotPausesTheRoundOnly) {
  Dialogue d;
  d[0].store->snapshots_busy = true;
  d.step(0);
  EXPECT_EQ(d.machine(0).open_count(), 0U);
  d[0].store->snapshots_busy = false;
  d.step(0);
  d.deliver();
  EXPECT_EQ(d.machine(0).counters().completed_initiator, 1U);
}

// ---- checks ----

schema::Propose valid_propose(Dialogue& d) {
  d.step(0);
  schema::Propose propose = std::get<schema::Propose>(d.wire().front().message);
  d.wire().clear();
  propose.e.sequence += 100;
  return propose;
}

TEST(Checks, EveryMismatchIsRefusedBeforeAnythingIsKept) {
  const std::vector<std::function<void(schema::Propose&)>> spoilers{
      [](auto& p) { p.run_digest.bytes[0] ^= 1; },
      [](auto& p) { p.schema_hash.bytes[31] ^= 1; },
      [](auto& p) { p.fragment = 1; },
      [](auto& p) { p.fragment = ~0U; },
      [](auto& p) { p.slot = schema::Slot::kCentre; },
      [](auto& p) { p.codec = static_cast<CodecId>(99); },
      [](auto& p) { p.payload_bytes -= 1; },
      [](auto& p) { p.payload_bytes = ~std::uint64_t{0}; },
      [](auto& p) { p.chunk_bytes = 0; },
      [](auto& p) { p.chunk_bytes = schema::kChunkBytesMax + 1; },
      [](auto& p) { p.weight = 0.0; },
      [](auto& p) { p.weight = 0.500001; },
      [](auto& p) { p.weight = -0.5; },
      [](auto& p) { p.weight = std::nan(""); },
      [](auto& p) { p.weight = std::numeric_limits<double>::infinity(); },
  };
  for (std::size_t i = 0; i < spoilers.size(); ++i) {
    Dialogue d;
    schema::Propose propose = valid_propose(d);
    spoilers[i](propose);
    d.inject(0, 1, propose);
    d.deliver_first();
    ASSERT_EQ(d[1].events.size(), 1U) << i;
    EXPECT_EQ(d[1].events[0].kind, Kind::kRefusedOther) << i;
    EXPECT_EQ(d[1].events[0].reason, AbortReason::kMismatch) << i;
    EXPECT_EQ(d.machine(1).inbound_bytes(), 0U) << i;
  }
  Dialogue d;  // and the unspoilt one is taken
  d.inject(0, 1, valid_propose(d));
  d.deliver_first();
  EXPECT_EQ(d.machine(1).inbound_bytes(), 24U);
}

TEST(Checks, TooFarApartIsRefusedEitherWayAndTheOneBehindSaysSo) {
  ToySetup setup;
  setup.settings.max_lag = 100;
  Dialogue d(setup);
  d.machine(0).set_depth(1101, 1);
  d.machine(1).set_depth(1000, 1);
  d.step(0);
  d.deliver();
  EXPECT_EQ(d[0].events.back().reason, AbortReason::kLag);
  EXPECT_EQ(d.count_events(1, Kind::kLagging), 1U);
  d.step(1);
  d.deliver();
  EXPECT_EQ(d[1].events.back().reason, AbortReason::kLag);
  EXPECT_EQ(d.count_events(0, Kind::kLagging), 0U) << "it is ahead";
  d.machine(0).set_depth(1100, 1);
  d.step(0);
  d.deliver();
  EXPECT_EQ(d.machine(0).counters().completed_initiator, 1U);
}

TEST(Checks, ANonFiniteReplicaRefusesAndProposesNothing) {
  Dialogue d;
  const std::int64_t mass = d.mass();
  d[1].store->broken = true;
  d.step(1);
  EXPECT_TRUE(d.wire().empty());
  d.step(0);
  d.deliver();
  EXPECT_EQ(d[0].events.back().reason, AbortReason::kNonFinite);
  EXPECT_TRUE(d.is_quiet());
  EXPECT_EQ(d.mass(), mass);
}

TEST(Checks, ADeltaThatCannotBeAppliedClosesTheExchangeAndIsCounted) {
  Dialogue d;
  d.step(0);
  d[0].store->broken = true;
  d.deliver();
  EXPECT_TRUE(d.is_quiet());
  EXPECT_EQ(d.machine(0).counters().invalid, 1U);
  EXPECT_EQ(d.machine(0).counters().completed_initiator, 0U);
}

// ---- nonsense ----

TEST(Nonsense, APeerCannotSpeakForAnother) {
  ToySetup setup;
  setup.nodes = 3;
  Dialogue d(setup);
  schema::Propose propose = valid_propose(d);
  d.inject(2, 1, propose);  // 0's exchange
  d.inject(2, 1, schema::Ack{propose.e, 1000});
  d.inject(2, 1, schema::Chunk{propose.e, schema::Stream::kProposal, 0}, Slice::copy_of({}));
  d.inject(2, 1, schema::Aborted{propose.e, AbortReason::kWithdrawn});
  while (!d.wire().empty()) d.deliver_first();
  EXPECT_EQ(d.machine(1).counters().invalid, 4U);
  EXPECT_EQ(d.machine(1).inbound_bytes(), 0U);
}

TEST(Nonsense, OnlyThePartnerCanAnswer) {
  ToySetup setup;
  setup.nodes = 3;
  Dialogue d(setup);
  d.step(0);
  const auto propose = std::get<schema::Propose>(d.wire().front().message);
  d.wire().clear();
  schema::ResultMessage result;
  result.e = propose.e;
  result.payload_bytes = 24;
  result.chunk_bytes = 8;
  d.inject(2, 0, result);
  d.inject(2, 0, schema::Chunk{propose.e, schema::Stream::kResult, 0}, Slice::copy_of({}));
  d.inject(2, 0, schema::Busy{propose.e, 0});
  d.inject(2, 0, schema::Aborted{propose.e, AbortReason::kUnknown});
  d.inject(2, 0, schema::Credit{propose.e, schema::Stream::kProposal, {7}});
  while (!d.wire().empty()) d.deliver_first();
  EXPECT_EQ(d.machine(0).counters().invalid, 5U);
  EXPECT_EQ(d.machine(0).open_count(), 1U);
}

TEST(Nonsense, ResultsThatDoNotFitAreDropped) {
  const std::vector<std::function<void(schema::ResultMessage&)>> spoilers{
      [](auto& r) { r.fragment = 3; },
      [](auto& r) { r.codec = CodecId::kBf16; },
      [](auto& r) { r.payload_bytes = 1U << 30; },
      [](auto& r) { r.chunk_bytes = 0; },
      [](auto& r) { r.distance_squared = std::nan(""); },
      [](auto& r) { r.distance_squared = -1; },
      [](auto& r) { r.norm_squared = std::numeric_limits<double>::infinity(); },
      [](auto& r) { r.e.sequence = 77; },
      [](auto& r) { r.e.incarnation = 9; },
  };
  for (std::size_t i = 0; i < spoilers.size(); ++i) {
    Dialogue d;
    d.step(0);
    schema::ResultMessage result;
    result.e = std::get<schema::Propose>(d.wire().front().message).e;
    result.payload_bytes = 24;
    result.chunk_bytes = 8;
    spoilers[i](result);
    d.wire().clear();
    d.inject(1, 0, result);
    d.deliver_first();
    EXPECT_EQ(d.machine(0).counters().invalid, 1U) << i;
    EXPECT_EQ(d.machine(0).open_count(), 1U) << i;
    EXPECT_TRUE(d.wire().empty()) << i << ": answered";
  }
}

TEST(Nonsense, ChunksOfUnknownStreamsAreDroppedAndCounted) {
  Dialogue d;
  const ExchangeId e{d[0].id, 1, 5};
  const Slice bytes = Slice::copy_of(std::vector<std::byte>(8));
  d.inject(0, 1, schema::Chunk{e, schema::Stream::kProposal, 0}, bytes);
  d.deliver();
  EXPECT_EQ(d.machine(1).counters().dropped, 1U);
  EXPECT_EQ(d.machine(1).inbound_bytes(), 0U);
}

TEST(Nonsense, ChunksOfAWrongSizeOrIndexAreInvalid) {
  Dialogue d;
  d.inject(0, 1, valid_propose(d));
  const auto e = std::get<schema::Propose>(d.wire().front().message).e;
  d.inject(0, 1, schema::Chunk{e, schema::Stream::kProposal, 0},
           Slice::copy_of(std::vector<std::byte>(7)));
  d.inject(0, 1, schema::Chunk{e, schema::Stream::kProposal, 3},
           Slice::copy_of(std::vector<std::byte>(8)));
  while (!d.wire().empty()) d.deliver_first();
  EXPECT_EQ(d.machine(1).counters().invalid, 2U);
}

TEST(Nonsense, SequencesOfTransfersAreNotTheMachines) {
  Dialogue d;
  schema::Propose propose = valid_propose(d);
  propose.e.sequence |= kTransferBit;
  d.inject(0, 1, propose);
  d.inject(1, 0, schema::Busy{{d[0].id, 1, kTransferBit | 1}, 0});
  d.deliver();
  EXPECT_EQ(d.machine(0).counters().invalid + d.machine(1).counters().invalid, 0U);
  EXPECT_EQ(d.machine(1).inbound_bytes(), 0U);
}

TEST(Nonsense, RandomMessagesNeverBreakTheMachineOrItsMass) {
  Random random(17);
  ToySetup setup;
  setup.nodes = 3;
  setup.fragments = 2;
  Dialogue d(setup);
  const auto any_id = [&] {
    return ExchangeId{d[random.below(3)].id, random.below(3), random.below(6)};
  };
  const auto any_bytes = [&] { return Slice::copy_of(std::vector<std::byte>(random.below(10))); };
  for (int i = 0; i < 50000; ++i) {
    const ExchangeId e = any_id();
    schema::Message message = schema::Ack{e, random.below(8)};
    Slice payload;
    switch (random.below(8)) {
      case 0: {
        schema::Propose propose;
        propose.e = e;
        propose.attempt = static_cast<std::uint32_t>(random.below(2));
        propose.fragment = static_cast<FragmentIndex>(random.below(3));
        propose.payload_bytes = random.below(2) * 24;
        propose.chunk_bytes = static_cast<std::uint32_t>(random.below(3) * 8);
        propose.lowest_open = random.below(6);
        message = propose;
        break;
      }
      case 1:
        message = schema::Chunk{e, static_cast<schema::Stream>(random.below(3)),
                                static_cast<std::uint32_t>(random.below(4))};
        payload = any_bytes();
        break;
      case 2:
        message = schema::Credit{e, static_cast<schema::Stream>(random.below(3)), {random.next()}};
        break;
      case 3: {
        schema::ResultMessage result;
        result.e = e;
        result.fragment = static_cast<FragmentIndex>(random.below(3));
        result.payload_bytes = 24;
        result.chunk_bytes = 8;
        message = result;
        break;
      }
      case 4:
        message = schema::Busy{e, 0};
        break;
      case 5:
        message = schema::Aborted{e, static_cast<AbortReason>(random.below(8))};
        break;
      case 6:
        d.step(random.below(3));
        break;
      default:
        break;
    }
    const std::size_t to = random.below(3);
    d.inject((to + 1 + random.below(2)) % 3, to, message, payload);
    if (random.chance(0.2)) d.deliver();
    if (random.chance(0.05)) d.advance(100ms);
  }
  d.wire().clear();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_LT(d.machine(i).held_entries(), 200U);
    EXPECT_GT(d.machine(i).counters().invalid, 100U);
  }
}

}  // namespace
}  // namespace kith::gossip
