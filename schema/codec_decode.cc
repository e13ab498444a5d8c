// decode(): hostile bytes to plain structs. Four walls, outermost first:
//   1. framing, by hand: whole words, at most 64 KiB, exactly one segment whose size is the rest of
//   the frame. (The
//      library's own flat reader takes 2^32-1 segments for an empty message and allocates from the
//      table.)
//   2. a copy in aligned memory, on the stack.
//   3. the library's bounds checks, with a traversal limit of 8 times the size, so that pointers
//   that share or
//      cycle cannot multiply work, and a nesting limit. What it throws becomes an error here.
//   4. our limits, before anything is copied out of the message.

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <array>
#include <cstring>

#include "schema/codec.h"
#include "schema/codec_read.h"

namespace kith::schema {

// ---- building blocks, for codec_decode_membership.cc too

Status read_text(capnp::Text::Reader in, std::size_t bytes_max, const char* field,
                 std::string& out) {
  const std::string_view view(in.begin(), in.size());
  KITH_TRY(check_text(view, bytes_max, field));
  out = view;
  return {};
}

void store_word(std::uint64_t word, std::uint8_t* bytes) {
  for (int i = 0; i < 8; ++i, word >>= 8) bytes[i] = static_cast<std::uint8_t>(word & 0xFFU);
}

void read(wire::Bytes32::Reader in, std::array<std::uint8_t, 32>& out) {
  store_word(in.getW0(), out.data());
  store_word(in.getW1(), out.data() + 8);
  store_word(in.getW2(), out.data() + 16);
  store_word(in.getW3(), out.data() + 24);
}

void read(wire::Bytes64::Reader in, Signature& out) {
  store_word(in.getW0(), out.data());
  store_word(in.getW1(), out.data() + 8);
  store_word(in.getW2(), out.data() + 16);
  store_word(in.getW3(), out.data() + 24);
  store_word(in.getW4(), out.data() + 32);
  store_word(in.getW5(), out.data() + 40);
  store_word(in.getW6(), out.data() + 48);
  store_word(in.getW7(), out.data() + 56);
}

namespace {

using schema::read;  // beside the overloads below

constexpr std::size_t kWordBytes = sizeof(capnp::word);
constexpr std::size_t kTableBytes = 8;
constexpr std::uint64_t kTraversalFactor = 8;
constexpr int kNestingMax =
    8;  // the schema itself needs 5: envelope, ping, news, record, signature

// The last enumerant on either side is the same, so a value is known if it is not above it.
static_assert(static_cast<int>(wire::Plane::BULK) == static_cast<int>(Plane::kBulk));
static_assert(static_cast<int>(wire::RejectCode::NOT_READY) ==
              static_cast<int>(RejectCode::kNotReady));
static_assert(static_cast<int>(wire::DialBackOutcome::BUSY) ==
              static_cast<int>(DialBackOutcome::kBusy));
static_assert(static_cast<int>(wire::Slot::COMPRESSED) == static_cast<int>(Slot::kCompressed));
static_assert(static_cast<int>(wire::Codec::BF16) == static_cast<int>(CodecId::kBf16));
static_assert(static_cast<int>(wire::Stream::STATE) == static_cast<int>(Stream::kState));
static_assert(static_cast<int>(wire::AbortReason::WITHDRAWN) ==
              static_cast<int>(AbortReason::kWithdrawn));
static_assert(static_cast<int>(wire::StateItem::OPTIMIZER) ==
              static_cast<int>(StateItem::kOptimizer));

void read(wire::ExchangeId::Reader in, ExchangeId& out) {
  std::uint8_t* id = out.initiator.bytes.data();
  store_word(in.getInitiator0(), id);
  store_word(in.getInitiator1(), id + 8);
  store_word(in.getInitiator2(), id + 16);
  store_word(in.getInitiator3(), id + 24);
  out.incarnation = in.getIncarnation();
  out.sequence = in.getSequence();
}

Status read(capnp::List<wire::Fact>::Reader in, Facts& out) {
  KITH_TRY(check_count(in.size(), kFactsMax, "facts"));
  out.resize(in.size());
  for (unsigned i = 0; i < in.size(); ++i) {
    const auto fact = in[i];
    KITH_TRY(read_text(fact.getName(), kFactNameBytesMax, "fact name", out[i].first));
    KITH_TRY(read_text(fact.getValue(), kFactValueBytesMax, "fact value", out[i].second));
  }
  return {};
}

// ---- one function per message

Status read(wire::Hello::Reader in, Hello& out) {
  KITH_TRY(read_enum(in.getPlane(), Plane::kBulk, "plane", out.plane));
  out.protocol_min = in.getProtocolMin();
  out.protocol_max = in.getProtocolMax();
  KITH_TRY(read_text(in.getCluster(), kNameBytesMax, "cluster", out.cluster));
  KITH_TRY(read_text(in.getRunId(), kNameBytesMax, "run_id", out.run_id));
  read(in.getSchemaHash(), out.schema_hash.bytes);
  KITH_TRY(read(in.getFacts(), out.facts));
  KITH_TRY(read(in.getRecord(), out.record));
  read(in.getNonce(), out.nonce);
  read(in.getPeerNonce(), out.peer_nonce);
  out.lowest_open = in.getLowestOpen();
  read(in.getSignature(), out.signature);
  out.probe = in.getProbe();
  out.dial_back_port = in.getDialBackPort();
  out.tallies = in.getTallies();
  return check_numbers(out);
}

Status read(wire::Challenge::Reader in, Challenge& out) {
  read(in.getNonce(), out.nonce);
  read(in.getPeerNonce(), out.peer_nonce);
  return {};
}

Status read(wire::About::Reader in, About& out) {
  KITH_TRY(read_text(in.getCluster(), kNameBytesMax, "about.cluster", out.cluster));
  KITH_TRY(read_text(in.getRunId(), kNameBytesMax, "about.run_id", out.run_id));
  read(in.getSchemaHash(), out.schema_hash.bytes);
  out.wall_seconds = in.getWallSeconds();
  return check_numbers(out);
}

Status read(wire::Welcome::Reader in, Welcome& out) {
  KITH_TRY(read(in.getRecord(), out.record));
  KITH_TRY(read(in.getRecords(), kWelcomeRecordsMax, out.records));
  KITH_TRY(read(in.getFacts(), out.facts));
  out.seen_incarnation = in.getSeenIncarnation();
  read(in.getNonce(), out.nonce);
  read(in.getPeerNonce(), out.peer_nonce);
  read(in.getSignature(), out.signature);
  out.tallies = in.getTallies();
  return in.hasAbout() ? read(in.getAbout(), out.about.emplace()) : Status{};
}

Status read(wire::DialBack::Reader in, DialBack& out) {
  read(in.getNonce(), out.nonce);
  read_reason(in.getOutcome(), DialBackOutcome::kBusy, out.outcome);
  return read_text(in.getAddress(), kAddressBytesMax, "address", out.address);
}

Status read(wire::Reject::Reader in, Reject& out) {
  read_reason(in.getCode(), RejectCode::kNotReady, out.code);
  KITH_TRY(read_text(in.getDetail(), kRejectDetailBytesMax, "detail", out.detail));
  read(in.getId(), out.id.bytes);
  out.seen_incarnation = in.getSeenIncarnation();
  return {};
}

Status read(wire::Propose::Reader in, Propose& out) {
  read(in.getE(), out.e);
  out.attempt = in.getAttempt();
  out.fragment = in.getFragment();
  KITH_TRY(read_enum(in.getSlot(), Slot::kCompressed, "slot", out.slot));
  KITH_TRY(read_enum(in.getCodec(), CodecId::kBf16, "codec", out.codec));
  out.weight = in.getWeight();
  out.push_sum = in.getPushSum();
  out.payload_bytes = in.getPayloadBytes();
  out.chunk_bytes = in.getChunkBytes();
  out.lowest_open = in.getLowestOpen();
  read(in.getRunDigest(), out.run_digest.bytes);
  read(in.getSchemaHash(), out.schema_hash.bytes);
  out.depth = in.getDepth();
  out.step = in.getStep();
  return check_numbers(out);
}

Status read(wire::Chunk::Reader in, Chunk& out) {
  read(in.getE(), out.e);
  KITH_TRY(read_enum(in.getStream(), Stream::kState, "stream", out.stream));
  out.index = in.getIndex();
  return check_numbers(out);
}

Status read(wire::Credit::Reader in, Credit& out) {
  read(in.getE(), out.e);
  KITH_TRY(read_enum(in.getStream(), Stream::kState, "stream", out.stream));
  const auto words = in.getReceived();
  KITH_TRY(check_count(words.size(), kCreditWordsMax, "received"));
  for (const std::uint64_t word : words) out.received.push_back(word);
  return {};
}

Status read(wire::ResultMessage::Reader in, ResultMessage& out) {
  read(in.getE(), out.e);
  out.fragment = in.getFragment();
  KITH_TRY(read_enum(in.getCodec(), CodecId::kBf16, "codec", out.codec));
  out.payload_bytes = in.getPayloadBytes();
  out.chunk_bytes = in.getChunkBytes();
  out.depth = in.getDepth();
  out.step = in.getStep();
  out.distance_squared = in.getDistanceSquared();
  out.norm_squared = in.getNormSquared();
  return check_numbers(out);
}

Status read(wire::Ack::Reader in, Ack& out) {
  read(in.getE(), out.e);
  out.lowest_open = in.getLowestOpen();
  return {};
}

Status read(wire::Busy::Reader in, Busy& out) {
  read(in.getE(), out.e);
  out.retry_after_ms = in.getRetryAfterMs();
  return {};
}

Status read(wire::Aborted::Reader in, Aborted& out) {
  read(in.getE(), out.e);
  read_reason(in.getReason(), AbortReason::kWithdrawn, out.reason);
  return {};
}

Status read(wire::StateRequest::Reader in, StateRequest& out) {
  read(in.getE(), out.e);
  KITH_TRY(read_enum(in.getItem(), StateItem::kOptimizer, "item", out.item));
  out.index = in.getIndex();
  out.final_state = in.getFinalState();
  read(in.getRunDigest(), out.run_digest.bytes);
  read(in.getSchemaHash(), out.schema_hash.bytes);
  return {};
}

Status read(wire::StateHeader::Reader in, StateHeader& out) {
  read(in.getE(), out.e);
  KITH_TRY(read_enum(in.getItem(), StateItem::kOptimizer, "item", out.item));
  out.index = in.getIndex();
  out.payload_bytes = in.getPayloadBytes();
  out.chunk_bytes = in.getChunkBytes();
  read(in.getHash(), out.hash.bytes);
  out.optimizer_pieces = in.getOptimizerPieces();
  out.optimizer_step = in.getOptimizerStep();
  out.cluster_samples = in.getClusterSamples();
  return check_numbers(out);
}

template <typename Body, typename Reader>
Result<Message> read_as(Reader in) {
  Message message(std::in_place_type<Body>);
  if (Status status = read(in, std::get<Body>(message)); !status) {
    Error error = std::move(status.error());
    error.message = std::string(name_of(message)) + ": " + error.message;
    return fail(std::move(error));
  }
  return message;
}

Result<Message> read(wire::Envelope::Reader in) {
  switch (in.which()) {
    case wire::Envelope::HELLO:
      return read_as<Hello>(in.getHello());
    case wire::Envelope::CHALLENGE:
      return read_as<Challenge>(in.getChallenge());
    case wire::Envelope::WELCOME:
      return read_as<Welcome>(in.getWelcome());
    case wire::Envelope::REJECT:
      return read_as<Reject>(in.getReject());
    case wire::Envelope::LEAVE:
      return read_as<Leave>(in.getLeave());
    case wire::Envelope::FINAL:
      return read_as<Final>(in.getFinal());
    case wire::Envelope::PROPOSE:
      return read_as<Propose>(in.getPropose());
    case wire::Envelope::CHUNK:
      return read_as<Chunk>(in.getChunk());
    case wire::Envelope::CREDIT:
      return read_as<Credit>(in.getCredit());
    case wire::Envelope::RESULT:
      return read_as<ResultMessage>(in.getResult());
    case wire::Envelope::ACK:
      return read_as<Ack>(in.getAck());
    case wire::Envelope::BUSY:
      return read_as<Busy>(in.getBusy());
    case wire::Envelope::ABORTED:
      return read_as<Aborted>(in.getAborted());
    case wire::Envelope::STATE_REQUEST:
      return read_as<StateRequest>(in.getStateRequest());
    case wire::Envelope::STATE_HEADER:
      return read_as<StateHeader>(in.getStateHeader());
    case wire::Envelope::PING:
      return read_as<Ping>(in.getPing());
    case wire::Envelope::PONG:
      return read_as<Pong>(in.getPong());
    case wire::Envelope::PING_REQUEST:
      return read_as<PingRequest>(in.getPingRequest());
    case wire::Envelope::NACK:
      return read_as<Nack>(in.getNack());
    case wire::Envelope::GOSSIP:
      return read_as<Gossip>(in.getGossip());
    case wire::Envelope::DIGEST:
      return read_as<Digest>(in.getDigest());
    case wire::Envelope::SYNC:
      return read_as<Sync>(in.getSync());
    case wire::Envelope::VIEW:
      return read_as<View>(in.getView());
    case wire::Envelope::DIAL_BACK:
      return read_as<DialBack>(in.getDialBack());
    case wire::Envelope::TALLY:
      return read_as<Tally>(in.getTally());
    case wire::Envelope::HEARTBEAT:
      return fail(ErrorCode::kIncompatible, "HEARTBEAT, which is retired");
  }
  return fail(ErrorCode::kIncompatible,
              "unknown message number " + std::to_string(static_cast<std::uint16_t>(in.which())));
}

// ---- framing

std::uint32_t little_u32(const std::byte* bytes) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = (value << 8) | static_cast<std::uint32_t>(bytes[i]);
  return value;
}

Status check_frame(std::span<const std::byte> bytes) {
  const auto bad = [](const std::string& what) {
    return fail(ErrorCode::kCorrupt, "header frame " + what);
  };
  if (bytes.size() > kHeaderBytesMax)
    return bad("has " + std::to_string(bytes.size()) + " bytes, more than 65536");
  if (bytes.size() < kTableBytes + kWordBytes || bytes.size() % kWordBytes != 0)
    return bad("has " + std::to_string(bytes.size()) + " bytes, not two or more whole words");
  const std::uint32_t segments_less_one = little_u32(bytes.data());
  if (segments_less_one != 0)
    return bad("has " + std::to_string(std::uint64_t{segments_less_one} + 1) +
               " segments, not one");
  const std::uint64_t declared = std::uint64_t{little_u32(bytes.data() + 4)} * kWordBytes;
  if (declared != bytes.size() - kTableBytes)
    return bad("declares " + std::to_string(declared) + " bytes and has " +
               std::to_string(bytes.size() - kTableBytes));
  return {};
}

Result<Message> read_segment(kj::ArrayPtr<const capnp::word> segment) {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = kTraversalFactor * segment.size();
  options.nestingLimit = kNestingMax;
  const std::array<kj::ArrayPtr<const capnp::word>, 1> segments = {segment};
  capnp::SegmentArrayMessageReader reader(kj::arrayPtr(segments.data(), segments.size()), options);
  return read(reader.getRoot<wire::Envelope>());
}

}  // namespace

Result<Message> decode(std::span<const std::byte> bytes) {
  KITH_TRY(check_frame(bytes));
  alignas(capnp::word) std::byte aligned[kHeaderBytesMax];  // not initialised on purpose
  const std::span<const std::byte> segment = bytes.subspan(kTableBytes);
  std::memcpy(aligned, segment.data(), segment.size());
  try {
    return read_segment(
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(aligned), segment.size() / kWordBytes));
  } catch (const kj::Exception& e) {
    // The description quotes bytes of the message, so it is as hostile as they are.
    const kj::StringPtr what = e.getDescription();
    return fail(ErrorCode::kCorrupt, "Cap'n Proto: " + wire_text({what.begin(), what.size()}, 256));
  }
}

}  // namespace kith::schema
