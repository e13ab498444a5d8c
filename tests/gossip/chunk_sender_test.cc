// Chunks under credit: the window holds whatever happens, results go first, nothing is copied or
// left over.
#include "gossip/exchange/chunk_sender.h"

#include <gtest/gtest.h>

#include "gossip/exchange/chunk_collector.h"
#include "tests/gossip/dialogue.h"

namespace kith::gossip {
namespace {

using schema::Stream;

constexpr unsigned kWindow = 4;

ExchangeId id(std::uint64_t sequence) { return {toy_id(1), 1, sequence}; }

Slice payload_of(std::size_t bytes) { return Slice::copy_of(std::vector<std::byte>(bytes)); }

struct Sent {
  std::uint64_t sequence;
  std::uint32_t index;
  bool operator==(const Sent&) const = default;
};
std::vector<Sent> flush(ChunkSender& sender) {
  std::vector<Outgoing> out;
  sender.flush(out);
  std::vector<Sent> sent;
  for (const Outgoing& letter : out) {
    const auto& chunk = std::get<schema::Chunk>(letter.message);
    sent.push_back({chunk.e.sequence, chunk.index});
  }
  return sent;
}
std::vector<std::uint64_t> bits(std::uint64_t word) { return {word}; }

TEST(ChunkSender, SendsNoMoreThanTheWindowOverAllStreamsOfALink) {
  ChunkSender sender(kWindow);
  sender.open(toy_id(2), id(1), Stream::kProposal, payload_of(30), 10);
  sender.open(toy_id(2), id(2), Stream::kProposal, payload_of(30), 10);
  EXPECT_EQ(flush(sender), (std::vector<Sent>{{1, 0}, {1, 1}, {1, 2}, {2, 0}}));
  EXPECT_EQ(sender.outstanding(toy_id(2)), kWindow);
  EXPECT_TRUE(sender.credit(toy_id(2), id(1), Stream::kProposal, bits(0b011)));
  EXPECT_EQ(flush(sender), (std::vector<Sent>{{2, 1}, {2, 2}}));
}

TEST(ChunkSender, LinksDoNotShareTheirWindows) {
  ChunkSender sender(1);
  sender.open(toy_id(2), id(1), Stream::kProposal, payload_of(30), 10);
  sender.open(toy_id(3), id(2), Stream::kProposal, payload_of(30), 10);
  EXPECT_EQ(flush(sender).size(), 2U);
}

TEST(ChunkSender, ResultsGoBeforeProposals) {
  ChunkSender sender(kWindow);
  sender.open(toy_id(2), id(1), Stream::kProposal, payload_of(60), 10);
  sender.open(toy_id(2), id(2), Stream::kResult, payload_of(20), 10);
  EXPECT_EQ(flush(sender), (std::vector<Sent>{{2, 0}, {2, 1}, {1, 0}, {1, 1}}));
}

TEST(ChunkSender, ChunksAreSubSlicesOfThePayload) {
  ChunkSender sender(kWindow);
  const Slice payload = payload_of(25);
  sender.open(toy_id(2), id(1), Stream::kProposal, payload, 10);
  std::vector<Outgoing> out;
  sender.flush(out);
  ASSERT_EQ(out.size(), 3U);
  EXPECT_EQ(out[1].payload.data(), payload.data() + 10);
  EXPECT_EQ(out[2].payload.size(), 5U);
}

TEST(ChunkSender, RepeatedStaleAndForeignCreditsDoNoHarm) {
  ChunkSender sender(kWindow);
  sender.open(toy_id(2), id(1), Stream::kProposal, payload_of(60), 10);
  flush(sender);
  EXPECT_TRUE(sender.credit(toy_id(2), id(1), Stream::kProposal, bits(0b11)));
  EXPECT_FALSE(sender.credit(toy_id(2), id(1), Stream::kProposal, bits(0b11)));
  EXPECT_FALSE(sender.credit(toy_id(2), id(1), Stream::kProposal, bits(0b01)));
  EXPECT_FALSE(sender.credit(toy_id(3), id(1), Stream::kProposal, bits(0b1111)));
  EXPECT_FALSE(sender.credit(toy_id(2), id(9), Stream::kProposal, bits(0b1111)));
  EXPECT_EQ(sender.outstanding(toy_id(2)), 2U);
  EXPECT_EQ(flush(sender).size(), 2U);
}

TEST(ChunkSender, CreditBeyondTheChunksIsIgnored) {
  ChunkSender sender(kWindow);
  sender.open(toy_id(2), id(1), Stream::kProposal, payload_of(20), 10);
  flush(sender);
  EXPECT_TRUE(sender.credit(toy_id(2), id(1), Stream::kProposal,
                            std::vector<std::uint64_t>(64, ~std::uint64_t{0})));
  EXPECT_EQ(sender.outstanding(toy_id(2)), 0U);
  EXPECT_TRUE(sender.complete(id(1), Stream::kProposal));
}

TEST(ChunkSender, ResendTakesTheLastCreditAtItsWord) {
  ChunkSender sender(kWindow);
  sender.open(toy_id(2), id(1), Stream::kProposal, payload_of(40), 10);
  flush(sender);
  sender.credit(toy_id(2), id(1), Stream::kProposal, bits(0b0111));
  sender.credit(toy_id(2), id(1), Stream::kProposal, bits(0b0100));  // it has lost two
  sender.resend(id(1), Stream::kProposal);
  EXPECT_EQ(flush(sender), (std::vector<Sent>{{1, 0}, {1, 1}, {1, 3}}));
  EXPECT_EQ(sender.outstanding(toy_id(2)), 3U);
}

TEST(ChunkSender, ClosingReturnsTheCredit) {
  ChunkSender sender(kWindow);
  sender.open(toy_id(2), id(1), Stream::kProposal, payload_of(80), 10);
  sender.open(toy_id(2), id(2), Stream::kProposal, payload_of(30), 10);
  flush(sender);
  EXPECT_TRUE(sender.close(id(1), Stream::kProposal));
  EXPECT_EQ(flush(sender), (std::vector<Sent>{{2, 0}, {2, 1}, {2, 2}}));
  EXPECT_FALSE(sender.close(id(1), Stream::kProposal));
}

TEST(ChunkSender, PauseReturnsTheCreditAndResendGoesOn) {
  ChunkSender sender(kWindow);
  sender.open(toy_id(2), id(1), Stream::kResult, payload_of(80), 10);
  flush(sender);
  sender.pause(id(1), Stream::kResult);
  EXPECT_EQ(sender.outstanding(toy_id(2)), 0U);
  EXPECT_TRUE(flush(sender).empty());
  sender.credit(toy_id(2), id(1), Stream::kResult, bits(0b1));
  sender.resend(id(1), Stream::kResult);
  EXPECT_EQ(flush(sender), (std::vector<Sent>{{1, 1}, {1, 2}, {1, 3}, {1, 4}}));
}

TEST(ChunkSender, KnowsWhatHasNeverLeft) {
  ChunkSender sender(kWindow);
  sender.open(toy_id(2), id(1), Stream::kProposal, payload_of(60), 10);
  flush(sender);
  EXPECT_FALSE(sender.handed_over(id(1), Stream::kProposal));
  sender.credit(toy_id(2), id(1), Stream::kProposal, bits(0b11));
  flush(sender);
  EXPECT_TRUE(sender.handed_over(id(1), Stream::kProposal));
}

TEST(ChunkSender, KeepsNothingOfClosedStreams) {
  ChunkSender sender(kWindow);
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    sender.open(toy_id(2), id(i), Stream::kProposal, payload_of(60), 10);
    flush(sender);
    sender.close(id(i), Stream::kProposal);
    flush(sender);
  }
  EXPECT_EQ(sender.stream_count(), 0U);
  EXPECT_EQ(sender.link_count(), 0U);
}

// Random calls; a model that only counts checks the window.
TEST(ChunkSender, WindowHoldsUnderRandomCalls) {
  Random random(3);
  ChunkSender sender(kWindow);
  std::vector<std::uint64_t> open;
  std::uint64_t next = 1;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t what = random.below(5);
    const std::uint64_t e = open.empty() ? 0 : open[random.below(open.size())];
    if (what == 0 && open.size() < 6) {
      const Stream stream = next % 2 == 0 ? Stream::kResult : Stream::kProposal;
      sender.open(toy_id(2), id(next), stream, payload_of(10 + random.below(90)), 10);
      open.push_back(next++);
    }
    const Stream stream = e % 2 == 0 ? Stream::kResult : Stream::kProposal;
    if (what == 1) sender.credit(toy_id(2), id(e), stream, bits(random.next()));
    if (what == 2) sender.resend(id(e), stream);
    if (what == 3) sender.pause(id(e), stream);
    if (what == 4 && e != 0 && random.chance(0.3)) {
      sender.close(id(e), stream);
      std::erase(open, e);
    }
    flush(sender);
    ASSERT_LE(sender.outstanding(toy_id(2)), kWindow);
  }
  for (const std::uint64_t e : open) {
    sender.close(id(e), e % 2 == 0 ? Stream::kResult : Stream::kProposal);
  }
  flush(sender);
  EXPECT_EQ(sender.link_count(), 0U);
}

TEST(ChunkCollector, TakesChunksInAnyOrderOnce) {
  ChunkCollector chunks(25, 10);
  EXPECT_EQ(chunks.take(2, payload_of(5)), ChunkCollector::Take::kTaken);
  EXPECT_EQ(chunks.take(0, payload_of(10)), ChunkCollector::Take::kTaken);
  EXPECT_EQ(chunks.take(0, payload_of(10)), ChunkCollector::Take::kDuplicate);
  EXPECT_FALSE(chunks.complete());
  EXPECT_EQ(chunks.received(), bits(0b101));
  EXPECT_EQ(chunks.take(1, payload_of(10)), ChunkCollector::Take::kTaken);
  EXPECT_TRUE(chunks.complete());
  EXPECT_EQ(chunks.payload().size(), 25U);
}

TEST(ChunkCollector, RefusesWrongSizesAndIndices) {
  ChunkCollector chunks(25, 10);
  EXPECT_EQ(chunks.take(3, payload_of(10)), ChunkCollector::Take::kInvalid);
  EXPECT_EQ(chunks.take(~0U, payload_of(10)), ChunkCollector::Take::kInvalid);
  EXPECT_EQ(chunks.take(2, payload_of(10)), ChunkCollector::Take::kInvalid);
  EXPECT_EQ(chunks.take(0, payload_of(9)), ChunkCollector::Take::kInvalid);
  EXPECT_EQ(chunks.take(0, Slice()), ChunkCollector::Take::kInvalid);
  EXPECT_EQ(chunks.taken(), 0U);
}

TEST(Chunking, BoundsAreThoseOfTheWire) {
  EXPECT_TRUE(is_sane_chunking(1, 1));
  EXPECT_FALSE(is_sane_chunking(0, 1));
  EXPECT_FALSE(is_sane_chunking(1, 0));
  EXPECT_FALSE(is_sane_chunking(1, schema::kChunkBytesMax + 1));
  EXPECT_TRUE(is_sane_chunking(schema::kChunksPerPayloadMax, 1));
  EXPECT_FALSE(is_sane_chunking(schema::kChunksPerPayloadMax + 1, 1));
  EXPECT_FALSE(is_sane_chunking(~std::uint64_t{0}, schema::kChunkBytesMax));
}

}  // namespace
}  // namespace kith::gossip
