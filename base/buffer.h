// Buffers that travel: bytes whose memory somebody else may still be reading.
//
// A Slice is a read-only view plus whatever keeps the bytes alive: a pooled buffer, a received ZeroMQ
// message, a simulated message. It is the one place where kith shares ownership on purpose: a payload sent
// without a copy is read by a ZeroMQ I/O thread after the sender has moved on, and a received chunk is kept
// inside its message until the fragment is complete. Rule: bytes of a Slice never change while any copy of it lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace kith {

class Slice {
 public:
  Slice() = default;
  Slice(std::shared_ptr<const void> owner, std::span<const std::byte> bytes)
      : owner_(std::move(owner)), bytes_(bytes) {}
  static Slice copy_of(std::span<const std::byte> bytes);

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] const std::byte* data() const { return bytes_.data(); }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  [[nodiscard]] Slice sub(std::size_t offset, std::size_t length) const;  // checked
  [[nodiscard]] const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  std::shared_ptr<const void> owner_;  // shared: see the head of this file
  std::span<const std::byte> bytes_;
};

// A value of `byte_count` bytes held in pieces (chunks, each possibly at an odd address), in order, without holes.
struct Payload {
  std::vector<Slice> pieces;
  [[nodiscard]] std::size_t size() const;
  // The same bytes in one piece, 64-byte aligned; copies only if there is more than one piece or it is misaligned.
  [[nodiscard]] Slice contiguous() const;
};

// Writable memory from a BufferPool, 64-byte aligned; freeze() ends writing and hands it on as a Slice,
// and it returns to the pool when the last copy of that Slice is gone, on whichever thread.
class PooledBuffer {
 public:
  [[nodiscard]] std::span<std::byte> bytes() { return {data_.get(), size_}; }
  [[nodiscard]] Slice freeze(std::size_t length) &&;

 private:
  friend class BufferPool;
  std::shared_ptr<std::byte> data_;
  std::size_t size_ = 0;
};

// A bounded set of equal buffers, all allocated (and touched) at construction. Any thread.
class BufferPool {
 public:
  BufferPool(std::size_t buffer_bytes, std::size_t count);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  // False in the second place when all are out: the caller does without (answers BUSY, waits for a later step).
  [[nodiscard]] bool try_take(PooledBuffer& out);
  [[nodiscard]] std::size_t available() const;
  [[nodiscard]] std::size_t buffer_bytes() const { return buffer_bytes_; }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  struct Shared;  // free list; shared with buffers still in flight, so that a pool may die before them
  std::size_t buffer_bytes_;
  std::size_t count_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace kith
