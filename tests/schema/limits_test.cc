// Values that are well formed and still refused: every limit of messages.h, one step beyond it.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "schema/codec.h"
#include "tests/schema/samples.h"
#include "tests/schema/wire_bytes.h"

namespace kith::schema {
namespace {

using testing::Test;

struct Refused {
  const char* says;
  ErrorCode code;
  std::function<void(wire::Envelope::Builder)> fill;
};

void fill_propose(wire::Propose::Builder p) {
  p.setWeight(0.5);
  p.setPushSum(1.0);
  p.setPayloadBytes(100);
  p.setChunkBytes(10);
}
void fill_result(wire::ResultMessage::Builder r) {
  r.setPayloadBytes(100);
  r.setChunkBytes(10);
}

template <typename Change>
Refused propose(const char* says, Change change, ErrorCode code = ErrorCode::kCorrupt) {
  return {says, code, [change](wire::Envelope::Builder e) {
            auto p = e.initPropose();
            fill_propose(p);
            change(p);
          }};
}
template <typename Change>
Refused result(const char* says, Change change, ErrorCode code = ErrorCode::kCorrupt) {
  return {says, code, [change](wire::Envelope::Builder e) {
            auto r = e.initResult();
            fill_result(r);
            change(r);
          }};
}
template <typename Change>
Refused record(const char* says, Change change, ErrorCode code = ErrorCode::kCorrupt) {
  return {says, code, [change](wire::Envelope::Builder e) {
            auto r = e.initHello().initRecord();
            change(r);
          }};
}

template <typename Change>
Refused accusation(const char* says, Change change) {
  return {says, ErrorCode::kCorrupt, [change](wire::Envelope::Builder e) {
            change(e.initGossip().initNews().initAccusations(2)[0]);
          }};
}

template <typename F>
Refused tally_entry(const char* says, F change) {
  return {says, ErrorCode::kCorrupt,
          [change](wire::Envelope::Builder e) { change(e.initTally().initEntries(2)[1]); }};
}

std::string long_text(std::size_t limit) { return std::string(limit + 1, 'x'); }
const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

std::vector<Refused> refused_numbers() {
  return {
      propose("weight is 0.0", [](auto p) { p.setWeight(0.0); }),
      propose("weight is -0.1", [](auto p) { p.setWeight(-0.1); }),
      propose("weight is 0.50", [](auto p) { p.setWeight(0.500001); }),
      propose(
          "weight is not a finite", [](auto p) { p.setWeight(kNaN); }, ErrorCode::kNonFinite),
      propose(
          "push_sum is not a finite", [](auto p) { p.setPushSum(kInf); }, ErrorCode::kNonFinite),
      propose("chunk_bytes is 0", [](auto p) { p.setChunkBytes(0); }),
      propose("chunk_bytes is 1048577", [](auto p) { p.setChunkBytes(kChunkBytesMax + 1); }),
      propose("payload_bytes is 0", [](auto p) { p.setPayloadBytes(0); }),
      propose("payload_bytes is 40961", [](auto p) { p.setPayloadBytes(40961); }),
      propose("payload_bytes is 18446744073709551615", [](auto p) { p.setPayloadBytes(~0ULL); }),
      result("payload_bytes is 40961", [](auto r) { r.setPayloadBytes(40961); }),
      result("distance_squared is negative", [](auto r) { r.setDistanceSquared(-1.0); }),
      result(
          "distance_squared is not a finite", [](auto r) { r.setDistanceSquared(kNaN); },
          ErrorCode::kNonFinite),
      result(
          "norm_squared is not a finite", [](auto r) { r.setNormSquared(kInf); },
          ErrorCode::kNonFinite),
      record("accuracy is 1.5", [](auto r) { r.setAccuracy(1.5); }),
      record(
          "learning_rate is not a finite", [](auto r) { r.setLearningRate(kNaN); },
          ErrorCode::kNonFinite),
      record("steps_per_second is negative", [](auto r) { r.setStepsPerSecond(-1); }),
      record("shard_index is 3 of 2",
             [](auto r) {
               r.setShardIndex(3);
               r.setShardCount(2);
             }),
      record("record.data_samples is 144115188075855873",
             [](auto r) { r.setDataSamples(kDataSamplesMax + 1); }),
      record("record.shard_samples is 18446744073709551615",
             [](auto r) { r.setShardSamples(~0ULL); }),
      tally_entry("entry.data_samples is 18446744073709542617",
                  [](auto t) { t.setDataSamples(0ULL - 8999); }),
      tally_entry("entry.shard_samples is 144115188075855873",
                  [](auto t) { t.setShardSamples(kDataSamplesMax + 1); }),
      tally_entry("entry.shard_index is 1 of 0", [](auto t) { t.setShardIndex(1); }),
      {"protocol_min is 0", ErrorCode::kCorrupt, [](auto e) { e.initHello(); }},
      {"protocol_min is 3 and protocol_max 2", ErrorCode::kCorrupt,
       [](auto e) {
         auto hello = e.initHello();
         hello.setProtocolMin(3);
         hello.setProtocolMax(2);
       }},
      {"about.wall_seconds is not a finite", ErrorCode::kNonFinite,
       [](auto e) { e.initWelcome().initAbout().setWallSeconds(kNaN); }},
      {"index is 4096", ErrorCode::kCorrupt, [](auto e) { e.initChunk().setIndex(4096); }},
      {"not `left`", ErrorCode::kCorrupt, [](auto e) { e.initLeave(); }},
      {"chunk_bytes is 0", ErrorCode::kCorrupt, [](auto e) { e.initStateHeader(); }},
      accusation("accusation.subject is zero", [](auto a) { a.initAccuser().setW0(1); }),
      accusation("accusation.accuser is zero", [](auto a) { a.initSubject().setW3(1); }),
      accusation("accusation.accuser is the subject",
                 [](auto a) {
                   a.initSubject().setW2(5);
                   a.initAccuser().setW2(5);
                 }),
      {"bucket is 64", ErrorCode::kCorrupt, [](auto e) { e.initSync().initBuckets(1).set(0, 64); }},
      {"bucket is 4294967295", ErrorCode::kCorrupt,
       [](auto e) { e.initSync().initBuckets(64).set(63, 0xFFFFFFFFU); }},
      {"ttl is 17", ErrorCode::kCorrupt,
       [](auto e) {
         auto view = e.initView();
         view.setKind(wire::ViewKind::JOIN);
         view.setTtl(17);
       }},
  };
}

std::vector<Refused> refused_sizes() {
  return {
      record("record.name has 129", [](auto r) { r.setName(long_text(kNameBytesMax)); }),
      record("record.control_address has 257",
             [](auto r) { r.setControlAddress(long_text(kAddressBytesMax)); }),
      record("record.bulk_address has 257",
             [](auto r) { r.setBulkAddress(long_text(kAddressBytesMax)); }),
      record("record.http_address has 257",
             [](auto r) { r.setHttpAddress(long_text(kAddressBytesMax)); }),
      record("record.version_text has 65",
             [](auto r) { r.setVersionText(long_text(kVersionTextBytesMax)); }),
      record("record.name has a control", [](auto r) { r.setName("a\nb"); }),
      record("at byte 1", [](auto r) { r.setName("a\x1b[31m"); }),
      record("is not UTF-8", [](auto r) { r.setName("\xe2(\xa1"); }),  // no continuation
      record("is not UTF-8", [](auto r) { r.setName("caf\xe9"); }),
      record("is not UTF-8", [](auto r) { r.setName("\xc0\xaf"); }),          // over-long
      record("is not UTF-8", [](auto r) { r.setName("\xed\xa0\x80"); }),      // a surrogate
      record("is not UTF-8", [](auto r) { r.setName("\xf4\x90\x80\x80"); }),  // above U+10FFFF
      {"cluster has 129", ErrorCode::kCorrupt,
       [](auto e) { e.initHello().setCluster(long_text(kNameBytesMax)); }},
      {"run_id has 129", ErrorCode::kCorrupt,
       [](auto e) { e.initHello().setRunId(long_text(kNameBytesMax)); }},
      {"facts has 65", ErrorCode::kCorrupt, [](auto e) { e.initHello().initFacts(65); }},
      {"fact name has 65", ErrorCode::kCorrupt,
       [](auto e) { e.initHello().initFacts(1)[0].setName(long_text(kFactNameBytesMax)); }},
      {"fact value has 513", ErrorCode::kCorrupt,
       [](auto e) { e.initWelcome().initFacts(1)[0].setValue(long_text(kFactValueBytesMax)); }},
      {"facts has 65", ErrorCode::kCorrupt, [](auto e) { e.initWelcome().initFacts(65); }},
      {"records has 65", ErrorCode::kCorrupt, [](auto e) { e.initWelcome().initRecords(65); }},
      {"received has 65", ErrorCode::kCorrupt, [](auto e) { e.initCredit().initReceived(65); }},
      {"buckets has 0 elements, not 64", ErrorCode::kCorrupt, [](auto e) { e.initDigest(); }},
      {"buckets has 63 elements, not 64", ErrorCode::kCorrupt,
       [](auto e) { e.initDigest().initBuckets(63); }},
      {"buckets has 65 elements, not 64", ErrorCode::kCorrupt,
       [](auto e) { e.initDigest().initBuckets(65); }},
      {"buckets has 65", ErrorCode::kCorrupt, [](auto e) { e.initSync().initBuckets(65); }},
      {"entries has 513", ErrorCode::kCorrupt, [](auto e) { e.initSync().initEntries(513); }},
      {"entries has 401", ErrorCode::kCorrupt, [](auto e) { e.initTally().initEntries(401); }},
      {"wanted has 65", ErrorCode::kCorrupt, [](auto e) { e.initSync().initWanted(65); }},
      {"SYNC: records has 65", ErrorCode::kCorrupt,
       [](auto e) { e.initSync().initNews().initRecords(65); }},
      {"PING: records has 65", ErrorCode::kCorrupt,
       [](auto e) { e.initPing().initNews().initRecords(65); }},
      {"PONG: accusations has 65", ErrorCode::kCorrupt,
       [](auto e) { e.initPong().initNews().initAccusations(65); }},
      {"PING_REQUEST: records has 65", ErrorCode::kCorrupt,
       [](auto e) { e.initPingRequest().initNews().initRecords(65); }},
      {"NACK: accusations has 65", ErrorCode::kCorrupt,
       [](auto e) { e.initNack().initNews().initAccusations(65); }},
      {"GOSSIP: records has 65", ErrorCode::kCorrupt,
       [](auto e) { e.initGossip().initNews().initRecords(65); }},
      {"VIEW: records has 33", ErrorCode::kCorrupt,
       [](auto e) {
         auto view = e.initView();
         view.setKind(wire::ViewKind::SHUFFLE);
         view.initRecords(33);
       }},
      {"record.name has 129", ErrorCode::kCorrupt,
       [](auto e) { e.initPing().initNews().initRecords(3)[2].setName(long_text(kNameBytesMax)); }},
      {"about.cluster has 129", ErrorCode::kCorrupt,
       [](auto e) { e.initWelcome().initAbout().setCluster(long_text(kNameBytesMax)); }},
      {"about.run_id has 129", ErrorCode::kCorrupt,
       [](auto e) { e.initWelcome().initAbout().setRunId(long_text(kNameBytesMax)); }},
      {"address has 257", ErrorCode::kCorrupt,
       [](auto e) { e.initDialBack().setAddress(long_text(kAddressBytesMax)); }},
      {"detail has 1025", ErrorCode::kCorrupt,
       [](auto e) { e.initReject().setDetail(long_text(kRejectDetailBytesMax)); }},
  };
}

std::vector<Refused> refused_enums() {
  return {
      record(
          "record.state has the unknown value 4", [](auto r) { r.setState(wire::MemberState(4)); },
          ErrorCode::kIncompatible),
      record(
          "record.run_state has the unknown value 6",
          [](auto r) { r.setRunState(wire::RunState(6)); }, ErrorCode::kIncompatible),
      propose(
          "slot has the unknown value 4", [](auto p) { p.setSlot(wire::Slot(4)); },
          ErrorCode::kIncompatible),
      propose(
          "codec has the unknown value 2", [](auto p) { p.setCodec(wire::Codec(2)); },
          ErrorCode::kIncompatible),
      result(
          "codec has the unknown value 65535", [](auto r) { r.setCodec(wire::Codec(65535)); },
          ErrorCode::kIncompatible),
      {"plane has the unknown value 2", ErrorCode::kIncompatible,
       [](auto e) { e.initHello().setPlane(wire::Plane(2)); }},
      {"stream has the unknown value 3", ErrorCode::kIncompatible,
       [](auto e) { e.initChunk().setStream(wire::Stream(3)); }},
      {"stream has the unknown value 3", ErrorCode::kIncompatible,
       [](auto e) { e.initCredit().setStream(wire::Stream(3)); }},
      {"entry.state has the unknown value 4", ErrorCode::kIncompatible,
       [](auto e) { e.initSync().initEntries(1)[0].setState(wire::MemberState(4)); }},
      {"kind has the unknown value 0", ErrorCode::kIncompatible, [](auto e) { e.initView(); }},
      {"kind has the unknown value 10", ErrorCode::kIncompatible,
       [](auto e) { e.initView().setKind(wire::ViewKind(10)); }},
      {"item has the unknown value 4", ErrorCode::kIncompatible,
       [](auto e) { e.initStateRequest().setItem(wire::StateItem(4)); }},
      {"item has the unknown value 4", ErrorCode::kIncompatible,
       [](auto e) { e.initStateHeader().setItem(wire::StateItem(4)); }},
  };
}

void expect_refused(const Refused& refused) {
  const auto decoded = decode(build(refused.fill));
  ASSERT_FALSE(decoded) << refused.says;
  EXPECT_NE(decoded.error().message.find(refused.says), std::string::npos)
      << decoded.error().message;
  EXPECT_EQ(decoded.error().code, refused.code) << decoded.error().message;
}

TEST(Limits, OnNumbersAreEnforced) {
  for (const Refused& refused : refused_numbers()) expect_refused(refused);
}
TEST(Limits, OnTextsAndListsAreEnforced) {
  for (const Refused& refused : refused_sizes()) expect_refused(refused);
}
TEST(Limits, OnEnumsAreEnforcedAndSaidToBeUnknown) {
  for (const Refused& refused : refused_enums()) expect_refused(refused);
}

TEST(Limits, HoldInTheListsOfRecordsToo) {
  expect_refused({"record.name has 129", ErrorCode::kCorrupt, [](auto e) {
                    e.initWelcome().initRecords(2)[1].setName(long_text(kNameBytesMax));
                  }});
}

TEST(UnknownReasons, OfANewerPeerAreReadAsUnknown) {
  const auto aborted =
      decode(build([](auto e) { e.initAborted().setReason(wire::AbortReason(7)); }));
  ASSERT_TRUE(aborted) << aborted.error().message;
  EXPECT_EQ(std::get<Aborted>(*aborted).reason, AbortReason::kUnknown);
  const auto dial_back =
      decode(build([](auto e) { e.initDialBack().setOutcome(wire::DialBackOutcome(6)); }));
  ASSERT_TRUE(dial_back) << dial_back.error().message;
  EXPECT_EQ(std::get<DialBack>(*dial_back).outcome, DialBackOutcome::kUnknown);
  const auto reject = decode(build([](auto e) {
    auto r = e.initReject();
    r.setCode(wire::RejectCode(11));
    r.setDetail("because");
  }));
  ASSERT_TRUE(reject) << reject.error().message;
  EXPECT_EQ(std::get<Reject>(*reject).code, RejectCode::kUnknown);
  EXPECT_EQ(std::get<Reject>(*reject).detail, "because");
}

TEST(UnknownMessage, OfANewerPeerIsNamedByItsNumber) {
  auto bytes = encode(Challenge{});
  bytes[16] = std::byte{99};  // table, root pointer, then the union's discriminant
  const auto decoded = decode(bytes);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, ErrorCode::kIncompatible);
  EXPECT_NE(decoded.error().message.find("99"), std::string::npos);
}

TEST(WireText, MakesAnyTextLegal) {
  EXPECT_EQ(wire_text("plain", 10), "plain");
  EXPECT_EQ(wire_text("a\n\x1b[0m", 10), "a??[0m");
  EXPECT_EQ(wire_text("caf\xe9!", 10), "caf?!");
  EXPECT_EQ(wire_text("ééé", 5), "éé");  // cut at a character's edge
  EXPECT_EQ(wire_text("abc", 0), "");
}

TEST(Reject, DetailIsMadeLegalAndCut) {
  Reject reject;
  reject.detail = "line\n" + std::string(2000, 'x');
  const auto decoded = decode(encode(reject));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(std::get<Reject>(*decoded).detail,
            "line?" + std::string(kRejectDetailBytesMax - 5, 'x'));
}

using EncodeDeathTest = Test;
TEST(EncodeDeathTest, NamesTheFieldThatBreaksALimit) {
  Hello hello;
  hello.record.name = long_text(kNameBytesMax);
  EXPECT_DEATH(encode(hello), "record.name has 129");
  EXPECT_DEATH(encode(Propose{}), "payload_bytes is 0");
  EXPECT_DEATH(encode(Digest{}), "buckets has 0");
  EXPECT_DEATH(encode(View{}), "kind has the unknown value 0");
  EXPECT_DEATH(encode(Sync{{64}, {}, {}, {}}), "bucket is 64");
  EXPECT_DEATH(encode(Gossip{{{}, {Accusation{}}}}), "accusation.subject is zero");
  EXPECT_DEATH(encode(Ping{1, {std::vector<MemberRecord>(65), {}}}), "records has 65");
  // Asking again with nothing but the id left is legal.
  Propose asking;
  asking.attempt = 3;
  asking.chunk_bytes = 4096;
  EXPECT_TRUE(decode(encode(asking)));
}

}  // namespace
}  // namespace kith::schema
