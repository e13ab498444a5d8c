// State transfer: every item arrives whole and verified, or the fetch ends with the reason.
#include "gossip/transfer/state_transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/hash.h"
#include "tests/gossip/transfers.h"

namespace kith::gossip {
namespace {

using schema::StateItem;
using testing::HasSubstr;

const FetchOrder kOneFragment = order_of({{StateItem::kFragment, 0, false}});

std::vector<ItemKey> put_some(ToyDonor& donor) {
  const std::vector<ItemKey> keys{{StateItem::kFragment, 0, false},
                                  {StateItem::kFragment, 1, false},
                                  {StateItem::kIntegers, 0, false},
                                  {StateItem::kOptimizer, 2, false}};
  donor.put(keys[0], 95);
  donor.put(keys[1], 10);
  donor.put(keys[2], 0);  // a model without integer buffers
  donor.put(keys[3], 31);
  return keys;
}

void expect_all(Transfers& t, const std::vector<ItemKey>& keys, const std::string& what = "") {
  const auto end = t[0].take_end();
  ASSERT_TRUE(end.has_value()) << what;
  EXPECT_TRUE(*end) << what << (*end ? "" : end->error().message);
  std::set<ItemKey> got;
  for (const auto& fetched : t[0].take_fetched()) {
    EXPECT_TRUE(got.insert(fetched.key).second) << what;
    const Slice bytes = fetched.bytes.contiguous();
    const Slice& want = t.donor(1).items[fetched.key];
    EXPECT_TRUE(std::ranges::equal(bytes.bytes(), want.bytes())) << what;
    EXPECT_EQ(fetched.header.cluster_samples, 77U);
  }
  EXPECT_EQ(got.size(), keys.size()) << what;
  EXPECT_FALSE(t[0].fetching());
}

TEST(StateTransfer, FetchesEveryItemWhole) {
  Transfers t;
  const auto keys = put_some(t.donor(1));
  t[0].fetch(t.now, {toy_id(2)}, order_of(keys));
  EXPECT_TRUE(t[0].fetching());
  t.deliver();
  expect_all(t, keys);
  EXPECT_FALSE(t[0].take_end().has_value()) << "said once";
}

TEST(StateTransfer, AFetchOfNothingEndsAtOnce) {
  Transfers t;
  t[0].fetch(t.now, {toy_id(2)}, FetchOrder{});
  expect_all(t, {});
}

TEST(StateTransfer, EverySingleAndDoubleAccidentIsRepaired) {
  std::size_t letters = 0;
  {
    Transfers t;
    t[0].fetch(t.now, {toy_id(2)}, order_of(put_some(t.donor(1))));
    t.deliver();
    letters = t.number;
  }
  for (const Fate fate : {Fate::kDrop, Fate::kTwice}) {
    for (std::size_t first = 0; first < letters; ++first) {
      for (std::size_t second = first; second < letters; ++second) {
        Transfers t;
        const auto keys = put_some(t.donor(1));
        t.rule = [&](const Outgoing&, std::size_t n) {
          return n == first || n == second ? fate : Fate::kPass;
        };
        t[0].fetch(t.now, {toy_id(2)}, order_of(keys));
        t.advance(4s);
        expect_all(t, keys, std::to_string(first) + " and " + std::to_string(second));
      }
    }
  }
}

TEST(StateTransfer, SendsNoMoreThanItsWindow) {
  Transfers t;
  t.donor(1).put({StateItem::kFragment, 0, false}, 500);
  std::size_t chunks = 0;
  t.rule = [&](const Outgoing& out, std::size_t) {
    chunks += std::holds_alternative<schema::Chunk>(out.message) ? 1 : 0;
    return std::holds_alternative<schema::Credit>(out.message) ? Fate::kDrop : Fate::kPass;
  };
  t[0].fetch(t.now, {toy_id(2)}, kOneFragment);
  t.deliver();
  EXPECT_EQ(chunks, 3U);
}

TEST(StateTransfer, ABusyItemIsAskedForAgain) {
  Transfers t;
  const auto keys = put_some(t.donor(1));
  t.donor(1).busy = 3;
  t[0].fetch(t.now, {toy_id(2)}, order_of(keys));
  t.advance(3s);
  expect_all(t, keys);
}

TEST(StateTransfer, AnAbsentItemEndsTheFetchWithItsName) {
  Transfers t;
  put_some(t.donor(1));
  t[0].fetch(t.now, {toy_id(2)}, order_of({{StateItem::kFragment, 9, false}}));
  t.deliver();
  const auto end = t[0].take_end();
  ASSERT_TRUE(end && !*end);
  EXPECT_EQ(end->error().code, ErrorCode::kNotFound);
  EXPECT_THAT(end->error().message, HasSubstr("fragment 9"));
}

TEST(StateTransfer, ADonorThatLiesAboutItsHashIsCaught) {
  Transfers t;
  const auto keys = put_some(t.donor(1));
  t.donor(1).lie = true;
  t[0].fetch(t.now, {toy_id(2)}, order_of(keys));
  t.deliver();
  const auto end = t[0].take_end();
  ASSERT_TRUE(end && !*end);
  EXPECT_EQ(end->error().code, ErrorCode::kCorrupt);
}

TEST(StateTransfer, AnItemThatIsNotTheDeclaredOneIsRefusedBeforeItsBytesCome) {
  Transfers t;
  const auto keys = put_some(t.donor(1));
  Hash256 declared;
  declared.bytes[0] = 1;
  t[0].fetch(t.now, {toy_id(2)}, {{keys[0]}, {{keys[0], {.hash = declared}}}});
  std::size_t chunks = 0;
  t.rule = [&](const Outgoing& out, std::size_t) {
    chunks += std::holds_alternative<schema::Credit>(out.message) ? 1 : 0;
    return Fate::kPass;
  };
  t.deliver();
  const auto end = t[0].take_end();
  ASSERT_TRUE(end && !*end);
  EXPECT_THAT(end->error().message, HasSubstr("not the declared one"));
  EXPECT_EQ(chunks, 0U);
}

TEST(StateTransfer, ExpectedHashesThatMatchAreAccepted) {
  Transfers t;
  const auto keys = put_some(t.donor(1));
  std::map<ItemKey, Expected> expected;
  for (const ItemKey& key : keys) expected[key].hash = hash_bytes(t.donor(1).items[key].bytes());
  t[0].fetch(t.now, {toy_id(2)}, {keys, expected});
  t.deliver();
  expect_all(t, keys);
}

TEST(StateTransfer, GivesUpOnASilentDonor) {
  Transfers t;
  t.rule = [](const Outgoing&, std::size_t) { return Fate::kDrop; };
  t[0].fetch(t.now, {toy_id(2)}, kOneFragment);
  t.advance(4900ms);
  EXPECT_TRUE(t[0].fetching());
  t.advance(200ms);
  const auto end = t[0].take_end();
  ASSERT_TRUE(end && !*end);
  EXPECT_THAT(end->error().message, HasSubstr("sent nothing for 5 s"));
}

TEST(StateTransfer, IsPatientWhereAnswersTakeLong) {
  TransferSettings wan = Transfers::small_chunks();
  wan.retry_interval = 10s;
  Transfers t(2, wan);
  t.rule = [](const Outgoing&, std::size_t) { return Fate::kDrop; };
  t[0].fetch(t.now, {toy_id(2)}, kOneFragment);
  t.advance(119s);
  EXPECT_TRUE(t[0].fetching());
  t.advance(2s);
  EXPECT_FALSE(t[0].fetching());
}

TEST(StateTransfer, EndsWhenTheDonorIsGone) {
  Transfers t;
  t[0].fetch(t.now, {toy_id(2)}, order_of(put_some(t.donor(1))));
  t[0].peer_gone(t.now, toy_id(3));
  EXPECT_TRUE(t[0].fetching());
  t[0].peer_gone(t.now, toy_id(2));
  EXPECT_FALSE(t[0].fetching());
  const auto end = t[0].take_end();
  ASSERT_TRUE(end && !*end);
  EXPECT_THAT(end->error().message, HasSubstr("gone"));
}

TEST(StateTransfer, ADonorServesFewAndTellsTheRestBusyUntilAPlaceIsFree) {
  Transfers t(4);
  for (std::size_t i = 0; i < 4; ++i) put_some(t.donor(i));
  const std::vector<ItemKey> keys{{StateItem::kFragment, 0, false}};
  for (const std::size_t fetcher : {0U, 2U, 3U})
    t[fetcher].fetch(t.now, {toy_id(2)}, order_of(keys));
  t.deliver();
  EXPECT_FALSE(t[0].fetching());
  EXPECT_FALSE(t[2].fetching());
  EXPECT_TRUE(t[3].fetching()) << "two are served at once";
  t.advance(2s);
  EXPECT_FALSE(t[3].fetching());
  EXPECT_TRUE(*t[3].take_end());
}

TEST(StateTransfer, AFetcherThatNeverCollectsLosesItsPlace) {
  Transfers t(2);
  put_some(t.donor(1));
  t.rule = [](const Outgoing& out, std::size_t) {
    return out.to == toy_id(1) ? Fate::kDrop : Fate::kPass;
  };
  t[0].fetch(t.now, {toy_id(2)}, kOneFragment);
  t.deliver();
  EXPECT_LT(t[1].next_deadline(), TimePoint::max());
  t[0].cancel();
  t.advance(6s);
  EXPECT_EQ(t[1].next_deadline(), TimePoint::max()) << "nothing is kept for it";
}

TEST(StateTransfer, CancelTellsTheDonorAndSaysNothingMore) {
  Transfers t;
  const auto keys = put_some(t.donor(1));
  t[0].fetch(t.now, {toy_id(2)}, order_of(keys));
  t[0].cancel();
  t.advance(3s);
  EXPECT_FALSE(t[0].fetching());
  EXPECT_FALSE(t[0].take_end().has_value());
  EXPECT_TRUE(t[0].take_fetched().empty());
  t[0].fetch(t.now, {toy_id(2)}, order_of(keys));
  t.advance(1s);
  expect_all(t, keys);
}

TEST(StateTransfer, AnotherRunIsRefused) {
  Transfers::other_run = 1;
  Transfers t;
  Transfers::other_run = ~std::size_t{0};
  t[0].fetch(t.now, {toy_id(2)}, order_of(put_some(t.donor(1))));
  t.deliver();
  const auto end = t[0].take_end();
  ASSERT_TRUE(end && !*end);
  EXPECT_THAT(end->error().message, HasSubstr("another run or model"));
  EXPECT_EQ(t.donor(1).asked, 0);
}

TEST(StateTransfer, IgnoresExchangesAndForeignAnswers) {
  Transfers t(3);
  put_some(t.donor(1));
  t.rule = [](const Outgoing&, std::size_t) { return Fate::kDrop; };
  t[0].fetch(t.now, {toy_id(2)}, kOneFragment);
  const ExchangeId e{toy_id(1), 1, kTransferBit | 1};
  t[0].on_message(t.now, toy_id(3), schema::Aborted{e, schema::AbortReason::kUnknown}, {});
  t[0].on_message(t.now, toy_id(3), schema::StateHeader{.e = e, .payload_bytes = 4}, {});
  t[0].on_message(t.now, toy_id(2),
                  schema::Aborted{{toy_id(1), 1, 1}, schema::AbortReason::kUnknown}, {});
  EXPECT_TRUE(t[0].fetching());
  schema::StateRequest forged;
  forged.e = e;  // node 1's transfer, asked for by node 3
  t[1].on_message(t.now, toy_id(3), forged, {});
  EXPECT_TRUE(t[1].take_outgoing().empty());
}

TEST(StateTransfer, HeadersThatDeclareTheImpossibleAllocateNothing) {
  Transfers t;
  t.rule = [](const Outgoing&, std::size_t) { return Fate::kDrop; };
  t[0].fetch(t.now, {toy_id(2)}, kOneFragment);
  const ExchangeId e{toy_id(1), 1, kTransferBit | 1};
  for (const std::uint64_t bytes : {std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    t[0].on_message(t.now, toy_id(2),
                    schema::StateHeader{.e = e, .payload_bytes = bytes, .chunk_bytes = 1U << 20},
                    {});
  }
  t[0].on_message(t.now, toy_id(2), schema::Chunk{e, schema::Stream::kState, 0},
                  Slice::copy_of(std::vector<std::byte>(10)));
  EXPECT_TRUE(t[0].fetching());
  EXPECT_TRUE(t[0].take_fetched().empty());
}

}  // namespace
}  // namespace kith::gossip
