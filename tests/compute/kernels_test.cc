#include "compute/kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/random.h"

namespace kith::compute {
namespace {

constexpr std::size_t kCount = 10'007;  // several blocks and an odd rest

std::vector<float> random_values(std::uint64_t seed, std::size_t n = kCount) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(random.normal());
  return values;
}

std::vector<std::byte> encoded(const std::vector<float>& values, CodecId codec) {
  std::vector<std::byte> out(values.size() * encoded_value_bytes(codec));
  EXPECT_TRUE(encode_parts({values.data()}, codec, out.data(), values.size()));
  return out;
}

float decoded(const std::vector<std::byte>& bytes, CodecId codec, std::size_t i) {
  if (codec == CodecId::kFp32) {
    float value;
    std::memcpy(&value, bytes.data() + 4 * i, 4);
    return value;
  }
  std::uint16_t half;
  std::memcpy(&half, bytes.data() + 2 * i, 2);
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

// Cuts bytes into pieces of the given lengths (the last one repeats), each copied to an odd
// address.
Payload in_pieces(const std::vector<std::byte>& bytes, std::vector<std::size_t> lengths) {
  Payload payload;
  std::size_t at = 0, which = 0;
  while (at < bytes.size()) {
    const std::size_t length =
        std::min(lengths[std::min(which++, lengths.size() - 1)], bytes.size() - at);
    auto memory = std::make_shared<std::vector<std::byte>>(length + 1);
    std::memcpy(memory->data() + 1, bytes.data() + at, length);
    payload.pieces.emplace_back(memory, std::span<const std::byte>(*memory).subspan(1));
    at += length;
  }
  return payload;
}

Payload whole(const std::vector<std::byte>& bytes) { return {{Slice::copy_of(bytes)}}; }

class EveryLevel : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override { force_kernel_level(GetParam()); }
  void TearDown() override { force_kernel_level(""); }
};

INSTANTIATE_TEST_SUITE_P(Kernels, EveryLevel,
                         ::testing::ValuesIn(kernel_levels().begin(), kernel_levels().end()),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(EveryLevel, Bf16RoundsToNearestEven) {
  const struct {
    std::uint32_t bits, rounded;
  } kTable[] = {{0x3F800000, 0x3F80}, {0x3F808000, 0x3F80},  // tie, even below
                {0x3F818000, 0x3F82},                        // tie, even above
                {0x3F808001, 0x3F81}, {0x3F807FFF, 0x3F80}, {0xBF808001, 0xBF81},
                {0x00000001, 0x0000}, {0x80000000, 0x8000}, {0x7F7F0000, 0x7F7F}};
  for (const auto& row : kTable) {
    const float value = std::bit_cast<float>(row.bits);
    std::uint16_t half = 0;
    EXPECT_TRUE(encode_parts({&value}, CodecId::kBf16, reinterpret_cast<std::byte*>(&half), 1));
    EXPECT_EQ(half, row.rounded) << std::hex << row.bits;
  }
}

TEST_P(EveryLevel, EncodingRefusesWhatIsNotFinite) {
  for (const std::uint32_t bits :
       {0x7F800000u, 0xFF800000u, 0x7FC00000u, 0x7F800001u, 0x7FFFFFFFu, 0xFFFFFFFFu}) {
    for (const CodecId codec : {CodecId::kFp32, CodecId::kBf16}) {
      for (const std::size_t place : {std::size_t{0}, std::size_t{5000}, kCount - 1}) {
        auto values = random_values(1);
        values[place] = std::bit_cast<float>(bits);
        std::vector<std::byte> out(kCount * encoded_value_bytes(codec));
        EXPECT_FALSE(encode_parts({values.data()}, codec, out.data(), kCount))
            << std::hex << bits << " at " << place;
        EXPECT_FALSE(all_finite(values.data(), kCount));
      }
    }
  }
  const float largest =
      std::numeric_limits<float>::max();  // finite, but bf16 rounds it to infinity
  std::uint16_t half = 0;
  EXPECT_FALSE(encode_parts({&largest}, CodecId::kBf16, reinterpret_cast<std::byte*>(&half), 1));
  EXPECT_TRUE(all_finite(&largest, 1));
}

TEST_P(EveryLevel, SumsTheReplicaFromItsParts) {
  const auto p = random_values(1), t = random_values(2), d = random_values(3);
  std::vector<float> out(kCount);
  const auto expect = [&](const ReplicaParts& parts) {
    sum_parts(parts, out.data(), kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      float r = p[i];
      if (parts.t) r += t[i];
      if (parts.d) r += d[i];
      ASSERT_EQ(out[i], r) << i;
    }
    ASSERT_EQ(encoded(out, CodecId::kFp32), [&] {
      std::vector<std::byte> bytes(kCount * 4);
      EXPECT_TRUE(encode_parts(parts, CodecId::kFp32, bytes.data(), kCount));
      return bytes;
    }());
  };
  expect({p.data(), nullptr, nullptr});
  expect({p.data(), t.data(), nullptr});
  expect({p.data(), nullptr, d.data()});
  expect({p.data(), t.data(), d.data()});
}

TEST_P(EveryLevel, CommitAppliesTheBitsThatItSends) {
  const auto p = random_values(1), t = random_values(2), d = random_values(3),
             other = random_values(4);
  for (const CodecId codec : {CodecId::kFp32, CodecId::kBf16}) {
    const auto proposal = encoded(other, codec);
    for (const auto& parts :
         {ReplicaParts{p.data(), nullptr, nullptr}, ReplicaParts{p.data(), t.data(), nullptr},
          ReplicaParts{p.data(), nullptr, d.data()}, ReplicaParts{p.data(), t.data(), d.data()}}) {
      std::vector<std::byte> delta(proposal.size());
      std::vector<float> next(kCount);
      const auto sums =
          commit_parts(parts, whole(proposal), codec, 0.5f, delta.data(), next.data(), kCount);
      ASSERT_TRUE(sums.finite);
      double distance = 0.0, norm = 0.0;
      for (std::size_t i = 0; i < kCount; ++i) {
        float r = p[i];
        if (parts.t) r += t[i];
        if (parts.d) r += d[i];
        const float o = decoded(proposal, codec, i);
        distance += std::pow(static_cast<double>(r) - o, 2);
        norm += std::pow((static_cast<double>(r) + o) / 2, 2);
        ASSERT_EQ(next[i], (parts.d ? d[i] : 0.0f) - decoded(delta, codec, i)) << i;
        if (codec == CodecId::kFp32) {
          ASSERT_EQ(decoded(delta, codec, i), 0.5f * (r - o)) << i;
        }
      }
      EXPECT_NEAR(sums.distance_squared / distance, 1.0, 1e-5);
      EXPECT_NEAR(sums.norm_squared / norm, 1.0, 1e-5);
    }
  }
}

TEST_P(EveryLevel, ResultsDoNotDependOnWherePiecesAreCut) {
  const auto p = random_values(1), other = random_values(4);
  for (const CodecId codec : {CodecId::kFp32, CodecId::kBf16}) {
    const auto proposal = encoded(other, codec);
    std::vector<std::byte> delta(proposal.size());
    std::vector<float> next(kCount);
    const auto sums =
        commit_parts({p.data()}, whole(proposal), codec, 0.5f, delta.data(), next.data(), kCount);
    for (const auto& cuts : std::vector<std::vector<std::size_t>>{
             {1, 2, 3}, {4096}, {16384}, {1, 7000}, {39'999}, {5}}) {
      const Payload pieces = in_pieces(proposal, cuts);
      std::vector<std::byte> same_delta(proposal.size());
      std::vector<float> same_next(kCount);
      const auto same = commit_parts({p.data()}, pieces, codec, 0.5f, same_delta.data(),
                                     same_next.data(), kCount);
      EXPECT_EQ(same_delta, delta);
      EXPECT_EQ(same_next, next);
      EXPECT_EQ(same.distance_squared, sums.distance_squared);
      EXPECT_EQ(same.norm_squared, sums.norm_squared);
      ASSERT_TRUE(
          add_payload(p.data(), in_pieces(delta, cuts), codec, 1.0f, same_next.data(), kCount));
      for (std::size_t i = 0; i < kCount; ++i)
        ASSERT_EQ(same_next[i], p[i] + decoded(delta, codec, i));
    }
  }
}

TEST_P(EveryLevel, EmptyPiecesAreSkipped) {
  const auto p = random_values(1, 10), other = random_values(2, 10);
  const auto bytes = encoded(other, CodecId::kFp32);
  Payload payload{{Slice(), Slice::copy_of(std::span(bytes).first(13)), Slice(),
                   Slice::copy_of(std::span(bytes).subspan(13)), Slice()}};
  std::vector<float> next(10);
  ASSERT_TRUE(add_payload(p.data(), payload, CodecId::kFp32, 1.0f, next.data(), 10));
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(next[i], p[i] + other[i]);
}

TEST_P(EveryLevel, CommitAndAddReportEachValueThatIsNotFinite) {
  const auto p = random_values(1);
  for (const CodecId codec : {CodecId::kFp32, CodecId::kBf16}) {
    const std::size_t width = encoded_value_bytes(codec);
    auto bytes = encoded(random_values(2), codec);
    for (const std::size_t place :
         {std::size_t{0}, std::size_t{4095}, std::size_t{4096}, kCount - 1}) {
      auto broken = bytes;
      std::memset(broken.data() + place * width, 0xFF, width);
      std::vector<std::byte> delta(bytes.size());
      std::vector<float> next(kCount);
      EXPECT_FALSE(
          commit_parts({p.data()}, whole(broken), codec, 0.5f, delta.data(), next.data(), kCount)
              .finite);
      EXPECT_FALSE(add_payload(p.data(), whole(broken), codec, 1.0f, nullptr, kCount));
    }
  }
}

TEST_P(EveryLevel, AddAndCopyAddsOnceAndPublishes) {
  auto x = random_values(1);
  const auto before = x, t = random_values(2);
  std::vector<float> p(kCount);
  add_and_copy(x.data(), t.data(), p.data(), kCount);
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(x[i], before[i] + t[i]);
  EXPECT_EQ(p, x);
}

TEST(Kernels, EveryLevelGivesTheSameBits) {
  const auto p = random_values(1), d = random_values(2), other = random_values(3);
  for (const CodecId codec : {CodecId::kFp32, CodecId::kBf16}) {
    const auto proposal = encoded(other, codec);
    std::vector<std::vector<std::byte>> deltas;
    std::vector<std::vector<float>> nexts;
    for (const auto level : kernel_levels()) {
      force_kernel_level(level);
      deltas.emplace_back(proposal.size());
      nexts.emplace_back(kCount);
      commit_parts({p.data(), nullptr, d.data()}, whole(proposal), codec, 0.3f,
                   deltas.back().data(), nexts.back().data(), kCount);
      EXPECT_EQ(deltas.back(), deltas.front()) << level;
      EXPECT_EQ(nexts.back(), nexts.front()) << level;
    }
  }
  force_kernel_level("");
}

}  // namespace
}  // namespace kith::compute
