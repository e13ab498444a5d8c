// What the decoder's files share: building blocks, and one read() per message of
// codec_decode_membership.cc. Internal to schema/. All input is hostile; nothing is copied before
// its limit is checked.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "schema/codec_limits.h"
#include "schema/kith.capnp.h"

namespace kith::schema {

template <typename WireEnum, typename Enum>
Status read_enum(WireEnum value, Enum last, const char* field, Enum& out) {
  const auto number = static_cast<std::uint16_t>(value);
  if (number > static_cast<std::uint16_t>(last))
    return fail(ErrorCode::kIncompatible,
                std::string(field) + " has the unknown value " + std::to_string(number));
  out = static_cast<Enum>(number);
  return {};
}

// For enums whose first value is `unknown`: a newer peer's reason is still a reason.
template <typename WireEnum, typename Enum>
void read_reason(WireEnum value, Enum last, Enum& out) {
  const auto number = static_cast<std::uint16_t>(value);
  out = number > static_cast<std::uint16_t>(last) ? Enum::kUnknown : static_cast<Enum>(number);
}

Status read_text(capnp::Text::Reader in, std::size_t bytes_max, const char* field,
                 std::string& out);
void store_word(std::uint64_t word, std::uint8_t* bytes);
void read(wire::Bytes32::Reader in, std::array<std::uint8_t, 32>& out);
void read(wire::Bytes64::Reader in, Signature& out);
Status read(wire::MemberRecord::Reader in, MemberRecord& out);
Status read(capnp::List<wire::MemberRecord>::Reader in, std::size_t count_max,
            std::vector<MemberRecord>& out);

Status read(wire::Leave::Reader in, Leave& out);
Status read(wire::Final::Reader in, Final& out);
Status read(wire::Ping::Reader in, Ping& out);
Status read(wire::Pong::Reader in, Pong& out);
Status read(wire::PingRequest::Reader in, PingRequest& out);
Status read(wire::Nack::Reader in, Nack& out);
Status read(wire::Gossip::Reader in, Gossip& out);
Status read(wire::Digest::Reader in, Digest& out);
Status read(wire::Sync::Reader in, Sync& out);
Status read(wire::View::Reader in, View& out);
Status read(wire::Tally::Reader in, Tally& out);

}  // namespace kith::schema
