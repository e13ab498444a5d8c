// One fetch from several donors: they share the work, and each that fails costs only what it had
// open.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/hash.h"
#include "tests/gossip/several_donors.h"

namespace kith::gossip {
namespace {

using testing::HasSubstr;

class Several : public testing::Test, public SeveralDonors {};

TEST_F(Several, DonorsShareTheWork) {
  t[0].fetch(t.now, donors, fragments());
  t.deliver();
  expect_success();
  for (const NodeId& id : donors) EXPECT_GE(given[id].size(), 3U) << id.short_hex();
}

TEST_F(Several, EachHasAtMostItsItemsOpen) {
  std::map<NodeId, std::set<ExchangeId>> open;
  std::size_t most = 0;
  t.rule = [&](const Outgoing& out, std::size_t) {
    if (const auto* request = std::get_if<schema::StateRequest>(&out.message))
      open[out.to].insert(request->e);
    if (const auto* credit = std::get_if<schema::Credit>(&out.message)) {
      if (credit->received[0] == (1U << 10) - 1) open[out.to].erase(credit->e);  // ten chunks: all
    }
    for (const auto& [id, items] : open) most = std::max(most, items.size());
    return Fate::kPass;
  };
  t[0].fetch(t.now, donors, fragments());
  t.deliver();
  expect_success();
  EXPECT_EQ(most, 2U);
}

TEST_F(Several, NoMoreThanDonorsMaxAreAskedAtOnce) {
  TransferSettings two = settings();
  two.donors_max = 2;
  Transfers few(4, two);
  for (std::size_t i = 1; i <= 3; ++i)
    for (std::uint32_t f = 0; f < kFragments; ++f) few.donor(i).put(fragment(f), 95);
  few[0].fetch(few.now, donors, fragments());
  few.deliver();
  EXPECT_TRUE(*few[0].take_end());
  EXPECT_EQ(few.donor(3).asked, 0);
  EXPECT_GT(few.donor(1).asked, 0);
  EXPECT_GT(few.donor(2).asked, 0);
}

// At every moment of the transfer: what had arrived stays, what the dead donor had open is asked
// for elsewhere, once.
TEST_F(Several, ADonorKilledMidwayCostsOnlyItsOpenItems) {
  std::size_t letters = 0;
  {
    SeveralDonors clean;
    clean.t[0].fetch(clean.t.now, donors, clean.fragments());
    clean.t.deliver();
    letters = clean.t.number;
  }
  for (std::size_t at = 1; at < letters; at += 7) {
    SeveralDonors run;
    bool killed = false;
    std::map<ItemKey, int> requests;
    run.deliver_until(at, [&] {
      run.t.kill(2);
      killed = true;
    });
    for (std::size_t i = 1; i <= 3; ++i)
      run.t.donor(i).on_asked = [&](const ItemKey& key) { ++requests[key]; };
    run.t[0].fetch(run.t.now, donors, run.fragments());
    run.t.advance(4s);
    run.expect_success();
    EXPECT_TRUE(killed);
    int repeated = 0;
    for (const auto& [key, count] : requests) repeated += count - 1;
    EXPECT_LE(repeated, 2) << "killed after letter " << at;
  }
}

TEST_F(Several, AFrozenDonorCostsAsLittle) {
  deliver_until(40, [&] { t.freeze(2); });
  t[0].fetch(t.now, donors, everything());
  t.advance(4s);
  expect_success();
  expect_moments_of_one_donor();
}

TEST_F(Several, ALiarsWrongHashLosesItItsItemsAndItsPlace) {
  t.donor(2).lie = true;
  t[0].fetch(t.now, donors, fragments());
  t.advance(1s);
  expect_success();
  EXPECT_TRUE(given[toy_id(3)].empty());
  const auto troubles = t[0].take_troubles();
  ASSERT_EQ(troubles.size(), 1U);
  EXPECT_EQ(troubles[0].donor, toy_id(3));
  EXPECT_THAT(troubles[0].why.message, HasSubstr("does not match its own hash"));
}

TEST_F(Several, ALiarStaysOutAlsoWhenItIsListedAgain) {
  t.donor(2).lie = true;
  t.donor(1).busy = t.donor(3).busy = 1000;
  t[0].fetch(t.now, donors, fragments());
  t.advance(200ms);
  const int asked = t.donor(2).asked;
  t[0].set_donors(t.now, {toy_id(2), toy_id(3)});
  t[0].set_donors(t.now, donors);
  t.advance(2s);
  EXPECT_EQ(t.donor(2).asked, asked);
}

TEST_F(Several, AnItemThatIsNotTheDeclaredOneIsTakenFromAnother) {
  FetchOrder order = fragments();
  for (std::uint32_t f = 0; f < kFragments; ++f)
    order.expected[fragment(f)].hash = hash_bytes(t.donor(1).items[fragment(f)].bytes());
  for (std::uint32_t f = 0; f < kFragments; ++f)
    t.donor(3).items[fragment(f)] = t.donor(3).items[fragment((f + 1) % kFragments)];
  t[0].fetch(t.now, donors, order);
  t.advance(1s);
  expect_success();
  EXPECT_TRUE(given[toy_id(4)].empty());
}

TEST_F(Several, SizesThatDoNotFitAreRefusedBeforeAnyByteComes) {
  for (std::uint32_t f = 0; f < kFragments; ++f) t.donor(2).put(fragment(f), 96);
  std::size_t chunks = 0;
  bool refused = false;
  t.rule = [&](const Outgoing& out, std::size_t) {
    const auto* chunk = std::get_if<schema::Chunk>(&out.message);
    if (out.to == toy_id(3) && std::holds_alternative<schema::Credit>(out.message)) ++chunks;
    if (out.to == toy_id(3) && std::holds_alternative<schema::Aborted>(out.message)) refused = true;
    (void)chunk;
    return Fate::kPass;
  };
  t[0].fetch(t.now, donors, fragments());
  t.advance(1s);
  expect_success();
  EXPECT_EQ(chunks, 0U);
  EXPECT_TRUE(refused);
  const auto troubles = t[0].take_troubles();
  ASSERT_EQ(troubles.size(), 1U);
  EXPECT_THAT(troubles[0].why.message, HasSubstr("96 bytes, expected 95"));
}

TEST_F(Several, AFragmentThatIsTooShortIsRefusedToo) {
  for (std::uint32_t f = 0; f < kFragments; ++f) t.donor(2).put(fragment(f), f % 2 == 0 ? 0 : 94);
  t[0].fetch(t.now, donors, fragments());
  t.advance(1s);
  expect_success();
  EXPECT_TRUE(given[toy_id(3)].empty());
}

TEST_F(Several, ABusyDonorRestsWhileTheOthersGoOn) {
  t.donor(1).busy = 1000;
  t[0].fetch(t.now, donors, everything());
  t.deliver();  // without any time passing
  expect_success();
  expect_moments_of_one_donor();
  EXPECT_TRUE(given[toy_id(2)].empty());
  EXPECT_EQ(t.donor(1).asked, 1);
}

TEST_F(Several, ABusyDonorIsAskedMoreAndMoreRarely) {
  for (std::size_t i = 1; i <= 3; ++i) t.donor(i).busy = 1000;
  t[0].fetch(t.now, donors, fragments());
  t.advance(4900ms);
  // After 0, 0.4, 1.2, 2.8 and 4.4 s.
  for (std::size_t i = 1; i <= 3; ++i) EXPECT_EQ(t.donor(i).asked, 5) << i;
}

TEST_F(Several, WhenAllAreBusyItWaitsAndThenSaysSo) {
  for (std::size_t i = 1; i <= 3; ++i) t.donor(i).busy = 1000;
  t[0].fetch(t.now, donors, fragments());
  t.advance(4900ms);
  EXPECT_TRUE(t[0].fetching());
  t.advance(200ms);
  const auto end = t[0].take_end();
  ASSERT_TRUE(end && !*end);
  EXPECT_THAT(end->error().message, HasSubstr("none of 3 donors"));
  EXPECT_THAT(end->error().message, HasSubstr("busy"));
}

TEST_F(Several, WhenAllWereBusyForAWhileItGoesOn) {
  for (std::size_t i = 1; i <= 3; ++i) t.donor(i).busy = 2;
  t[0].fetch(t.now, donors, everything());
  t.advance(4s);
  expect_success();
  expect_moments_of_one_donor();
}

TEST_F(Several, WhenAllAreGoneItEndsAtOnceWithTheReasons) {
  t[0].fetch(t.now, donors, fragments());
  t.kill(1);
  t.kill(2);
  EXPECT_TRUE(t[0].fetching());
  t.kill(3);
  const auto end = t[0].take_end();
  ASSERT_TRUE(end && !*end);
  EXPECT_THAT(end->error().message, HasSubstr("none of 3 donors is left"));
  EXPECT_EQ(t[0].take_troubles().size(), 3U);
}

TEST_F(Several, WithoutDonorsAFetchFailsAndOneOfNothingSucceeds) {
  t[0].fetch(t.now, {}, fragments());
  const auto failed = t[0].take_end();
  ASSERT_TRUE(failed && !*failed);
  t[0].fetch(t.now, {}, {});
  const auto nothing = t[0].take_end();
  ASSERT_TRUE(nothing && *nothing);
}

TEST_F(Several, DonorsCanComeAndGoWhileItRuns) {
  deliver_until(20, [&] { t[0].set_donors(t.now, {toy_id(3), toy_id(4)}); });
  t[0].fetch(t.now, {toy_id(2)}, everything());
  t.advance(1s);
  expect_success();
  expect_moments_of_one_donor();
  EXPECT_FALSE(given[toy_id(2)].contains(fragment(kFragments - 1)));
  EXPECT_TRUE(t[0].take_troubles().empty()) << "to be taken off the list is none";
  EXPECT_FALSE(given[toy_id(3)].empty());
  EXPECT_FALSE(given[toy_id(4)].empty());
}

TEST_F(Several, ADonorThatWasGoneMayComeBack) {
  t.donor(2).busy = t.donor(3).busy = 1000;
  t[0].fetch(t.now, donors, fragments());
  t[0].peer_gone(t.now, toy_id(2));
  t[0].set_donors(t.now, donors);
  t.deliver();
  expect_success();
}

TEST_F(Several, ADonorIsAskedAtOnceWhenItsLinkIsUp) {
  t.rule = [](const Outgoing&, std::size_t) { return Fate::kDrop; };
  t[0].fetch(t.now, {toy_id(2)}, fragments());
  t.advance(10ms);
  t.rule = nullptr;
  t[0].peer_up(t.now, toy_id(3));
  EXPECT_GT(t[0].next_deadline(), t.now) << "another's link";
  t[0].peer_up(t.now, toy_id(2));
  t.advance(1ms);
  expect_success();
}

// What a caller does after an interruption: the fragments that are here are not asked for again.
TEST_F(Several, IsResumedByOrderingWhatIsMissing) {
  deliver_until(150, [&] {
    t.kill(1);
    t.kill(2);
    t.kill(3);
  });
  t[0].fetch(t.now, donors, fragments());
  t.advance(1s);
  EXPECT_FALSE(*t[0].take_end());
  collect();
  ASSERT_GT(arrivals.size(), 0U);
  ASSERT_LT(arrivals.size(), kFragments);
  t.down.clear();
  t.rule = nullptr;
  FetchOrder rest;
  for (std::uint32_t f = 0; f < kFragments; ++f)
    if (!arrivals.contains(fragment(f))) rest.wanted.push_back(fragment(f));
  t[0].fetch(t.now, donors, rest);
  t.advance(2s);
  expect_success();
}

// Its withdrawal was lost with everything else: the donor's window must not stay full of what
// nobody wants.
TEST_F(Several, AnAbandonedFetchDoesNotFillTheDonorsWindow) {
  t.rule = [](const Outgoing& out, std::size_t) {
    const bool question = std::holds_alternative<schema::StateRequest>(out.message);
    return question ? Fate::kPass : Fate::kDrop;
  };
  t[0].fetch(t.now, {toy_id(2)}, fragments());
  t.advance(200ms);
  t[0].cancel();
  t.advance(200ms);
  t.rule = nullptr;
  t[0].fetch(t.now, {toy_id(2)}, fragments());
  t.advance(3s);
  expect_success();
}

TEST_F(Several, TwoAccidentsAnywhereAreRepaired) {
  for (const Fate fate : {Fate::kDrop, Fate::kTwice}) {
    for (std::size_t first = 0; first < 200; first += 5) {
      for (std::size_t second = first; second < 200; second += 7) {
        SeveralDonors run;
        run.t.rule = [&](const Outgoing&, std::size_t n) {
          return n == first || n == second ? fate : Fate::kPass;
        };
        run.t[0].fetch(run.t.now, donors, run.everything());
        run.t.advance(4s);
        run.expect_success();
        run.expect_moments_of_one_donor();
      }
    }
  }
}

TEST_F(Several, NeverAsksToBeWokenInThePast) {
  t.donor(1).busy = 1000;
  t.donor(2).busy = 3;
  t[0].fetch(t.now, donors, everything());
  deliver_until(50, [&] { t.freeze(3); });
  for (int i = 0; i < 2000 && t[0].fetching(); ++i) {
    t.deliver();
    if (!t[0].fetching()) break;
    ASSERT_GT(t[0].next_deadline(), t.now) << "would spin";
    t.now = t[0].next_deadline();
    t[0].tick(t.now);
  }
  EXPECT_FALSE(t[0].fetching());
}

}  // namespace
}  // namespace kith::gossip
