// What the encoder's files share: building blocks, and one write() per message of
// codec_encode_membership.cc. Internal to schema/. All of it checks limits as encode() says: a
// breach is a bug of the caller.
#pragma once

#include <capnp/message.h>

#include <array>
#include <string>
#include <vector>

#include "base/check.h"
#include "schema/codec.h"
#include "schema/codec_limits.h"
#include "schema/kith.capnp.h"

namespace kith::schema {

inline constexpr std::size_t kWordBytes = sizeof(capnp::word);
inline constexpr std::size_t kTableBytes = 8;  // segment table of a single-segment message
inline constexpr std::size_t kSegmentWordsMax = (kHeaderBytesMax - kTableBytes) / kWordBytes;

void require(const Status& status);
// `value` once it has passed check_text().
capnp::Text::Reader text(const std::string& value, std::size_t bytes_max, const char* field);
std::uint64_t load_word(const std::uint8_t* bytes);

template <typename WireEnum, typename Enum>
WireEnum number(Enum value) {
  return static_cast<WireEnum>(static_cast<std::uint16_t>(value));
}

void write(wire::Bytes32::Builder out, const std::array<std::uint8_t, 32>& bytes);
void write(wire::Bytes64::Builder out, const Signature& bytes);
void write(wire::MemberRecord::Builder out, const MemberRecord& in);
void write(capnp::List<wire::MemberRecord>::Builder out, const std::vector<MemberRecord>& records);

// What the segment holds so far.
std::size_t used_bytes(wire::Envelope::Builder envelope);
// How many of `records`, from the front, fit into what is left of 64 KiB.
unsigned fitting(const std::vector<MemberRecord>& records, std::size_t used);

void write(wire::Envelope::Builder envelope, const Leave& in);
void write(wire::Envelope::Builder envelope, const Final& in);
void write(wire::Envelope::Builder envelope, const Ping& in);
void write(wire::Envelope::Builder envelope, const Pong& in);
void write(wire::Envelope::Builder envelope, const PingRequest& in);
void write(wire::Envelope::Builder envelope, const Nack& in);
void write(wire::Envelope::Builder envelope, const Gossip& in);
void write(wire::Envelope::Builder envelope, const Digest& in);
void write(wire::Envelope::Builder envelope, const Sync& in);
void write(wire::Envelope::Builder envelope, const View& in);
void write(wire::Envelope::Builder envelope, const Tally& in);

}  // namespace kith::schema
