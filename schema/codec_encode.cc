// encode(): plain structs to Cap'n Proto. Limits are checked, because a message that every receiver
// refuses is a defect here, and here it can still be named.

#include <capnp/message.h>
#include <capnp/serialize.h>

#include <array>
#include <cstring>

#include "schema/codec_write.h"

namespace kith::schema {

// ---- building blocks, for codec_encode_membership.cc too

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

namespace {

using schema::write;  // beside the overloads below

constexpr std::size_t kSmallWords =
    256;  // messages without records: at most a REJECT of 1,024 characters

void write(wire::ExchangeId::Builder out, const ExchangeId& e) {
  const std::uint8_t* id = e.initiator.bytes.data();
  out.setInitiator0(load_word(id));
  out.setInitiator1(load_word(id + 8));
  out.setInitiator2(load_word(id + 16));
  out.setInitiator3(load_word(id + 24));
  out.setIncarnation(e.incarnation);
  out.setSequence(e.sequence);
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

// ---- one function per message

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
  out.setProbe(in.probe);
  out.setDialBackPort(in.dial_back_port);
  out.setTallies(in.tallies);
}

void write(wire::Envelope::Builder envelope, const Challenge& in) {
  auto out = envelope.initChallenge();
  write(out.initNonce(), in.nonce);
  write(out.initPeerNonce(), in.peer_nonce);
}

void write(wire::About::Builder out, const About& in) {
  require(check_numbers(in));
  out.setCluster(text(in.cluster, kNameBytesMax, "about.cluster"));
  out.setRunId(text(in.run_id, kNameBytesMax, "about.run_id"));
  write(out.initSchemaHash(), in.schema_hash.bytes);
  out.setWallSeconds(in.wall_seconds);
}

void write(wire::Envelope::Builder envelope, const Welcome& in) {
  require(check_count(in.records.size(), kWelcomeRecordsMax, "records"));
  auto out = envelope.initWelcome();
  write(out.initRecord(), in.record);
  write(out.initFacts(facts_count(in.facts)), in.facts);
  out.setSeenIncarnation(in.seen_incarnation);
  out.setTallies(in.tallies);
  write(out.initNonce(), in.nonce);
  write(out.initPeerNonce(), in.peer_nonce);
  write(out.initSignature(), in.signature);
  if (in.about) write(out.initAbout(), *in.about);
  write(out.initRecords(fitting(in.records, used_bytes(envelope))), in.records);
}

void write(wire::Envelope::Builder envelope, const DialBack& in) {
  auto out = envelope.initDialBack();
  write(out.initNonce(), in.nonce);
  out.setOutcome(number<wire::DialBackOutcome>(in.outcome));
  out.setAddress(text(in.address, kAddressBytesMax, "address"));
}

void write(wire::Envelope::Builder envelope, const Reject& in) {
  auto out = envelope.initReject();
  out.setCode(number<wire::RejectCode>(in.code));
  out.setDetail(wire_text(in.detail, kRejectDetailBytesMax));
  write(out.initId(), in.id.bytes);
  out.setSeenIncarnation(in.seen_incarnation);
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
  out.setDepth(in.depth);
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
  out.setDepth(in.depth);
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
  out.setClusterSamples(in.cluster_samples);
}

// ---- framing

// Those with facts or records, and SYNC and TALLY with their entries.
bool may_be_large(const Message& message) {
  return std::visit(
      [](const auto& body) {
        return requires { body.record; }
        || requires { body.records; }
        || requires { body.entries; }
        || requires { body.news; };
      },
      message);
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
  if (may_be_large(message)) {
    std::vector<std::uint64_t> memory(kSegmentWordsMax);
    return encode_within(
        message, kj::arrayPtr(reinterpret_cast<capnp::word*>(memory.data()), memory.size()));
  }
  std::array<capnp::word, kSmallWords> memory{};
  return encode_within(message, kj::arrayPtr(memory.data(), memory.size()));
}

}  // namespace kith::schema
