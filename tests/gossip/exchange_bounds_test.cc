// Bounds: what a machine holds does not grow, the window holds on every link, and planted defects
// are seen.
#include <gtest/gtest.h>

#include <set>

#include "gossip/exchange/ledger_closed.h"
#include "tests/gossip/dialogue.h"

namespace kith::gossip {
namespace {

// 10^5 exchanges of which most time out: six letters in ten are lost.
TEST(Bounds, NothingGrowsOverExchangesThatMostlyTimeOut) {
  ToySetup setup;
  setup.nodes = 4;
  setup.fragments = 8;
  setup.values = 2;
  setup.settings.retry_interval = 20ms;
  setup.settings.suspend_after = 40ms;
  Dialogue d(setup);
  Random random(23);
  d.set_rule([&](const Dialogue::Letter&, std::size_t) {
    return random.chance(0.6) ? Fate::kDrop : Fate::kPass;
  });
  std::size_t peak = 0;
  std::size_t early_peak = 0;
  std::uint64_t proposed = 0;
  for (int round = 0; proposed < 100000; ++round) {
    proposed = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      d[i].chooser.target = static_cast<std::uint32_t>(random.below(4));
      d.step(i);
      proposed += d.machine(i).counters().proposed;
      peak = std::max(peak, d.machine(i).held_entries());
      d[i].events.clear();
      d[i].store->committed.clear();
      d[i].store->applied.clear();
    }
    d.advance(10ms);
    if (proposed < 10000) early_peak = peak;
  }
  EXPECT_LE(peak, early_peak + early_peak / 4);
  std::uint64_t completed = 0;
  for (std::size_t i = 0; i < 4; ++i) completed += d.machine(i).counters().completed_initiator;
  EXPECT_LT(completed, proposed / 2) << "most are to time out";
  d.set_rule(nullptr);
  EXPECT_TRUE(d.settle());
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_LT(d.machine(i).held_entries(), 600U);
    EXPECT_EQ(d.machine(i).ledger_bytes() + d.machine(i).inbound_bytes(), 0U);
  }
}

TEST(Bounds, APeerThatNeverAnswersCostsOneIdPerFragment) {
  ToySetup setup;
  setup.fragments = 4;
  setup.settings.window_chunks = 16;  // all chunks leave
  Dialogue d(setup);
  d.set_rule([](const Dialogue::Letter&, std::size_t) { return Fate::kDrop; });
  std::size_t held = 0;
  for (int i = 0; i < 2000; ++i) {
    d.step(0);
    d.advance(100ms);
    if (i == 200) held = d.machine(0).held_entries();
  }
  EXPECT_LE(d.machine(0).held_entries(), held);
  EXPECT_EQ(d.machine(0).open_count(), 4U);
  EXPECT_EQ(d.machine(0).counters().proposed, 4U);
}

TEST(Bounds, CreditNeverExceedsTheWindowOnAnyLink) {
  ToySetup setup;
  setup.nodes = 3;
  setup.fragments = 6;
  setup.values = 20;  // 20 chunks each
  setup.settings.window_chunks = 5;
  Dialogue d(setup);
  Random random(29);
  using ChunkId = std::tuple<ExchangeId, schema::Stream, std::uint32_t>;
  std::map<std::pair<std::size_t, std::size_t>, std::set<ChunkId>> under_way;
  std::size_t peak = 0;
  d.set_rule([&](const Dialogue::Letter& letter, std::size_t) {
    if (const auto* chunk = std::get_if<schema::Chunk>(&letter.message)) {
      auto& link = under_way[{letter.from, letter.to}];
      link.insert({chunk->e, chunk->stream, chunk->index});
      peak = std::max(peak, link.size());
    }
    return Fate::kPass;
  });
  for (int round = 0; round < 200; ++round) {
    for (std::size_t i = 0; i < 3; ++i) {
      d[i].chooser.target = static_cast<std::uint32_t>(random.below(3));
      d.step(i);
    }
    for (int n = 0; n < 300 && !d.wire().empty(); ++n) {
      const Dialogue::Letter letter = d.wire().front();
      // Whatever the sender learns from this letter ends before it sends again.
      const auto forget = [&](const ExchangeId& e, schema::Stream stream, auto&& has) {
        auto& link = under_way[{letter.to, letter.from}];
        std::erase_if(link, [&](const ChunkId& id) {
          return std::get<0>(id) == e && std::get<1>(id) == stream && has(std::get<2>(id));
        });
      };
      const auto all = [](std::uint32_t) { return true; };
      if (const auto* credit = std::get_if<schema::Credit>(&letter.message)) {
        forget(credit->e, credit->stream,
               [&](std::uint32_t i) { return (credit->received[i / 64] >> (i % 64) & 1) != 0; });
      } else if (const auto* result = std::get_if<schema::ResultMessage>(&letter.message)) {
        forget(result->e, schema::Stream::kProposal, all);
      } else if (const auto* ack = std::get_if<schema::Ack>(&letter.message)) {
        forget(ack->e, schema::Stream::kResult, all);
      } else if (const auto* aborted = std::get_if<schema::Aborted>(&letter.message)) {
        forget(aborted->e, schema::Stream::kProposal, all);
      }
      d.deliver_first();
    }
  }
  EXPECT_EQ(peak, 5U) << "reached, and never passed";
}

TEST(Bounds, TombstonesAreFewAndTheFloorRisesInstead) {
  ClosedIds closed;
  closed.advance(1);
  for (std::uint64_t i = 0; i < 20000; ++i) closed.bury(1, 2 * i + 1);
  EXPECT_LE(closed.tombstones().size(), ClosedIds::kTombstonesMax);
  for (std::uint64_t i = 0; i < 20000; ++i) {
    ASSERT_TRUE(closed.is_closed(1, 2 * i + 1)) << "a closed one is never forgotten";
  }
  EXPECT_FALSE(closed.is_closed(1, 2 * 19999));
}

TEST(ClosedIdsTest, FloorsPruneAndIncarnationsStartAnew) {
  ClosedIds closed;
  closed.advance(3);
  closed.bury(3, 5);
  closed.bury(3, 9);
  closed.bury(2, 7);  // of an older life: closed as a whole
  EXPECT_TRUE(closed.is_closed(3, 5));
  EXPECT_FALSE(closed.is_closed(3, 7));
  EXPECT_TRUE(closed.is_closed(2, 1000));
  closed.raise_floor(9);
  EXPECT_EQ(closed.tombstones().size(), 1U);
  EXPECT_TRUE(closed.is_closed(3, 6));
  closed.raise_floor(4);
  EXPECT_EQ(closed.floor(), 9U) << "never falls";
  closed.condense();
  EXPECT_TRUE(closed.tombstones().empty());
  EXPECT_TRUE(closed.is_closed(3, 9));
  closed.advance(4);
  EXPECT_FALSE(closed.is_closed(4, 9));
  EXPECT_TRUE(closed.is_closed(3, 100));
}

// ---- planted defects ----

TEST(Planted, AResultAppliedTwiceShowsInTheMass) {
  ToySetup setup;
  setup.planted.apply_result_twice = true;
  Dialogue d(setup);
  const std::int64_t mass = d.mass();
  d.step(0);
  d.deliver();
  EXPECT_NE(d.mass(), mass);
  EXPECT_NE(d.ledger_complaint(), "");
}

// A late copy of a whole proposal, after its end.
void replay_proposal(bool planted) {
  ToySetup setup;
  setup.planted.drop_tombstone = planted;
  Dialogue d(setup);
  d.step(0);
  const auto letters = d.wire();
  d.deliver();
  for (const Dialogue::Letter& letter : letters) d.hand_over(letter);
  d.deliver();
  EXPECT_EQ(d.ledger_complaint().empty(), !planted);
}
TEST(Planted, AMissingTombstoneShowsAsASecondCommit) { replay_proposal(true); }
TEST(Planted, ATombstonePreventsTheSecondCommit) { replay_proposal(false); }

}  // namespace
}  // namespace kith::gossip
