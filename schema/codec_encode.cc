// encode(): plain structs to Cap'n Proto. Limits are checked, because a message that every receiver
// refuses is a defect here, and here it can still be named.

#include <capnp/message.h>
#include <capnp/serialize.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "schema/codec.h"
#include "schema/codec_limits.h"
#include "schema/kith.capnp.h"

namespace kith::schema {
namespace {

constexpr std::size_t kWordBytes = sizeof(capnp::word);
constexpr std::size_t kTableBytes = 8;  // segment table of a single-segment message
constexpr std::size_t kSegmentWordsMax = (kHeaderBytesMax - kTableBytes) / kWordBytes;
constexpr std::size_t kSmallWords =
    256;  // messages without records: at most a REJECT of 1,024 characters

void require(const Status& status) { KITH_CHECK(status, "encode: " + status.error().message); }

capnp::Text::Reader text(const std::string& value, std::size_t bytes_max, const char* field) {
  require(check_text(value, bytes_max, field));
  return {value.c_str(), value.size()};
}

std::uint64_t load_word(const std::uint8_t* bytes) {
  std::uint64_t word = 0;
  for (int i = 7; i >= 0; --i) word = (word << 8) | bytes[i];
  return word;
}

void write(wire::Bytes32::Builder out, const std::array<std::uint8_t, 32>& bytes) {
  out.setW0(load_word(bytes.data()));
  out.setW1(load_word(bytes.data() + 8));
  out.setW2(load_word(bytes.data() + 16));
  out.setW3(load_word(bytes.data() + 24));
}

void write(wire::Bytes64::Builder out, const Signature& bytes) {
  out.setW0(load_word(bytes.data()));
  out.setW1(load_word(bytes.data() + 8));
  out.setW2(load_word(bytes.data() + 16));
  out.setW3(load_word(bytes.data() + 24));
  out.setW4(load_word(bytes.data() + 32));
  out.setW5(load_word(bytes.data() + 40));
  out.setW6(load_word(bytes.data() + 48));
  out.setW7(load_word(bytes.data() + 56));
}

void write(wire::ExchangeId::Builder out, const ExchangeId& e) {
  const std::uint8_t* id = e.initiator.bytes.data();
  out.setInitiator0(load_word(id));
  out.setInitiator1(load_word(id + 8));
  out.setInitiator2(load_word(id + 16));
  out.setInitiator3(load_word(id + 24));
  out.setIncarnation(e.incarnation);
  out.setSequence(e.sequence);
}

template <typename WireEnum, typename Enum>
WireEnum number(Enum value) {
  return static_cast<WireEnum>(static_cast<std::uint16_t>(value));
}

void write(capnp::List<wire::Fact>::Builder out, const Facts& facts) {
  for (unsigned i = 0; i < out.size(); ++i) {
    out[i].setName(text(facts[i].first, kFactNameBytesMax, "fact name"));
    out[i].setValue(text(facts[i].second, kFactValueBytesMax, "fact value"));
  }
}

unsigned facts_count(const Facts& facts) {
  require(check_count(facts.size(), kFactsMax, "facts"));
  return static_cast<unsigned>(facts.size());
}

void write_work(wire::MemberRecord::Builder out, const MemberRecord& in) {
  out.setStep(in.step);
  out.setSamples(in.samples);
  out.setLoss(in.loss);
  out.setAccuracy(in.accuracy);
  out.setLearningRate(in.learning_rate);
  out.setStepsPerSecond(in.steps_per_second);
  write(out.initDataFingerprint(), in.data_fingerprint.bytes);
  out.setDataSamples(in.data_samples);
  out.setShardSamples(in.shard_samples);
  out.setShardIndex(in.shard_index);
  out.setShardCount(in.shard_count);
}

void write(wire::MemberRecord::Builder out, const MemberRecord& in) {
  require(check_numbers(in));
  write(out.initId(), in.id.bytes);
  out.setIncarnation(in.incarnation);
  out.setVersion(in.version);
  out.setState(number<wire::MemberState>(in.state));
  out.setRunState(number<wire::RunState>(in.run_state));
  out.setConverged(in.converged);
  out.setName(text(in.name, kNameBytesMax, "record.name"));
  out.setControlAddress(text(in.control_address, kAddressBytesMax, "record.control_address"));
  out.setBulkAddress(text(in.bulk_address, kAddressBytesMax, "record.bulk_address"));
  out.setHttpAddress(text(in.http_address, kAddressBytesMax, "record.http_address"));
  write_work(out, in);
  write(out.initTransportKey(), in.transport_key);
  out.setKeyEpoch(in.key_epoch);
  out.setVersionText(text(in.version_text, kVersionTextBytesMax, "record.version_text"));
  write(out.initSignature(), in.signature);
}

std::size_t text_bytes(const std::string& value) {  // with the final zero, in whole words
  return (value.size() + 1 + kWordBytes - 1) / kWordBytes * kWordBytes;
}

// What a record takes within a list. 24 bytes: its three Bytes32 in a Bytes64 take two more
// pointers.
std::size_t record_bytes(const MemberRecord& r) {
  constexpr auto kSize = capnp::_::structSize<wire::MemberRecord>();
  constexpr std::size_t kFixed = (kSize.data + kSize.pointers + 3 * 4 + 8) * kWordBytes;
  return kFixed + text_bytes(r.name) + text_bytes(r.control_address) + text_bytes(r.bulk_address) +
         text_bytes(r.http_address) + text_bytes(r.version_text);
}

// How many of `records`, from the front, fit into what is left of 64 KiB.
unsigned fitting(const std::vector<MemberRecord>& records, std::size_t used) {
  unsigned count = 0;
  std::size_t total = used + kWordBytes;  // the list's tag
  for (const MemberRecord& record : records) {
    total += record_bytes(record);
    if (total > kSegmentWordsMax * kWordBytes) break;
    ++count;
  }
  return count;
}

void write(capnp::List<wire::MemberRecord>::Builder out, const std::vector<MemberRecord>& records) {
  for (unsigned i = 0; i < out.size(); ++i) write(out[i], records[i]);
}

// ---- one function per message
// -----------------------------------------------------------------------------------

void write(wire::Envelope::Builder envelope, const Hello& in) {
  require(check_numbers(in));
  auto out = envelope.initHello();
  out.setPlane(number<wire::Plane>(in.plane));
  out.setProtocolMin(in.protocol_min);
  out.setProtocolMax(in.protocol_max);
  out.setCluster(text(in.cluster, kNameBytesMax, "cluster"));
  out.setRunId(text(in.run_id, kNameBytesMax, "run_id"));
  write(out.initSchemaHash(), in.schema_hash.bytes);
  write(out.initFacts(facts_count(in.facts)), in.facts);
  write(out.initRecord(), in.record);
  write(out.initNonce(), in.nonce);
  write(out.initPeerNonce(), in.peer_nonce);
  out.setLowestOpen(in.lowest_open);
  write(out.initSignature(), in.signature);
}

void write(wire::Envelope::Builder envelope, const Challenge& in) {
  auto out = envelope.initChallenge();
  write(out.initNonce(), in.nonce);
  write(out.initPeerNonce(), in.peer_nonce);
}

void write(wire::Envelope::Builder envelope, const Welcome& in) {
  require(check_count(in.records.size(), kWelcomeRecordsMax, "records"));
  auto out = envelope.initWelcome();
  write(out.initRecord(), in.record);
  write(out.initFacts(facts_count(in.facts)), in.facts);
  out.setProgress(in.progress);
  out.setSeenIncarnation(in.seen_incarnation);
  write(out.initNonce(), in.nonce);
  write(out.initPeerNonce(), in.peer_nonce);
  write(out.initSignature(), in.signature);
  const std::size_t used =
      (out.totalSize().wordCount + 4) * kWordBytes;  // 4: root pointer and the envelope
  write(out.initRecords(fitting(in.records, used)), in.records);
}

void write(wire::Envelope::Builder envelope, const Reject& in) {
  auto out = envelope.initReject();
  out.setCode(number<wire::RejectCode>(in.code));
  out.setDetail(wire_text(in.detail, kRejectDetailBytesMax));
  write(out.initId(), in.id.bytes);
  out.setSeenIncarnation(in.seen_incarnation);
}

void write(wire::Envelope::Builder envelope, const Heartbeat& in) {
  require(check_count(in.records.size(), kHeartbeatRecordsMax, "records"));
  auto out = envelope.initHeartbeat();
  write(out.initRecord(), in.record);
  write(out.initRecords(static_cast<unsigned>(in.records.size())), in.records);
  out.setEcho(in.echo);
  out.setEchoReply(in.echo_reply);
  out.setProgress(in.progress);
}

void write(wire::Envelope::Builder envelope, const Leave& in) {
  require(check_numbers(in));
  write(envelope.initLeave().initRecord(), in.record);
}

void write(wire::Envelope::Builder envelope, const Final& in) {
  auto out = envelope.initFinal();
  write(out.initDeclarer(), in.declarer.bytes);
  write(out.initRunDigest(), in.run_digest.bytes);
  write(out.initRoot(), in.root.bytes);
  out.setProgress(in.progress);
  write(out.initSignature(), in.signature);
}

void write(wire::Envelope::Builder envelope, const Propose& in) {
  require(check_numbers(in));
  auto out = envelope.initPropose();
  write(out.initE(), in.e);
  out.setAttempt(in.attempt);
  out.setFragment(in.fragment);
  out.setSlot(number<wire::Slot>(in.slot));
  out.setCodec(number<wire::Codec>(in.codec));
  out.setWeight(in.weight);
  out.setPushSum(in.push_sum);
  out.setPayloadBytes(in.payload_bytes);
  out.setChunkBytes(in.chunk_bytes);
  out.setLowestOpen(in.lowest_open);
  write(out.initRunDigest(), in.run_digest.bytes);
  write(out.initSchemaHash(), in.schema_hash.bytes);
  out.setProgress(in.progress);
  out.setStep(in.step);
}

void write(wire::Envelope::Builder envelope, const Chunk& in) {
  require(check_numbers(in));
  auto out = envelope.initChunk();
  write(out.initE(), in.e);
  out.setStream(number<wire::Stream>(in.stream));
  out.setIndex(in.index);
}

void write(wire::Envelope::Builder envelope, const Credit& in) {
  require(check_count(in.received.size(), kCreditWordsMax, "received"));
  auto out = envelope.initCredit();
  write(out.initE(), in.e);
  out.setStream(number<wire::Stream>(in.stream));
  auto words = out.initReceived(static_cast<unsigned>(in.received.size()));
  for (unsigned i = 0; i < words.size(); ++i) words.set(i, in.received[i]);
}

void write(wire::Envelope::Builder envelope, const ResultMessage& in) {
  require(check_numbers(in));
  auto out = envelope.initResult();
  write(out.initE(), in.e);
  out.setFragment(in.fragment);
  out.setCodec(number<wire::Codec>(in.codec));
  out.setPayloadBytes(in.payload_bytes);
  out.setChunkBytes(in.chunk_bytes);
  out.setProgress(in.progress);
  out.setStep(in.step);
  out.setDistanceSquared(in.distance_squared);
  out.setNormSquared(in.norm_squared);
}

void write(wire::Envelope::Builder envelope, const Ack& in) {
  auto out = envelope.initAck();
  write(out.initE(), in.e);
  out.setLowestOpen(in.lowest_open);
}

void write(wire::Envelope::Builder envelope, const Busy& in) {
  auto out = envelope.initBusy();
  write(out.initE(), in.e);
  out.setRetryAfterMs(in.retry_after_ms);
}

void write(wire::Envelope::Builder envelope, const Aborted& in) {
  auto out = envelope.initAborted();
  write(out.initE(), in.e);
  out.setReason(number<wire::AbortReason>(in.reason));
}

void write(wire::Envelope::Builder envelope, const StateRequest& in) {
  auto out = envelope.initStateRequest();
  write(out.initE(), in.e);
  out.setItem(number<wire::StateItem>(in.item));
  out.setIndex(in.index);
  out.setFinalState(in.final_state);
  write(out.initRunDigest(), in.run_digest.bytes);
  write(out.initSchemaHash(), in.schema_hash.bytes);
}

void write(wire::Envelope::Builder envelope, const StateHeader& in) {
  require(check_numbers(in));
  auto out = envelope.initStateHeader();
  write(out.initE(), in.e);
  out.setItem(number<wire::StateItem>(in.item));
  out.setIndex(in.index);
  out.setPayloadBytes(in.payload_bytes);
  out.setChunkBytes(in.chunk_bytes);
  write(out.initHash(), in.hash.bytes);
  out.setOptimizerPieces(in.optimizer_pieces);
  out.setOptimizerStep(in.optimizer_step);
  out.setProgress(in.progress);
}

// ---- framing
// ----------------------------------------------------------------------------------------------------

bool has_records(const Message& message) {
  return std::holds_alternative<Hello>(message) || std::holds_alternative<Welcome>(message) ||
         std::holds_alternative<Heartbeat>(message) || std::holds_alternative<Leave>(message);
}

std::vector<std::byte> flatten(capnp::MallocMessageBuilder& builder) {
  const auto segments = builder.getSegmentsForOutput();
  KITH_CHECK(segments.size() == 1, "a header is one segment: at most 64 KiB");
  const std::size_t segment_bytes = segments[0].size() * kWordBytes;
  const auto words = static_cast<std::uint32_t>(segments[0].size());
  std::vector<std::byte> out(kTableBytes + segment_bytes);  // first u32: segment count - 1 = 0
  for (std::size_t i = 0; i < 4; ++i)
    out[4 + i] = static_cast<std::byte>((words >> (8 * i)) & 0xFFU);
  std::memcpy(out.data() + kTableBytes, segments[0].begin(), segment_bytes);
  return out;
}

std::vector<std::byte> encode_within(const Message& message, kj::ArrayPtr<capnp::word> zeroed) {
  capnp::MallocMessageBuilder builder(zeroed);
  auto envelope = builder.initRoot<wire::Envelope>();
  std::visit([&](const auto& body) { write(envelope, body); }, message);
  return flatten(builder);
}

}  // namespace

std::vector<std::byte> encode(const Message& message) {
  if (has_records(message)) {
    std::vector<std::uint64_t> memory(kSegmentWordsMax);
    return encode_within(
        message, kj::arrayPtr(reinterpret_cast<capnp::word*>(memory.data()), memory.size()));
  }
  std::array<capnp::word, kSmallWords> memory{};
  return encode_within(message, kj::arrayPtr(memory.data(), memory.size()));
}

}  // namespace kith::schema
