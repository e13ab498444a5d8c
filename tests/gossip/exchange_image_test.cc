// The image: what a restarted node must still know, and bytes that are no image.
#include <gtest/gtest.h>

#include "base/hash.h"
#include "tests/gossip/dialogue.h"

namespace kith::gossip {
namespace {

// Restarts node i from `image` in its next incarnation; its store keeps its values.
void restart(Dialogue& d, std::size_t i, const LedgerImage& image) {
  ++d[i].incarnation;
  d.boot(i);
  const Status restored = d.machine(i).restore(image);
  ASSERT_TRUE(restored) << restored.error().message;
}

TEST(Image, ARestoredInitiatorGetsTheResultItWasWaitingFor) {
  Dialogue d;
  const std::int64_t mass = d.mass();
  d.step(0);
  while (d.machine(1).ledger_entries() == 0) d.deliver_first();
  const LedgerImage image = d.machine(0).image();
  d.wire().clear();
  restart(d, 0, image);
  EXPECT_EQ(d.machine(0).open_count(), 1U);
  d.introduce();
  EXPECT_TRUE(d.settle());
  EXPECT_EQ(d.machine(0).counters().completed_initiator, 1U);
  EXPECT_EQ(d.mass(), mass);
  EXPECT_EQ(d.ledger_complaint(), "");
}

TEST(Image, ARestoredInitiatorForgetsWhatItHadReceivedAndGetsAllOfIt) {
  ToySetup setup;
  setup.settings.window_chunks = 1;
  Dialogue d(setup);
  const std::int64_t mass = d.mass();
  d.step(0);
  while (d.machine(0).counters().payload_bytes_received == 0) d.deliver_first();
  const LedgerImage image = d.machine(0).image();
  d.deliver_first();  // the CREDIT for it
  d.wire().clear();
  restart(d, 0, image);
  // The responder has not heard of the restart when it is asked.
  d.set_peers(0, {{d[1].id, 1, true}});
  EXPECT_TRUE(d.settle());
  EXPECT_EQ(d.mass(), mass);
  EXPECT_EQ(d.ledger_complaint(), "");
}

TEST(Image, ARestoredResponderReplaysTheSameBits) {
  Dialogue d;
  const std::int64_t mass = d.mass();
  d.step(0);
  while (d.machine(1).ledger_entries() == 0) d.deliver_first();
  d.wire().clear();
  restart(d, 1, d.machine(1).image());
  EXPECT_EQ(d.machine(1).ledger_entries(), 1U);
  EXPECT_EQ(d.machine(1).ledger_bytes(), 24U);
  d.introduce();
  EXPECT_TRUE(d.settle());
  const ExchangeId e = d[1].store->committed.begin()->first;
  EXPECT_EQ(d[0].store->applied[e], d[1].store->committed[e]);
  EXPECT_EQ(d.mass(), mass);
}

TEST(Image, ARestoredResponderRemindsUnasked) {
  Dialogue d;
  d.set_rule([](const Dialogue::Letter& letter, std::size_t) {
    return letter.name() == "ACK" ? Fate::kDrop : Fate::kPass;
  });
  d.step(0);
  d.deliver();
  d.set_rule(nullptr);
  restart(d, 1, d.machine(1).image());
  d.introduce();
  EXPECT_TRUE(d.settle());
  EXPECT_EQ(d.ledger_complaint(), "");
}

TEST(Image, TombstonesAndFloorsSurvive) {
  Dialogue d;
  d.step(0);
  const auto letters = d.wire();
  d.deliver();
  restart(d, 1, d.machine(1).image());
  d.introduce();
  for (const Dialogue::Letter& letter : letters) d.hand_over(letter);
  d.deliver();
  EXPECT_EQ(d.machine(1).counters().completed_responder, 0U);
  EXPECT_EQ(d.ledger_complaint(), "");
}

TEST(Image, BothSidesRestoredAtOnceStillAgree) {
  ToySetup setup;
  setup.fragments = 3;
  for (int cut = 0; cut < 30; ++cut) {
    Dialogue d(setup);
    const std::int64_t mass = d.mass();
    d.step(0);
    d.step(1);
    for (int i = 0; i < cut && !d.wire().empty(); ++i) d.deliver_first();
    const LedgerImage first = d.machine(0).image();
    const LedgerImage second = d.machine(1).image();
    d.wire().clear();
    restart(d, 0, first);
    restart(d, 1, second);
    d.introduce();
    EXPECT_TRUE(d.settle()) << cut;
    EXPECT_EQ(d.mass(), mass) << cut;
    EXPECT_EQ(d.ledger_complaint(), "") << cut;
  }
}

TEST(Image, OpenIdsSurviveTwoRestarts) {
  Dialogue d;
  const std::int64_t mass = d.mass();
  d.step(0);
  while (d.machine(1).ledger_entries() == 0) d.deliver_first();
  d.wire().clear();
  restart(d, 0, d.machine(0).image());
  restart(d, 0, d.machine(0).image());
  d.introduce();
  EXPECT_TRUE(d.settle());
  EXPECT_EQ(d.mass(), mass);
  EXPECT_EQ(d.ledger_complaint(), "");
}

TEST(Image, AnOlderLifesQuestionDoesNotFreeItsOtherEntries) {
  // Two fragments committed for the first life; the second life asks for one after the other.
  ToySetup setup;
  setup.fragments = 2;
  Dialogue d(setup);
  const std::int64_t mass = d.mass();
  d.step(0);
  while (d.machine(1).ledger_entries() < 2) d.deliver_first();
  d.wire().clear();
  restart(d, 0, d.machine(0).image());
  for (int i = 0; i < 2; ++i) d.step(0);  // ids of the new life, lowest_open above the old ones
  std::size_t results = 0;
  d.set_rule([&](const Dialogue::Letter& letter, std::size_t) {
    return letter.name() == "RESULT" && ++results == 2 ? Fate::kDrop : Fate::kPass;
  });
  d.introduce();
  EXPECT_TRUE(d.settle());
  EXPECT_EQ(d.mass(), mass);
  EXPECT_EQ(d.ledger_complaint(), "");
}

TEST(Image, SequencesOfANewLifeAreNew) {
  Dialogue d;
  d.step(0);
  d.deliver();
  restart(d, 0, d.machine(0).image());
  d.introduce();
  d.step(0);
  d.deliver();
  EXPECT_EQ(d[0].store->applied.size(), 2U);
  EXPECT_EQ(d.ledger_complaint(), "");
}

TEST(Image, IsRefusedWhenItsIncarnationIsNotBelowOurs) {
  Dialogue d;
  const LedgerImage image = d.machine(0).image();
  const Status restored = d.machine(0).restore(image);
  ASSERT_FALSE(restored);
  EXPECT_NE(restored.error().message.find("incarnation"), std::string::npos);
}

TEST(Image, IsRefusedByAnotherNode) {
  Dialogue d;
  d[1].incarnation = 2;
  d.boot(1);
  EXPECT_EQ(d.machine(1).restore(d.machine(0).image()).error().code, ErrorCode::kCorrupt);
}

LedgerImage full_image() {
  ToySetup setup;
  setup.fragments = 2;
  Dialogue d(setup);
  d.step(1);
  d.deliver();  // leaves closed ids
  d.step(1);
  while (d.machine(0).ledger_entries() == 0) d.deliver_first();
  d.step(0);
  return d.machine(0).image();
}

Status restore_in_new_life(const LedgerImage& image) {
  ToySetup setup;
  setup.fragments = 2;
  Dialogue d(setup);
  d[0].incarnation = 2;
  d.boot(0);
  return d.machine(0).restore(image);
}

TEST(Image, EveryFlippedByteAndEveryCutIsNoticed) {
  const LedgerImage image = full_image();
  ASSERT_TRUE(restore_in_new_life(image));
  for (std::size_t i = 0; i < image.bytes.size(); ++i) {
    LedgerImage flipped = image;
    flipped.bytes[i] ^= std::byte{0x10};
    EXPECT_FALSE(restore_in_new_life(flipped)) << i;
    LedgerImage cut = image;
    cut.bytes.resize(i);
    EXPECT_FALSE(restore_in_new_life(cut)) << i;
  }
}

// The check sum made right again: contents must still be checked one by one, and counts not
// believed.
TEST(Image, ForgedContentsNeverBreakTheReader) {
  const LedgerImage image = full_image();
  const std::size_t body = image.bytes.size() - 32;
  Random random(9);
  for (int i = 0; i < 20000; ++i) {
    LedgerImage forged = image;
    const std::size_t flips = 1 + random.below(3);
    for (std::size_t k = 0; k < flips; ++k) {
      forged.bytes[8 + random.below(body - 8)] = static_cast<std::byte>(random.next());
    }
    const Hash256 hash = hash_bytes(std::span(forged.bytes).first(body));
    std::memcpy(forged.bytes.data() + body, hash.bytes.data(), 32);
    const Status restored = restore_in_new_life(forged);
    if (!restored) {
      EXPECT_FALSE(restored.error().message.empty());
    }
  }
}

}  // namespace
}  // namespace kith::gossip
