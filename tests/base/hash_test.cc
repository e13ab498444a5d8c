#include "base/hash.h"

#include <gtest/gtest.h>

namespace kith {
namespace {

std::span<const std::byte> raw(std::string_view text) { return std::as_bytes(std::span(text)); }

// BLAKE2b with 32 bytes of output, as `b2sum -l 256` prints it.
TEST(Hash, IsBlake2bWith256Bits) {
  EXPECT_EQ(hash_bytes({}).hex(),
            "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  EXPECT_EQ(hash_bytes(raw("abc")).hex(),
            "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

TEST(Hash, OfBytesDoesNotDependOnHowTheyAreCut) {
  const Hash256 pieces = Hasher().add(raw("a")).add(raw("")).add(raw("bc")).finish();
  EXPECT_EQ(pieces, hash_bytes(raw("abc")));
}

TEST(Hash, OfTextsDependsOnWhereTheyEnd) {
  const Hash256 one = Hasher().add(std::string_view("ab")).add(std::string_view("c")).finish();
  const Hash256 two = Hasher().add(std::string_view("a")).add(std::string_view("bc")).finish();
  EXPECT_NE(one, two);
}

TEST(Hash, OfNumbersIsLittleEndian) {
  const std::string_view bytes("\x08\x07\x06\x05\x04\x03\x02\x01", 8);
  EXPECT_EQ(Hasher().add(std::uint64_t{0x0102030405060708}).finish(), hash_bytes(raw(bytes)));
}

TEST(HashDeathTest, IsFinishedOnce) {
  Hasher hasher;
  (void)hasher.finish();
  EXPECT_DEATH((void)hasher.finish(), "once");
  EXPECT_DEATH(hasher.add(std::uint64_t{1}), "once");
}

}  // namespace
}  // namespace kith
