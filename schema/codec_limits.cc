#include "schema/codec_limits.h"

#include <cmath>

#include "schema/codec.h"

namespace kith::schema {
namespace {

tl::unexpected<Error> bad(const char* field, const std::string& what) {
  return fail(ErrorCode::kCorrupt, std::string(field) + " " + what);
}

bool is_continuation(unsigned char c) { return (c & 0xC0U) == 0x80U; }

struct Lead {
  std::size_t length;  // 0: not a leading byte
  std::uint32_t bits;
  std::uint32_t smallest;  // below it the encoding is over-long
};

Lead lead_of(unsigned char c) {
  if (c < 0x80U) return {1, c, 0};
  if ((c & 0xE0U) == 0xC0U) return {2, c & 0x1FU, 0x80};
  if ((c & 0xF0U) == 0xE0U) return {3, c & 0x0FU, 0x800};
  if ((c & 0xF8U) == 0xF0U) return {4, c & 0x07U, 0x10000};
  return {0, 0, 0};
}

bool is_printable(std::uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return !control && !surrogate && code <= 0x10FFFF;
}

// Bytes of the legal character at the start of `text` (not empty), or 0.
std::size_t character_length(std::string_view text) {
  const Lead lead = lead_of(static_cast<unsigned char>(text[0]));
  if (lead.length == 0 || lead.length > text.size()) return 0;
  std::uint32_t code = lead.bits;
  for (std::size_t i = 1; i < lead.length; ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (!is_continuation(c)) return 0;
    code = (code << 6) | (c & 0x3FU);
  }
  return code >= lead.smallest && is_printable(code) ? lead.length : 0;
}

Status check_finite(double value, const char* field) {
  if (std::isfinite(value)) return {};
  return fail(ErrorCode::kNonFinite, std::string(field) + " is not a finite number");
}

Status check_not_negative(double value, const char* field) {
  KITH_TRY(check_finite(value, field));
  if (value < 0.0) return bad(field, "is negative: " + std::to_string(value));
  return {};
}

Status check_payload(std::uint64_t payload_bytes, std::uint32_t chunk_bytes) {
  if (chunk_bytes < 1 || chunk_bytes > kChunkBytesMax)
    return bad("chunk_bytes", "is " + std::to_string(chunk_bytes) + ", outside 1 to 1048576");
  if (payload_bytes > std::uint64_t{chunk_bytes} * kChunksPerPayloadMax)
    return bad("payload_bytes", "is " + std::to_string(payload_bytes) +
                                    ", more than 4096 chunks of " + std::to_string(chunk_bytes));
  return {};
}

Status check_filled_payload(std::uint64_t payload_bytes, std::uint32_t chunk_bytes) {
  if (payload_bytes == 0) return bad("payload_bytes", "is 0");
  return check_payload(payload_bytes, chunk_bytes);
}

Status check_samples(Samples samples, const std::string& field) {
  if (samples <= kDataSamplesMax) return {};
  return bad(field.c_str(), "is " + std::to_string(samples) + ", more than 2^57");
}

// Of a MemberRecord or TallyEntry, which is `of`.
template <typename Holder>
Status check_data(const Holder& holder, const std::string& of) {
  KITH_TRY(check_samples(holder.data_samples, of + ".data_samples"));
  KITH_TRY(check_samples(holder.shard_samples, of + ".shard_samples"));
  if (holder.shard_index <= holder.shard_count) return {};
  return bad((of + ".shard_index").c_str(), "is " + std::to_string(holder.shard_index) + " of " +
                                                std::to_string(holder.shard_count));
}

}  // namespace

Status check_text(std::string_view text, std::size_t bytes_max, const char* field) {
  if (text.size() > bytes_max)
    return bad(field, "has " + std::to_string(text.size()) + " bytes, more than " +
                          std::to_string(bytes_max));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text.substr(at));
    if (length == 0)
      return bad(field, "has a control character or is not UTF-8 at byte " + std::to_string(at));
    at += length;
  }
  return {};
}

Status check_count(std::size_t count, std::size_t count_max, const char* field) {
  if (count <= count_max) return {};
  return bad(field,
             "has " + std::to_string(count) + " elements, more than " + std::to_string(count_max));
}

std::string wire_text(std::string_view text, std::size_t bytes_max) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text.substr(at));
    const std::string_view next = length == 0 ? std::string_view("?") : text.substr(at, length);
    if (out.size() + next.size() > bytes_max) break;
    out.append(next);
    at += length == 0 ? 1 : length;
  }
  return out;
}

// Loss may be anything: it is a diverged node's last honest word, and NaN means unknown.
Status check_numbers(const MemberRecord& record) {
  KITH_TRY(check_not_negative(record.learning_rate, "record.learning_rate"));
  KITH_TRY(check_not_negative(record.steps_per_second, "record.steps_per_second"));
  if (!std::isnan(record.accuracy) && !(record.accuracy >= 0.0 && record.accuracy <= 1.0))
    return bad("record.accuracy", "is " + std::to_string(record.accuracy) + ", outside 0 to 1");
  return check_data(record, "record");
}

Status check_numbers(const TallyEntry& entry) { return check_data(entry, "entry"); }

Status check_numbers(const Hello& hello) {
  if (hello.protocol_min >= 1 && hello.protocol_min <= hello.protocol_max) return {};
  return bad("protocol_min", "is " + std::to_string(hello.protocol_min) + " and protocol_max " +
                                 std::to_string(hello.protocol_max));
}

Status check_numbers(const About& about) {
  return check_finite(about.wall_seconds, "about.wall_seconds");
}

Status check_numbers(const Leave& leave) {
  if (leave.record.state == MemberState::kLeft) return {};
  return bad("record.state", "is not `left` in a LEAVE");
}

Status check_bucket_hashes(std::size_t count) {
  if (count == kDigestBuckets) return {};
  return bad("buckets", "has " + std::to_string(count) + " elements, not 64");
}

Status check_bucket(std::uint32_t bucket) {
  if (bucket < kDigestBuckets) return {};
  return bad("bucket", "is " + std::to_string(bucket) + ", not below 64");
}

Status check_numbers(const Accusation& accusation) {
  if (accusation.subject == NodeId{}) return bad("accusation.subject", "is zero");
  if (accusation.accuser == NodeId{}) return bad("accusation.accuser", "is zero");
  if (accusation.accuser == accusation.subject) return bad("accusation.accuser", "is the subject");
  return {};
}

Status check_numbers(const View& view) {
  if (view.kind == ViewKind::kUnknown)
    return fail(ErrorCode::kIncompatible, "kind has the unknown value 0");
  if (view.ttl > kViewTtlMax)
    return bad("ttl", "is " + std::to_string(view.ttl) + ", more than 16");
  return {};
}

Status check_numbers(const Propose& propose) {
  KITH_TRY(check_finite(propose.weight, "weight"));
  if (!(propose.weight > 0.0 && propose.weight <= 0.5))
    return bad("weight", "is " + std::to_string(propose.weight) + ", outside (0, 0.5]");
  KITH_TRY(check_finite(propose.push_sum, "push_sum"));
  // Asking again after the snapshot is gone: only the id is left.
  if (propose.attempt > 0) return check_payload(propose.payload_bytes, propose.chunk_bytes);
  return check_filled_payload(propose.payload_bytes, propose.chunk_bytes);
}

Status check_numbers(const Chunk& chunk) {
  if (chunk.index < kChunksPerPayloadMax) return {};
  return bad("index", "is " + std::to_string(chunk.index) + ", not below 4096");
}

Status check_numbers(const ResultMessage& result) {
  KITH_TRY(check_not_negative(result.distance_squared, "distance_squared"));
  KITH_TRY(check_not_negative(result.norm_squared, "norm_squared"));
  return check_filled_payload(result.payload_bytes, result.chunk_bytes);
}

Status check_numbers(const StateHeader& header) {
  return check_payload(header.payload_bytes, header.chunk_bytes);
}

}  // namespace kith::schema
