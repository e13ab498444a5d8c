// Version N with N-1, as bytes: what an earlier version sent is read, what a later one may send is
// read or ignored.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "schema/codec.h"
#include "tests/schema/grown_bytes.h"
#include "tests/schema/samples.h"
#include "tests/schema/wire_bytes.h"

namespace kith::schema {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> corpus(std::size_t kind, const char* name) {
  std::ifstream in(fs::path(KITH_SOURCE_DIR) / "tests/fuzz/corpus" / kind_name(kind) / name,
                   std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Before boot_nonce, left, shares_data and depth.
void forget_later_fields(MemberRecord& record) {
  record.boot_nonce = 0;
  record.left = record.shares_data = false;
  record.depth = 0;
}
Message without_later_fields(Message message) {
  std::visit(
      [](auto& body) {
        if constexpr (requires { body.record; }) forget_later_fields(body.record);
        if constexpr (requires { body.records; })
          for (MemberRecord& record : body.records) forget_later_fields(record);
      },
      message);
  return message;
}
// Before TALLY.
Message without_tallies(Message message) {
  if (auto* hello = std::get_if<Hello>(&message)) hello->tallies = false;
  if (auto* welcome = std::get_if<Welcome>(&message)) welcome->tallies = false;
  return message;
}
// Before probes.
Message without_probes(Message message) {
  if (auto* hello = std::get_if<Hello>(&message)) {
    hello->probe = false;
    hello->dial_back_port = 0;
  }
  if (auto* welcome = std::get_if<Welcome>(&message)) welcome->about.reset();
  return without_tallies(std::move(message));
}

TEST(EarlierVersion, IsReadWithZerosInTheFieldsThatItLacked) {
  for (const std::size_t kind : {0, 2, 4}) {  // HELLO, WELCOME, LEAVE
    const auto decoded = decode(corpus(kind, "earlier-1"));
    ASSERT_TRUE(decoded) << kind_name(kind) << ": " << decoded.error().message;
    EXPECT_TRUE(*decoded == without_probes(without_later_fields(sample_messages()[kind])))
        << kind_name(kind);
  }
}

TEST(EarlierVersion, KnowsNoProbesAndIsReadAsAMember) {
  for (const std::size_t kind : {0, 2}) {  // HELLO, WELCOME
    const auto decoded = decode(corpus(kind, "earlier-2"));
    ASSERT_TRUE(decoded) << kind_name(kind) << ": " << decoded.error().message;
    EXPECT_TRUE(*decoded == without_probes(sample_messages()[kind])) << kind_name(kind);
  }
}

TEST(EarlierVersion, UnderstandsNoTally) {
  for (const std::size_t kind : {0, 2}) {  // HELLO, WELCOME
    const auto decoded = decode(corpus(kind, "earlier-3"));
    ASSERT_TRUE(decoded) << kind_name(kind) << ": " << decoded.error().message;
    EXPECT_TRUE(*decoded == without_tallies(sample_messages()[kind])) << kind_name(kind);
  }
}

TEST(LaterVersion, WithMoreFieldsInEveryStructIsReadAsBefore) {
  for (const Message& message : sample_messages()) {
    const auto bytes = grown(encode(message));
    ASSERT_GT(bytes.size(), encode(message).size() + 24);
    const auto decoded = decode(bytes);
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_TRUE(*decoded == message) << name_of(message);
  }
}

constexpr std::uint16_t kAfterTheLast = wire::Envelope::TALLY + 1;

// kIncompatible is what receivers count and pass over; anything else would be held against the
// peer.
TEST(LaterVersion, WithAMessageThatThisOneLacksIsIncompatibleAndNotCorrupt) {
  for (const Message& message : sample_messages()) {
    for (const std::uint16_t number : {kAfterTheLast, std::uint16_t{1000}, std::uint16_t{65535}}) {
      auto bytes = grown(encode(message));
      std::memcpy(bytes.data() + 16, &number, sizeof number);  // the union's discriminant
      const auto decoded = decode(bytes);
      ASSERT_FALSE(decoded);
      EXPECT_EQ(decoded.error().code, ErrorCode::kIncompatible) << decoded.error().message;
      EXPECT_NE(decoded.error().message.find(std::to_string(number)), std::string::npos)
          << decoded.error().message;
    }
  }
}

TEST(RetiredMessage, IsIncompatibleAndNotCorrupt) {
  const auto decoded =
      decode(build([](wire::Envelope::Builder e) { e.initHeartbeat().setEcho(7); }));
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, ErrorCode::kIncompatible) << decoded.error().message;
}

// Golden bytes of the time before still carry numbers there: see corpus_test.cc.
TEST(RetiredField, IsSentAsZeroAndNotRead) {
  const auto old_digest = build([](wire::Envelope::Builder e) {
    auto digest = e.initDigest();
    digest.initBuckets(kDigestBuckets);
    digest.setObsolete1(7);
  });
  const auto read = decode(old_digest);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(encode(*read),
            build([](wire::Envelope::Builder e) { e.initDigest().initBuckets(kDigestBuckets); }));
  const auto old_news =
      build([](wire::Envelope::Builder e) { e.initGossip().initNews().setObsolete2(7); });
  const auto gossip = decode(old_news);
  ASSERT_TRUE(gossip) << gossip.error().message;
  EXPECT_TRUE(*gossip == Message(Gossip{}));
  EXPECT_NE(encode(*gossip), old_news);
  const auto sent = encode(sample_messages()[19]), golden = corpus(19, "valid");  // GOSSIP
  ASSERT_EQ(sent.size(), golden.size());
  std::size_t words_that_differ = 0;
  for (std::size_t i = 0; i < sent.size(); i += 8)
    if (std::memcmp(sent.data() + i, golden.data() + i, 8) != 0) ++words_that_differ;
  EXPECT_EQ(words_that_differ, 1U) << "the retired number, and nothing else";
}

TEST(LaterVersion, WithAStateThatThisOneLacksIsIncompatibleAndNotCorrupt) {
  const auto decoded = decode(build([](wire::Envelope::Builder e) {
    e.initGossip().initNews().initRecords(2)[1].setState(wire::MemberState(4));
  }));
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, ErrorCode::kIncompatible) << decoded.error().message;
}

}  // namespace
}  // namespace kith::schema
