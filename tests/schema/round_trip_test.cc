#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstring>

#include "schema/codec.h"
#include "tests/schema/samples.h"

namespace kith::schema {
namespace {

class EveryMessage : public testing::TestWithParam<std::size_t> {
 protected:
  Message sample() const { return sample_messages()[GetParam()]; }
};

TEST_P(EveryMessage, KeepsEveryFieldOnTheWire) {
  const auto decoded = decode(encode(sample()));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->index(), GetParam());
  EXPECT_TRUE(*decoded == sample());
}

TEST_P(EveryMessage, WithDefaultsSurvives) {
  Message message = sample();
  std::visit(
      [](auto& body) {
        using Body = std::decay_t<decltype(body)>;
        body = Body{};
        if constexpr (std::is_same_v<Body, Leave>) body.record.state = MemberState::kLeft;
        if constexpr (std::is_same_v<Body, Propose> || std::is_same_v<Body, ResultMessage>)
          body.payload_bytes = 1;
        if constexpr (requires { body.chunk_bytes; }) body.chunk_bytes = 1;
        if constexpr (std::is_same_v<Body, Digest>) body.buckets.resize(kDigestBuckets);
        if constexpr (std::is_same_v<Body, View>) body.kind = ViewKind::kJoin;
      },
      message);
  const auto decoded = decode(encode(message));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_TRUE(*decoded == message);
}

TEST_P(EveryMessage, IsReadAtAnyAddress) {
  const auto bytes = encode(sample());
  std::vector<std::byte> room(bytes.size() + 8);
  for (std::size_t offset = 0; offset < 8; ++offset) {
    std::memcpy(room.data() + offset, bytes.data(), bytes.size());
    const auto decoded = decode(std::span(room).subspan(offset, bytes.size()));
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_TRUE(*decoded == sample());
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryMessage, testing::Range<std::size_t>(0, kMessageKinds),
                         [](const auto& info) { return kind_name(info.param); });

// NaN differs from itself, so that random messages are compared by their bytes, which encode()
// makes canonical.
RC_GTEST_PROP(RandomMessages, SurviveTheWire, ()) {
  const std::size_t kind = *rc::gen::inRange<std::size_t>(0, kMessageKinds);
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  const Message message = random_message(kind, random);
  const auto bytes = encode(message);
  RC_ASSERT(bytes.size() <= kHeaderBytesMax);
  const auto decoded = decode(bytes);
  RC_ASSERT(decoded.has_value());
  RC_ASSERT(decoded->index() == kind);
  RC_ASSERT(encode(*decoded) == bytes);
}

RC_GTEST_PROP(RandomMessages, NeverCrashTheDecoderWhenBytesAreChanged, ()) {
  const std::size_t kind = *rc::gen::inRange<std::size_t>(0, kMessageKinds);
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  auto bytes = encode(random_message(kind, random));
  const std::uint64_t changes = 1 + random.below(8);
  for (std::uint64_t i = 0; i < changes; ++i)
    bytes[random.below(bytes.size())] = static_cast<std::byte>(random.next());
  const auto decoded = decode(bytes);
  if (decoded) RC_ASSERT(decode(encode(*decoded)).has_value());
}

TEST(NotANumber, IsCarriedWhereItMeansUnknown) {
  Hello hello;
  hello.record.loss = hello.record.accuracy = std::nan("");
  const auto decoded = decode(encode(hello));
  ASSERT_TRUE(decoded);
  EXPECT_TRUE(std::isnan(std::get<Hello>(*decoded).record.loss));
  EXPECT_TRUE(std::isnan(std::get<Hello>(*decoded).record.accuracy));
}

}  // namespace
}  // namespace kith::schema
