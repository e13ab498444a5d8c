// Bytes <-> messages. Everything that decode() sees is hostile until it returns: wrong segment
// counts, pointers that cycle, lists that claim 2^29 elements, unknown enums, over-long texts and
// numbers out of range all end as an error that says what was wrong, without allocation from a
// declared length. Any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "schema/messages.h"

namespace kith::schema {

inline constexpr std::size_t kHeaderBytesMax = 64 * 1024;  // encoded header, either plane

// One flat, single-segment, unpacked Cap'n Proto message, a multiple of 8 bytes, never more than
// kHeaderBytesMax. What breaks a limit of messages.h is a bug of the caller and fails a KITH_CHECK,
// with two exceptions: a WELCOME, a VIEW and news carry as many of their records as fit, and a
// REJECT's detail is made legal (wire_text).
std::vector<std::byte> encode(const Message& message);

// `bytes` may be at any address: they are copied to aligned memory first (received frames often are
// misaligned). Errors: kIncompatible for a message or enumerant that this version does not know
// (count it and go on: the peer may be newer); kNonFinite for NaN or infinity where a number must
// be finite; kCorrupt for everything else.
Result<Message> decode(std::span<const std::byte> bytes);

// `text` cut to at most `bytes_max` at a character's edge, with '?' for control characters and what
// is not UTF-8: for texts that come from elsewhere (host names, other libraries' messages) and must
// travel.
std::string wire_text(std::string_view text, std::size_t bytes_max);

}  // namespace kith::schema
