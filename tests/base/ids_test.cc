#include "base/ids.h"

#include <gtest/gtest.h>

#include <set>

namespace kith {
namespace {

NodeId id_with(std::uint8_t first, std::uint8_t last) {
  NodeId id;
  id.bytes.front() = first;
  id.bytes.back() = last;
  return id;
}

TEST(Hex, GoesThereAndBack) {
  const std::string raw("\x00\x7f\x80\xff", 4);
  const std::string hex = to_hex(std::as_bytes(std::span(raw)));
  EXPECT_EQ(hex, "007f80ff");
  EXPECT_EQ(from_hex(hex).value(), raw);
  EXPECT_EQ(from_hex("007F80FF").value(), raw);
  EXPECT_EQ(from_hex("").value(), "");
}

TEST(Hex, RefusesOddLengthsAndOtherCharacters) {
  EXPECT_FALSE(from_hex("abc"));
  EXPECT_NE(from_hex("0g").error().message.find("position 1"), std::string::npos);
  EXPECT_NE(from_hex("00 0").error().message.find("position 2"), std::string::npos);
}

TEST(NodeId, GoesThereAndBack) {
  const NodeId id = id_with(0xAB, 0x01);
  EXPECT_EQ(id.hex().size(), 64U);
  EXPECT_EQ(id.short_hex(), "ab000000");
  EXPECT_EQ(NodeId::from_hex(id.hex()).value(), id);
  EXPECT_FALSE(NodeId::from_hex(id.hex().substr(2)));
  EXPECT_FALSE(NodeId::from_hex(std::string(64, 'z')));
}

TEST(NodeId, IsOrderedByItsFirstByte) {
  EXPECT_LT(id_with(1, 0xFF), id_with(2, 0));
  EXPECT_LT(id_with(0x7F, 0), id_with(0x80, 0));  // unsigned
  EXPECT_TRUE(NodeId{}.is_zero());
  EXPECT_FALSE(id_with(0, 1).is_zero());
}

TEST(SettleHash, HasKnownValues) {  // both sides of a crossing must agree, whatever built them
  EXPECT_EQ((ExchangeId{id_with(1, 2), 3ULL << 32, 4}.settle_hash()), 0x6065B945E2D26F95ULL);
  EXPECT_EQ(ExchangeId{}.settle_hash(), 0x2A4E86B13B9038B9ULL);
}

TEST(SettleHash, DependsOnEveryPart) {
  std::set<std::uint64_t> seen;
  for (const std::uint8_t last : {1, 2})
    for (const std::uint64_t incarnation : {1ULL << 32, 2ULL << 32})
      for (const std::uint64_t sequence : {1, 2, 3})
        seen.insert(ExchangeId{id_with(0, last), incarnation, sequence}.settle_hash());
  EXPECT_EQ(seen.size(), 12U);
}

TEST(SettleHash, LetsEitherSideWinAboutHalfTheTime) {
  int wins = 0;
  for (std::uint64_t sequence = 1; sequence <= 1000; ++sequence)
    wins += ExchangeId{id_with(1, 0), 1, sequence}.settle_hash() <
            ExchangeId{id_with(2, 0), 1, sequence}.settle_hash();
  EXPECT_GT(wins, 450);
  EXPECT_LT(wins, 550);
}

}  // namespace
}  // namespace kith
