// What messages cost, as schema/README.md and kith.capnp say it, and that nothing exceeds 64 KiB.

#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "schema/codec.h"
#include "tests/schema/samples.h"

namespace kith::schema {
namespace {

TEST(WireSize, OfFixedSizeMessagesIsAsDocumented) {
  const std::map<std::string, std::size_t> documented = {
      {"CHALLENGE", 112},     {"FINAL", 232},  {"PROPOSE", 232},
      {"CHUNK", 96},          {"RESULT", 144}, {"ACK", 96},
      {"BUSY", 96},           {"ABORTED", 96}, {"STATE_HEADER", 168},
      {"STATE_REQUEST", 176}, {"DIGEST", 560}};
  for (const Message& message : sample_messages()) {
    const std::size_t bytes = encode(message).size();
    std::printf("%-14s %5zu bytes\n", name_of(message), bytes);
    const auto found = documented.find(name_of(message));
    if (found == documented.end()) continue;
    EXPECT_EQ(bytes, found->second) << name_of(message);
  }
}

MemberRecord largest_record() {
  MemberRecord record;
  record.name = std::string(kNameBytesMax, 'n');
  record.control_address = record.bulk_address = record.http_address =
      std::string(kAddressBytesMax, 'a');
  record.version_text = std::string(kVersionTextBytesMax, 'v');
  return record;
}

Facts largest_facts() {
  return Facts(kFactsMax,
               {std::string(kFactNameBytesMax, 'f'), std::string(kFactValueBytesMax, 'v')});
}

TEST(WireSize, OfTheLargestHelloStaysBelow64KiB) {
  Hello hello;
  hello.cluster = hello.run_id = std::string(kNameBytesMax, 'c');
  hello.facts = largest_facts();
  hello.record = largest_record();
  EXPECT_LE(encode(hello).size(), kHeaderBytesMax);
}

std::size_t carried(const Welcome& welcome) {
  const auto bytes = encode(welcome);
  EXPECT_LE(bytes.size(), kHeaderBytesMax);
  const auto decoded = decode(bytes);
  EXPECT_TRUE(decoded);
  const auto& records = std::get<Welcome>(*decoded).records;
  EXPECT_TRUE(std::equal(records.begin(), records.end(), welcome.records.begin()));
  return records.size();
}

TEST(WireSize, OfAWelcomeIsKeptByLeavingOutTheLastRecords) {
  Welcome welcome;
  welcome.record = largest_record();
  welcome.records.assign(kWelcomeRecordsMax, largest_record());
  welcome.facts = largest_facts();
  const std::size_t count = carried(welcome);
  EXPECT_LT(count, kWelcomeRecordsMax);
  // As many as fit: the space left over is less than one more record takes.
  welcome.records.resize(count);
  welcome.records.emplace_back();
  welcome.records.back().version_text = "small";
  const std::size_t bytes = encode(welcome).size();
  EXPECT_GT(bytes + 1500, kHeaderBytesMax);
}

TEST(WireSize, OfAWelcomeWithOrdinaryRecordsLeavesNoneOut) {
  Welcome welcome = std::get<Welcome>(sample_messages()[2]);
  welcome.records.assign(kWelcomeRecordsMax, welcome.record);
  EXPECT_EQ(carried(welcome), kWelcomeRecordsMax);
}

// Every number of records from none to all: the estimate of what fits agrees with what is written.
TEST(WireSize, OfAWelcomeIsEstimatedExactly) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    Welcome welcome;
    welcome.records.assign(kWelcomeRecordsMax, largest_record());
    for (MemberRecord& record : welcome.records) {
      record.name.resize(random.below(kNameBytesMax + 1));
      record.http_address.resize(random.below(kAddressBytesMax + 1));
    }
    welcome.facts.assign(random.below(kFactsMax + 1),
                         {"name", std::string(random.below(513), 'v')});
    const std::size_t count = carried(welcome);
    ASSERT_LT(count, kWelcomeRecordsMax);
    const std::size_t free_bytes = kHeaderBytesMax - encode(welcome).size();
    EXPECT_LT(free_bytes, 1500U);
  }
}

// A membership message with this news: 64 records and accusations at most, so records may have to
// go.
std::vector<Message> membership_with(const News& news) {
  Sync sync;
  sync.buckets.resize(kDigestBuckets);
  sync.entries.resize(kSyncEntriesMax);
  sync.wanted.resize(kSyncWantedMax);
  sync.news = news;
  return {Ping{1, news},     Pong{1, {}, news}, PingRequest{1, {}, news},
          Nack{1, {}, news}, Gossip{news},      sync};
}

const News& news_of(const Message& message) {
  return std::visit(
      [](const auto& body) -> const News& {
        static const News kNone;
        if constexpr (requires { body.news; })
          return body.news;
        else
          return kNone;
      },
      message);
}

// The message as it arrives: everything is there but the last records, and one more would not have
// fitted.
void expect_only_records_left_out(const Message& message) {
  const auto bytes = encode(message);
  ASSERT_LE(bytes.size(), kHeaderBytesMax);
  const auto decoded = decode(bytes);
  ASSERT_TRUE(decoded) << decoded.error().message;
  const News& sent = news_of(message);
  const News& arrived = news_of(*decoded);
  EXPECT_EQ(arrived.accusations, sent.accusations) << name_of(message);
  ASSERT_LT(arrived.records.size(), sent.records.size()) << name_of(message);
  EXPECT_GT(arrived.records.size(), 10U) << name_of(message);
  EXPECT_TRUE(std::equal(arrived.records.begin(), arrived.records.end(), sent.records.begin()));
  EXPECT_GT(bytes.size() + 1500, kHeaderBytesMax) << name_of(message);
}

TEST(WireSize, OfNewsIsKeptByLeavingOutTheLastRecords) {
  News news;
  news.records.assign(kNewsRecordsMax, largest_record());
  const Accusation accusation = std::get<Gossip>(sample_messages()[19]).news.accusations[0];
  news.accusations.assign(kNewsAccusationsMax, accusation);
  Random random(5);
  for (int round = 0; round < 50; ++round) {
    for (const Message& message : membership_with(news)) expect_only_records_left_out(message);
    for (MemberRecord& record : news.records)
      record.name.assign(random.below(kNameBytesMax + 1), 'n');
    news.accusations.assign(random.below(kNewsAccusationsMax + 1), accusation);
  }
}

TEST(WireSize, OfTheLargestViewStaysBelow64KiB) {
  View view{ViewKind::kShuffle, kViewTtlMax, 1, {}, {}};
  view.records.assign(kViewRecordsMax, largest_record());
  const auto decoded = decode(encode(view));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_TRUE(std::get<View>(*decoded) == view);
}

// The figures of kith.capnp: what a record, an accusation, an entry and a wanted id add.
TEST(WireSize, OfMembershipMessagesIsAsDocumented) {
  constexpr std::size_t kEmptyNews = 40;
  EXPECT_EQ(encode(Ping{}).size(), 48U + kEmptyNews);
  EXPECT_EQ(encode(Pong{}).size(), 88U + kEmptyNews);
  EXPECT_EQ(encode(PingRequest{}).size(), 88U + kEmptyNews);
  EXPECT_EQ(encode(Nack{}).size(), 88U + kEmptyNews);
  EXPECT_EQ(encode(Gossip{}).size(), 40U + kEmptyNews);
  const News news = std::get<Gossip>(sample_messages()[19]).news;
  EXPECT_EQ(encode(Gossip{{{}, {2, news.accusations[0]}}}).size() -
                encode(Gossip{{{}, {1, news.accusations[0]}}}).size(),
            160U);
  Sync sync;
  EXPECT_EQ(encode(sync).size(), 80U + kEmptyNews);
  sync.entries.resize(10);
  EXPECT_EQ(encode(sync).size(), 80U + kEmptyNews + 10 * 56);
  sync.wanted.resize(10);
  EXPECT_EQ(encode(sync).size(), 80U + kEmptyNews + 10 * 56 + 10 * 32);
}

TEST(WireSize, OfATallyIsAsDocumented) {
  Tally tally;
  EXPECT_EQ(encode(tally).size(), 104U);
  tally.entries.resize(kTallyEntriesMax);
  EXPECT_EQ(encode(tally).size(), 104U + kTallyEntriesMax * 104);
}

}  // namespace
}  // namespace kith::schema
