#include "base/buffer.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/check.h"

namespace kith {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kPage = 4096;

struct FreeDeleter {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte, FreeDeleter>;

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

Memory allocate(std::size_t bytes, std::size_t alignment) {
  const std::size_t rounded = round_up(std::max<std::size_t>(bytes, 1), alignment);
  KITH_CHECK(rounded >= bytes, "a buffer's size must not overflow");
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
  KITH_CHECK(memory != nullptr, "out of memory: " + std::to_string(rounded) + " bytes");
  return Memory(memory);
}

Slice copy_pieces(std::span<const Slice> pieces, std::size_t total) {
  std::shared_ptr<std::byte> copy(allocate(total, kCacheLine));
  std::size_t at = 0;
  for (const Slice& piece : pieces) {
    if (!piece.empty()) std::memcpy(copy.get() + at, piece.data(), piece.size());
    at += piece.size();
  }
  const std::span<const std::byte> view(copy.get(), total);
  return {std::move(copy), view};
}

}  // namespace

Slice Slice::copy_of(std::span<const std::byte> bytes) {
  const Slice source(nullptr, bytes);
  return copy_pieces({&source, 1}, bytes.size());
}

Slice Slice::sub(std::size_t offset, std::size_t length) const {
  KITH_CHECK(offset <= size() && length <= size() - offset,
             "slice of " + std::to_string(size()) + " bytes, asked for " + std::to_string(length) +
                 " at " + std::to_string(offset));
  return {owner_, bytes_.subspan(offset, length)};
}

std::size_t Payload::size() const {
  std::size_t total = 0;
  for (const Slice& piece : pieces) total += piece.size();
  return total;
}

Slice Payload::contiguous() const {
  const bool aligned =
      pieces.size() == 1 && reinterpret_cast<std::uintptr_t>(pieces[0].data()) % kCacheLine == 0;
  return aligned ? pieces[0] : copy_pieces(pieces, size());
}

Slice PooledBuffer::freeze(std::size_t length) && {
  KITH_CHECK(data_ != nullptr, "an empty buffer cannot be frozen");
  KITH_CHECK(length <= size_, "buffer of " + std::to_string(size_) + " bytes, asked to freeze " +
                                  std::to_string(length));
  const std::span<const std::byte> view(data_.get(), length);
  size_ = 0;
  return {std::move(data_), view};
}

struct BufferPool::Shared {
  Memory memory;
  mutable std::mutex mutex;
  std::vector<std::byte*>
      free;  // guarded by mutex; its capacity is fixed, so giving back never allocates

  void give_back(std::byte* buffer) {
    const std::lock_guard lock(mutex);
    free.push_back(buffer);
  }
};

// Buffers of a page or more begin on a page, smaller ones on a cache line, so that no two share
// one.
BufferPool::BufferPool(std::size_t buffer_bytes, std::size_t count)
    : buffer_bytes_(buffer_bytes), count_(count), shared_(std::make_shared<Shared>()) {
  const std::size_t unit = buffer_bytes >= kPage ? kPage : kCacheLine;
  const std::size_t stride = round_up(std::max<std::size_t>(buffer_bytes, 1), unit);
  KITH_CHECK(count == 0 || stride <= SIZE_MAX / count, "a pool's size must not overflow");
  shared_->memory = allocate(stride * count, kPage);
  std::memset(shared_->memory.get(), 0, stride * count);  // touched now, not in the first exchange
  shared_->free.reserve(count);
  for (std::size_t i = count; i > 0; --i)
    shared_->free.push_back(shared_->memory.get() + (i - 1) * stride);
}

BufferPool::~BufferPool() = default;

bool BufferPool::try_take(PooledBuffer& out) {
  std::byte* buffer = nullptr;
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->free.empty()) return false;
    buffer = shared_->free.back();
    shared_->free.pop_back();
  }
  // If `out` still held a buffer, the assignment gives that one back.
  out.data_ = std::shared_ptr<std::byte>(
      buffer, [shared = shared_](std::byte* returned) { shared->give_back(returned); });
  out.size_ = buffer_bytes_;
  return true;
}

std::size_t BufferPool::available() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->free.size();
}

}  // namespace kith
