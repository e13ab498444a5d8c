#include "base/buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>

namespace kith {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}
std::string text_of(const Slice& slice) {
  return {reinterpret_cast<const char*>(slice.data()), slice.size()};
}
bool aligned(const void* at, std::size_t unit) {
  return reinterpret_cast<std::uintptr_t>(at) % unit == 0;
}

TEST(Slice, CopyIsIndependentOfItsSource) {
  std::string source = "hello";
  const Slice slice = Slice::copy_of(bytes_of(source));
  source[0] = 'x';
  EXPECT_EQ(text_of(slice), "hello");
}

TEST(Slice, PartKeepsTheWholeAlive) {
  Slice part;
  {
    const Slice whole = Slice::copy_of(bytes_of("hello world"));
    part = whole.sub(6, 5);
  }
  EXPECT_EQ(text_of(part), "world");
}

TEST(SliceDeathTest, PartOutsideIsABug) {
  const Slice slice = Slice::copy_of(bytes_of("hello"));
  EXPECT_DEATH((void)slice.sub(3, 3), "5 bytes");
  EXPECT_DEATH((void)slice.sub(6, 0), "5 bytes");
  EXPECT_DEATH((void)slice.sub(1, SIZE_MAX), "5 bytes");
}

TEST(Payload, InSeveralPiecesBecomesOneAlignedPiece) {
  Payload payload;
  for (const char* piece : {"ab", "", "cde", "f"})
    payload.pieces.push_back(Slice::copy_of(bytes_of(piece)));
  const Slice joined = payload.contiguous();
  EXPECT_EQ(payload.size(), 6U);
  EXPECT_EQ(text_of(joined), "abcdef");
  EXPECT_TRUE(aligned(joined.data(), 64));
}

TEST(Payload, InOneAlignedPieceIsNotCopied) {
  Payload payload;
  payload.pieces.push_back(Slice::copy_of(bytes_of("abc")));
  EXPECT_EQ(payload.contiguous().data(), payload.pieces[0].data());
}

TEST(Payload, InOneMisalignedPieceIsCopied) {
  Payload payload;
  payload.pieces.push_back(Slice::copy_of(bytes_of("abc")).sub(1, 2));
  const Slice joined = payload.contiguous();
  EXPECT_TRUE(aligned(joined.data(), 64));
  EXPECT_EQ(text_of(joined), "bc");
}

TEST(Payload, WithoutPiecesIsEmpty) { EXPECT_EQ(Payload{}.contiguous().size(), 0U); }

TEST(BufferPool, HandsOutAlignedBuffersThatDoNotOverlap) {
  for (const std::size_t size : {1U, 64U, 100U, 4096U, 5000U}) {
    BufferPool pool(size, 3);
    std::vector<PooledBuffer> taken(3);
    for (PooledBuffer& buffer : taken) {
      ASSERT_TRUE(pool.try_take(buffer));
      ASSERT_EQ(buffer.bytes().size(), size);
      EXPECT_TRUE(aligned(buffer.bytes().data(), size >= 4096 ? 4096 : 64));
      std::memset(buffer.bytes().data(), static_cast<int>(&buffer - taken.data()) + 1, size);
    }
    for (std::size_t i = 0; i < taken.size(); ++i)
      for (const std::byte byte : taken[i].bytes()) ASSERT_EQ(byte, static_cast<std::byte>(i + 1));
  }
}

TEST(BufferPool, SaysWhenAllAreOut) {
  BufferPool pool(10, 2);
  PooledBuffer a, b, c;
  EXPECT_TRUE(pool.try_take(a));
  EXPECT_TRUE(pool.try_take(b));
  EXPECT_FALSE(pool.try_take(c));
  EXPECT_EQ(pool.available(), 0U);
}

TEST(BufferPool, TakesBackABufferThatWasNeverFrozen) {
  BufferPool pool(10, 1);
  {
    PooledBuffer buffer;
    ASSERT_TRUE(pool.try_take(buffer));
  }
  EXPECT_EQ(pool.available(), 1U);
}

TEST(BufferPool, TakesBackABufferWhenTheLastSliceIsGone) {
  BufferPool pool(10, 1);
  PooledBuffer buffer;
  ASSERT_TRUE(pool.try_take(buffer));
  std::memcpy(buffer.bytes().data(), "0123456789", 10);
  Slice slice = std::move(buffer).freeze(7);
  Slice part = slice.sub(2, 3);
  slice = {};
  EXPECT_EQ(text_of(part), "234");
  EXPECT_EQ(pool.available(), 0U);
  part = {};
  EXPECT_EQ(pool.available(), 1U);
}

TEST(BufferPool, MayDieBeforeItsBuffers) {
  Slice slice;
  {
    BufferPool pool(3, 1);
    PooledBuffer buffer;
    ASSERT_TRUE(pool.try_take(buffer));
    std::memcpy(buffer.bytes().data(), "abc", 3);
    slice = std::move(buffer).freeze(3);
  }
  EXPECT_EQ(text_of(slice), "abc");
}

TEST(BufferPool, IsSharedByThreads) {
  BufferPool pool(64, 4);
  const auto work = [&pool](int seed) {
    for (int i = 0; i < 2000; ++i) {
      PooledBuffer buffer;
      if (!pool.try_take(buffer)) continue;
      std::memset(buffer.bytes().data(), seed, 64);
      const Slice slice = std::move(buffer).freeze(64);
      for (const std::byte byte : slice.bytes()) ASSERT_EQ(byte, static_cast<std::byte>(seed));
    }
  };
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.available(), 4U);
}

TEST(BufferPoolDeathTest, FreezingMoreThanThereIsIsABug) {
  BufferPool pool(10, 1);
  PooledBuffer buffer;
  ASSERT_TRUE(pool.try_take(buffer));
  EXPECT_DEATH((void)std::move(buffer).freeze(11), "10 bytes");
}

}  // namespace
}  // namespace kith
