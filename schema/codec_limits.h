// The limits of messages.h that both sides of the codec share: encode() checks what it is given,
// decode() what it finds. Internal to schema/. Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "schema/messages.h"

namespace kith::schema {

// UTF-8 without control characters, at most `bytes_max`; kCorrupt with the field's name otherwise.
Status check_text(std::string_view text, std::size_t bytes_max, const char* field);
Status check_count(std::size_t count, std::size_t count_max, const char* field);

// Anti-entropy's buckets: exactly 64 hashes; numbers of buckets below 64.
Status check_bucket_hashes(std::size_t count);
Status check_bucket(std::uint32_t bucket);

// Numbers and how they belong together. Messages without such rules have no overload.
Status check_numbers(const MemberRecord& record);
Status check_numbers(const TallyEntry& entry);
Status check_numbers(const Hello& hello);
Status check_numbers(const About& about);
Status check_numbers(const Leave& leave);
Status check_numbers(const Accusation& accusation);
Status check_numbers(const View& view);
Status check_numbers(const Propose& propose);
Status check_numbers(const Chunk& chunk);
Status check_numbers(const ResultMessage& result);
Status check_numbers(const StateHeader& header);

}  // namespace kith::schema
