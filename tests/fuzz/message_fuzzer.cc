// One message kind under libFuzzer (KITH_FUZZ_KIND is its index in schema::Message). Every input is
// used twice:
//   as a frame, as it comes from the network;
//   as a list of edits to a valid frame of this kind, so that the bytes deep inside are reached at
//   once.
// What decodes must encode, and decode again to the same; what does not must say why. The
// sanitizers watch the rest.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/check.h"
#include "schema/codec.h"
#include "tests/schema/samples.h"

namespace kith::schema {
namespace {

constexpr std::size_t kKind = KITH_FUZZ_KIND;
constexpr std::size_t kVariants = 16;
constexpr std::size_t kRoomWords = 16;  // times 0 to 15
constexpr std::size_t kEditBytes = 3;   // u16 position (little endian, modulo the size), new value

using Bytes = std::vector<std::byte>;

// The smallest of several, because speed finds more than size.
Bytes small_frame(std::uint64_t seed) {
  Bytes smallest;
  for (std::uint64_t draw = 0; draw < 16; ++draw) {
    Random random(seed * 16 + draw);
    Bytes frame = encode(random_message(kKind, random));
    if (smallest.empty() || frame.size() < smallest.size()) smallest = std::move(frame);
  }
  return smallest;
}

std::vector<Bytes> valid_frames() {
  KITH_CHECK(kind_name(kKind) == KITH_FUZZ_NAME, "the target's name is that of its message");
  std::vector<Bytes> frames = {encode(sample_messages()[kKind])};
  for (std::uint64_t seed = 1; seed < kVariants; ++seed) frames.push_back(small_frame(seed));
  return frames;
}

// Zero words at the end, within the segment: room that an edited pointer can claim for a longer
// list or text.
void append_room(Bytes& frame, std::size_t words) {
  frame.resize(std::min(frame.size() + words * 8, kHeaderBytesMax));
  const auto segment_words = static_cast<std::uint32_t>(frame.size() / 8 - 1);
  std::memcpy(frame.data() + 4, &segment_words, sizeof segment_words);
}

// The first byte chooses the frame (low half) and how much room follows it (high half); the rest
// are edits.
Bytes edited(const std::vector<Bytes>& frames, std::span<const std::byte> edits) {
  const auto choice = static_cast<std::size_t>(edits[0]);
  Bytes frame = frames[choice % kVariants];
  append_room(frame, choice / kVariants * kRoomWords);
  for (std::size_t at = 1; at + kEditBytes <= edits.size(); at += kEditBytes) {
    const std::size_t position =
        static_cast<std::size_t>(edits[at]) | (static_cast<std::size_t>(edits[at + 1]) << 8);
    frame[position % frame.size()] = edits[at + 2];
  }
  return frame;
}

void check_error(const Error& error) {
  KITH_CHECK(!error.message.empty(), "an error says what was wrong");
  KITH_CHECK(error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kIncompatible ||
                 error.code == ErrorCode::kNonFinite,
             "decode() fails with a documented code: " + error.message);
}

void check_frame(std::span<const std::byte> frame) {
  const auto first = decode(frame);
  if (!first) return check_error(first.error());
  const Bytes again = encode(*first);
  KITH_CHECK(again.size() <= kHeaderBytesMax, "encode() stays within 64 KiB");
  const auto second = decode(again);
  KITH_CHECK(second, "what decoded once decodes again: " + second.error().message);
  KITH_CHECK(first->index() == second->index() && encode(*second) == again,
             "and is the same message");
}

}  // namespace
}  // namespace kith::schema

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kith::schema;
  static const std::vector<Bytes> frames = valid_frames();
  const auto input = std::as_bytes(std::span(data, size));
  check_frame(input);
  if (!input.empty()) check_frame(edited(frames, input));
  return 0;
}
