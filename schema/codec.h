// Bytes <-> messages. Everything that decode() sees is hostile until it returns: wrong segment counts, pointers that
// cycle, lists that claim 2^29 elements, unknown enums, over-long texts and numbers out of range all end as an
// error that says what was wrong, without allocation from a declared length. Any thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "schema/messages.h"

namespace kith::schema {

inline constexpr std::size_t kHeaderBytesMax = 64 * 1024;  // encoded header, either plane

// One flat, single-segment, unpacked Cap'n Proto message, a multiple of 8 bytes.
std::vector<std::byte> encode(const Message& message);

// `bytes` may be at any address: they are copied to aligned memory first (received frames often are misaligned).
Result<Message> decode(std::span<const std::byte> bytes);

}  // namespace kith::schema
