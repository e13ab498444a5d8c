// Random nonsense from members whose keys are good: whatever they say, sizes stay bounded, the
// machine goes on, and once they stop every view heals.
#include <gtest/gtest.h>

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

// Messages of one hostile member: its own key signs, other signatures are replayed or wrong.
class Fuzzer {
 public:
  Fuzzer(SwimNetwork& network, std::size_t self, std::uint64_t seed)
      : network_(network), self_(self), random_(seed) {}

  schema::Message message() {
    switch (random_.below(8)) {
      case 0:
        return schema::Ping{random_.next(), news()};
      case 1:
        return schema::Pong{random_.below(2000), any_id(), news()};
      case 2:
        return schema::PingRequest{random_.next(), any_id(), news()};
      case 3:
        return schema::Nack{random_.below(2000), any_id(), news()};
      case 4:
        return schema::Digest{numbers(random_.below(100))};
      case 5:
        return sync();
      case 6:
        return schema::Leave{record()};
      default:
        return schema::Gossip{news()};
    }
  }

 private:
  NodeId any_id() {
    return random_.chance(0.2) ? test_id(1000 + random_.below(5000))
                               : test_id(random_.below(network_.size()));
  }
  std::vector<std::uint64_t> numbers(std::size_t count) {
    std::vector<std::uint64_t> out(count);
    for (auto& number : out) number = random_.next();
    return out;
  }
  MemberRecord record() {
    const std::size_t of = random_.below(network_.size());
    MemberRecord out = network_.swim(of).own();
    out.state = static_cast<MemberState>(random_.below(4));
    if (random_.chance(0.3)) return out;  // replayed
    if (random_.chance(0.3)) out.id = any_id();
    out.incarnation += random_.below(3);
    out.version += random_.below(5);
    if (out.id == test_id(self_)) network_.node(self_).authority.sign(out);
    return out;
  }
  schema::News news() {
    schema::News out;
    for (std::size_t i = random_.below(70); i > 0; --i) out.records.push_back(record());
    for (std::size_t i = random_.below(70); i > 0; --i) {
      Accusation accusation{any_id(),
                            (1ULL << 32) + random_.below(4),
                            random_.chance(0.7) ? test_id(self_) : any_id(),
                            {}};
      if (random_.chance(0.8)) {
        if (accusation.accuser == test_id(self_)) network_.node(self_).authority.sign(accusation);
      }
      out.accusations.push_back(accusation);
    }
    return out;
  }
  schema::Sync sync() {
    schema::Sync out;
    for (std::size_t i = random_.below(70); i > 0; --i)
      out.buckets.push_back(static_cast<std::uint32_t>(random_.below(80)));
    for (std::size_t i = random_.below(600); i > 0; --i)
      out.entries.push_back({any_id(), (1ULL << 32) + random_.below(5), random_.below(9),
                             static_cast<MemberState>(random_.below(4))});
    for (std::size_t i = random_.below(100); i > 0; --i) out.wanted.push_back(any_id());
    out.news = news();
    return out;
  }

  SwimNetwork& network_;
  std::size_t self_;
  Random random_;
};

TEST(HostileMember, OfTwelveRemovesNobodyAndViewsHeal) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SwimNetwork network(12, kLocal, seed);
    network.introduce_all();
    network.run(seconds(3));
    constexpr std::size_t kHostile = 5;
    Fuzzer fuzzer(network, kHostile, seed);
    for (int turn = 0; turn < 300; ++turn) {
      for (int i = 0; i < 10; ++i)
        network.send(kHostile, (kHostile + 1 + i) % 12, fuzzer.message());
      network.run(milliseconds(100));
    }
    for (std::size_t i = 0; i < 12; ++i) {
      if (i == kHostile) continue;
      EXPECT_LE(network.swim(i).members().size(), 11U) << "nobody was invented";
      for (std::size_t j = 0; j < 12; ++j) {
        if (j == i || j == kHostile) continue;
        EXPECT_NE(network.view(i, j), MemberState::kDead) << i << " of " << j << ", seed " << seed;
        EXPECT_NE(network.view(i, j), MemberState::kLeft) << i << " of " << j << ", seed " << seed;
      }
    }
    network.run(minutes(1));
    for (std::size_t i = 0; i < 12; ++i) {
      if (i == kHostile) continue;
      for (std::size_t j = 0; j < 12; ++j)
        if (j != i && j != kHostile) {
          EXPECT_EQ(network.view(i, j), MemberState::kAlive) << i << " of " << j;
        }
    }
  }
}

TEST(HostileMember, IsAnsweredWithBoundedBytes) {
  SwimNetwork network(12, kLocal, 9);
  network.introduce_all();
  network.run(seconds(3));
  Fuzzer fuzzer(network, 5, 9);
  Swim& victim = network.swim(0);
  victim.take_outgoing();
  std::size_t sent = 0;
  std::size_t answered = 0;
  for (int i = 0; i < 2000; ++i) {
    const schema::Message message = fuzzer.message();
    sent += bytes_of(message);
    victim.on_message(network.now(), network.node(5).id, message);
    for (const SwimOutgoing& out : victim.take_outgoing()) answered += bytes_of(out.message);
  }
  EXPECT_LT(answered, sent) << "nothing is amplified";
}

// ---- records that cost us signatures, or room

class RecordForger : public ::testing::Test {
 protected:
  RecordForger() : network_(12, kLocal, 3) {
    network_.introduce_all();
    network_.run(seconds(3));
  }
  MemberRecord stranger(std::size_t number, bool forged) {
    MemberRecord record;
    record.id = test_id(1000 + number);
    record.incarnation = 1ULL << 32;
    network_.node(kHostile).authority.sign(record);
    if (forged) record.signature[0] ^= 1;
    return record;
  }
  void say(std::vector<MemberRecord> records) {
    schema::Gossip gossip;
    gossip.news.records = std::move(records);
    victim().on_message(network_.now(), network_.node(kHostile).id, gossip);
  }
  Swim& victim() { return network_.swim(0); }
  std::uint64_t verified() { return network_.node(0).authority.verified; }

  static constexpr std::size_t kHostile = 5;
  SwimNetwork network_;
};

TEST_F(RecordForger, HasOneSignatureCheckedAndThenNoneForAWhile) {
  const std::uint64_t before = verified();
  for (std::size_t message = 0; message < 20; ++message) {
    std::vector<MemberRecord> records;
    for (std::size_t i = 0; i < 60; ++i) records.push_back(stranger(60 * message + i, true));
    say(std::move(records));
  }
  EXPECT_EQ(verified(), before + 1);
  EXPECT_EQ(victim().members().size(), 11U);
  say({stranger(5000, false)});
  EXPECT_EQ(victim().members().size(), 11U) << "nor is it believed about others";
  network_.run(seconds(11));
  say({stranger(5001, false)});
  EXPECT_EQ(victim().members().size(), 12U) << "but later it is";
}

TEST_F(RecordForger, KeepsNobodyFromHearingOthersFigures) {
  MemberRecord own = network_.swim(3).own();
  for (std::size_t i = 0; i < 200; ++i) {  // newer figures of node 3, that it never signed
    ++own.version;
    own.step = 1;
    say({own});
  }
  own = network_.swim(3).own();
  own.step = 77;
  network_.swim(3).set_own(network_.now(), own);
  schema::Gossip relayed;
  relayed.news.records.push_back(network_.swim(3).own());
  victim().on_message(network_.now(), network_.node(4).id, relayed);
  EXPECT_EQ(victim().find(own.id)->record().step, 77U);
}

TEST_F(RecordForger, WithManyKeysFillsNoTable) {
  for (std::size_t message = 0; message < 2000; ++message) {
    say({stranger(3 * message, false), stranger(3 * message + 1, false)});
    network_.run(milliseconds(20));
  }
  EXPECT_LE(victim().members().size(), 11U + 512U + 2U * 11U);
  EXPECT_GT(victim().members().size(), 300U);
}

TEST_F(RecordForger, MayShowOnlySoManySignaturesEvenGoodOnes) {
  const std::uint64_t before = verified();
  MemberRecord record = stranger(1, false);
  for (std::size_t i = 0; i < 5000; ++i) {
    ++record.incarnation;
    network_.node(kHostile).authority.sign(record);
    say({record});
  }
  EXPECT_LE(verified(), before + 513);
  EXPECT_GT(victim().counters().records_dropped, 4000U);
}

TEST_F(RecordForger, CannotBringBackWhoLeftInThatLife) {
  MemberRecord left = stranger(1, false);
  left.left = true;
  network_.node(kHostile).authority.sign(left);
  say({left});
  ASSERT_EQ(victim().find(left.id)->state(), MemberState::kLeft);
  MemberRecord hearsay = stranger(1, false);
  for (const MemberState state : {MemberState::kAlive, MemberState::kSuspect, MemberState::kDead}) {
    hearsay.state = state;
    say({hearsay});
    EXPECT_EQ(victim().find(left.id)->state(), MemberState::kLeft) << "LEFT beats hearsay";
  }
}

}  // namespace
}  // namespace kith::gossip::testing
