// Bytes that were made to hurt. Each must end as an error, or as a message within all limits; run
// with AddressSanitizer these tests also prove that nothing outside the frame was read.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "schema/codec.h"
#include "tests/schema/samples.h"
#include "tests/schema/wire_bytes.h"

namespace kith::schema {
namespace {

constexpr std::uint64_t kVoid = 0, kByte = 2, kEightBytes = 5, kComposite = 7;
constexpr std::uint64_t kCountMax = (1ULL << 29) - 1;

// Sizes of the structs, so that a crafted pointer names a complete one.
constexpr auto kWelcomeSize = capnp::_::structSize<wire::Welcome>();
constexpr auto kCreditSize = capnp::_::structSize<wire::Credit>();

// Root pointer, the envelope (discriminant, one pointer) and what it points to, with `pointers` at
// its end.
std::vector<std::uint64_t> segment_with(std::uint64_t kind, capnp::_::StructSize size,
                                        const std::vector<std::uint64_t>& pointers) {
  std::vector<std::uint64_t> words = {struct_pointer(0, 1, 1), kind,
                                      struct_pointer(0, size.data, size.pointers)};
  words.resize(words.size() + size.data);
  words.insert(words.end(), pointers.begin(), pointers.end());
  words.resize(3 + size.data + size.pointers);
  return words;
}

// Index of a pointer field within the struct's pointers is its order of declaration among pointer
// fields.
std::vector<std::uint64_t> welcome_with_records(std::uint64_t records_pointer) {
  return segment_with(wire::Envelope::WELCOME, kWelcomeSize, {0, records_pointer});
}
std::vector<std::uint64_t> credit_with_received(std::uint64_t received_pointer) {
  return segment_with(wire::Envelope::CREDIT, kCreditSize, {0, received_pointer});
}

void expect_error(const std::vector<std::byte>& bytes, const char* says, const char* what) {
  const auto decoded = decode(bytes);
  ASSERT_FALSE(decoded) << what;
  EXPECT_EQ(decoded.error().code, ErrorCode::kCorrupt) << what << ": " << decoded.error().message;
  EXPECT_NE(decoded.error().message.find(says), std::string::npos)
      << what << ": " << decoded.error().message;
  EXPECT_EQ(decoded.error().message, wire_text(decoded.error().message, 512))
      << what << ": unfit for a log";
}

TEST(HostileFrame, EmptyShortAndOddSizesAreRefused) {
  for (const std::size_t size : {0, 1, 7, 8, 9, 15, 17, 23})
    expect_error(std::vector<std::byte>(size), "whole words", "size");
}

TEST(HostileFrame, AnyOtherSegmentCountThanOneIsRefused) {
  for (const std::uint32_t less_one : {1U, 2U, 511U, 0x7FFFFFFFU, 0xFFFFFFFEU, 0xFFFFFFFFU}) {
    auto bytes = encode(Challenge{});
    std::memcpy(bytes.data(), &less_one, 4);
    expect_error(bytes, "segments, not one", "segment count");
  }
}

TEST(HostileFrame, ASegmentSizeOtherThanTheFramesIsRefused) {
  for (const std::uint32_t words : {0U, 1U, 12U, 14U, 0x1FFFFFFFU, 0xFFFFFFFFU}) {
    auto bytes = encode(Challenge{});
    std::memcpy(bytes.data() + 4, &words, 4);
    expect_error(bytes, "declares", "segment size");
  }
}

TEST(HostileFrame, MoreThan64KiBIsRefused) {
  std::vector<std::uint64_t> words(8193);
  words[0] = 8192ULL << 32;
  expect_error(bytes_of(words), "more than 65536", "65,544 bytes");
}

TEST(HostileFrame, AFullFrameOfZerosIsAMessageWithoutContent) {
  const auto decoded = decode(frame(std::vector<std::uint64_t>(8191)));
  // A null root reads as an envelope of zeros: HELLO, which then fails its own limits.
  ASSERT_FALSE(decoded);
  EXPECT_NE(decoded.error().message.find("HELLO"), std::string::npos) << decoded.error().message;
}

TEST(Truncation, AtEveryByteIsRefused) {
  for (const Message& message : sample_messages()) {
    const auto bytes = encode(message);
    for (std::size_t size = 0; size < bytes.size(); ++size)
      ASSERT_FALSE(decode(std::span(bytes).first(size))) << name_of(message) << " cut at " << size;
  }
}

// The table says what is there, so only the pointers reach beyond the end.
TEST(Truncation, AtEveryWordWithAFittingTableIsAnErrorOrAPartOfTheMessage) {
  for (const Message& message : sample_messages()) {
    const auto whole = encode(message);
    for (std::size_t words = 1; words < whole.size() / 8 - 1; ++words) {
      std::vector<std::byte> bytes(whole.begin(),
                                   whole.begin() + static_cast<std::ptrdiff_t>(8 + words * 8));
      const auto count = static_cast<std::uint32_t>(words);
      std::memcpy(bytes.data() + 4, &count, 4);
      const auto decoded = decode(bytes);
      ASSERT_FALSE(decoded) << name_of(message) << " cut to " << words << " words";
    }
  }
}

TEST(HostilePointer, ListsThatClaim2To29ElementsAreRefusedAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  for (const std::uint64_t size : {kVoid, 1UL, kByte, 3UL, 4UL, kEightBytes, 6UL}) {
    EXPECT_FALSE(decode(frame(welcome_with_records(list_pointer(0, size, kCountMax))))) << size;
    EXPECT_FALSE(decode(frame(credit_with_received(list_pointer(0, size, kCountMax))))) << size;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 5.0);  // milliseconds, unless something walks the list
}

TEST(HostilePointer, VoidListsAreRefusedByTheirCount) {
  expect_error(frame(welcome_with_records(list_pointer(0, kVoid, 65))), "records has 65",
               "65 void elements as records");
  expect_error(frame(welcome_with_records(list_pointer(0, kVoid, kCountMax))), "traversal limit",
               "void elements as records");
}

// The lists of the membership messages, which are read within News and beside it.
TEST(HostilePointer, ListsOfMembershipThatClaim2To29ElementsAreRefusedAtOnce) {
  constexpr auto kSyncSize = capnp::_::structSize<wire::Sync>();
  constexpr auto kNewsSize = capnp::_::structSize<wire::News>();
  for (const std::uint64_t size : {kVoid, 1UL, kByte, 3UL, 4UL, kEightBytes, 6UL}) {
    const std::uint64_t list = list_pointer(0, size, kCountMax);
    for (std::size_t field = 0; field < 3; ++field) {  // buckets, entries, wanted
      std::vector<std::uint64_t> pointers(field + 1);
      pointers[field] = list;
      EXPECT_FALSE(decode(frame(segment_with(wire::Envelope::SYNC, kSyncSize, pointers))))
          << field << " " << size;
    }
    for (std::size_t field = 0; field < 2; ++field) {  // records, accusations
      auto segment = segment_with(wire::Envelope::GOSSIP, {0, 1},
                                  {struct_pointer(0, kNewsSize.data, kNewsSize.pointers)});
      segment.resize(segment.size() + kNewsSize.data + kNewsSize.pointers);
      segment[segment.size() - kNewsSize.pointers + field] = list;
      EXPECT_FALSE(decode(frame(segment))) << field << " " << size;
    }
    EXPECT_FALSE(decode(
        frame(segment_with(wire::Envelope::DIGEST, capnp::_::structSize<wire::Digest>(), {list}))))
        << size;
  }
}

TEST(HostilePointer, CompositeListsOfEmptyStructsAreRefused) {
  // A list pointer of zero words, and a tag that claims 2^29 - 1 structs of no size.
  auto segment = welcome_with_records(
      list_pointer(static_cast<std::int32_t>(kWelcomeSize.pointers) - 2, kComposite, 0));
  segment.push_back(struct_pointer(static_cast<std::int32_t>(kCountMax), 0, 0));
  expect_error(frame(segment), "traversal limit", "empty structs");
}

TEST(HostilePointer, CompositeTagsThatOverrunAreRefused) {
  auto segment = welcome_with_records(
      list_pointer(static_cast<std::int32_t>(kWelcomeSize.pointers) - 2, kComposite, 4));
  segment.push_back(struct_pointer(60, 0xFFFF, 0xFFFF));
  segment.resize(segment.size() + 4);
  expect_error(frame(segment), "overrun", "overrun");
}

TEST(HostilePointer, OffsetsOutsideTheSegmentAreRefused) {
  for (const std::int32_t offset : {-1000, -4, 8000, (1 << 29) - 1, -(1 << 29)}) {
    EXPECT_FALSE(decode(frame({struct_pointer(offset, 1, 1)}))) << offset;
    EXPECT_FALSE(decode(frame(credit_with_received(list_pointer(offset, kEightBytes, 8)))))
        << offset;
  }
}

TEST(HostilePointer, FarPointersAndCapabilitiesAreRefused) {
  for (const std::uint64_t kind : {2UL, 3UL, 6UL})  // far, capability, double far
    for (const std::uint64_t segment : {0UL, 1UL, 0xFFFFFFFFUL})
      EXPECT_FALSE(decode(frame({kind | (segment << 32)}))) << kind << " " << segment;
}

TEST(HostilePointer, CyclesEnd) {
  // The record of a HELLO and every pointer in it point to the segment's own start.
  constexpr auto kHelloSize = capnp::_::structSize<wire::Hello>();
  auto segment = segment_with(wire::Envelope::HELLO, kHelloSize, {});
  for (std::size_t i = 3 + kHelloSize.data; i < segment.size(); ++i)
    segment[i] = struct_pointer(-static_cast<std::int32_t>(i) - 1, 40, 40);
  EXPECT_FALSE(decode(frame(segment)));
  // The root points to itself.
  EXPECT_FALSE(decode(frame({struct_pointer(-1, 0, 1)})));
  EXPECT_FALSE(decode(frame({struct_pointer(-1, 1, 1), 0})));
}

// A WELCOME whose facts all point to one text. Each fact is legal; together they are read as many
// times the frame.
std::vector<std::byte> welcome_with_shared_facts(unsigned facts) {
  constexpr std::uint64_t kTextWords = 64;
  const auto after_pointers =
      static_cast<std::int32_t>(kWelcomeSize.pointers) - 3;  // facts: the third pointer
  auto segment = segment_with(wire::Envelope::WELCOME, kWelcomeSize,
                              {0, 0, list_pointer(after_pointers, kComposite, 2 * facts)});
  segment.push_back(struct_pointer(static_cast<std::int32_t>(facts), 0, 2));
  const std::size_t text_at = segment.size() + 2 * facts;
  for (unsigned i = 0; i < facts; ++i) {
    segment.push_back(0);  // no name
    segment.push_back(list_pointer(static_cast<std::int32_t>(text_at - segment.size() - 1), kByte,
                                   8 * kTextWords));
  }
  segment.resize(segment.size() + kTextWords, 0x6161616161616161ULL);
  segment.back() &= 0x00FFFFFFFFFFFFFFULL;  // the final zero
  return frame(segment);
}

TEST(HostilePointer, SharedTextsCannotExceedTheTraversalLimit) {
  const auto few = decode(welcome_with_shared_facts(2));
  ASSERT_TRUE(few) << few.error().message;
  EXPECT_EQ(std::get<Welcome>(*few).facts[1].second, std::string(511, 'a'));
  expect_error(welcome_with_shared_facts(64), "traversal limit", "64 facts of one text");
}

TEST(HostilePointer, TextsWithoutFinalZeroAreRefused) {
  auto bytes = encode(sample_messages()[3]);
  const std::string detail = std::get<Reject>(sample_messages()[3]).detail;
  const auto text = std::as_bytes(std::span(detail));
  const auto found = std::search(bytes.begin(), bytes.end(), text.begin(), text.end());
  ASSERT_NE(found, bytes.end());
  *(found + static_cast<std::ptrdiff_t>(text.size())) = std::byte{'x'};
  expect_error(bytes, "unboundedSize", "no final zero");
}

TEST(RandomBytes, NeverCrashTheDecoder) {
  Random random(11);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::uint64_t> segment(1 + random.below(40));
    for (std::uint64_t& word : segment)
      word = random.chance(0.5) ? random.below(64) : random.next() >> random.below(64);
    segment[0] = struct_pointer(0, 1, 1);
    (void)decode(frame(segment));
  }
}

TEST(NewerStructs, WithMoreFieldsAreRead) {
  // A CHALLENGE as a later version may send it: three more data words and a pointer at the end.
  std::vector<std::uint64_t> segment = {struct_pointer(0, 1, 1),
                                        wire::Envelope::CHALLENGE,
                                        struct_pointer(0, 3, 3),
                                        7,
                                        8,
                                        9,
                                        struct_pointer(2, 4, 0),
                                        0,
                                        0,
                                        1,
                                        2,
                                        3,
                                        4};
  const auto decoded = decode(frame(segment));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(std::get<Challenge>(*decoded).nonce[0], 1);
  EXPECT_EQ(std::get<Challenge>(*decoded).nonce[8], 2);
}

}  // namespace
}  // namespace kith::schema
