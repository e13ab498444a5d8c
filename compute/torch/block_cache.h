// Memory for tensors that is used again instead of going back to the system.
//
// Why: every step allocates the same activations, gradients and temporaries again. malloc gives
// blocks of this size back to the kernel when they are freed, and a page fault for every 4 KiB of
// them is half the step of a small CNN (measured: 1,100 faults, 2 ms of 4.7) and more of a large
// one. Blocks under 64 KiB are left to malloc. Kept: at most as much as was ever in use at once, or
// 64 MiB; beyond that all kept blocks are freed and it starts over. Thread: any. Blocks are aligned
// to 64 bytes, as LibTorch's own.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

namespace kith::compute::torch {

class BlockCache {
 public:
  BlockCache() = default;
  ~BlockCache();
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // Null when there is no memory, even after freeing what was kept.
  void* take(std::size_t bytes);
  void give(void* block);

  [[nodiscard]] std::size_t kept_bytes() const;

 private:
  void* reuse(std::size_t bytes);
  void drop();

  mutable std::mutex mutex_;
  std::multimap<std::size_t, void*> kept_;  // by size
  std::size_t kept_bytes_ = 0;
  std::size_t used_bytes_ = 0;
  std::size_t used_bytes_max_ = 0;
};

// Makes LibTorch take the memory of its tensors on the CPU from one cache for the whole process.
// Once; any thread.
void use_block_cache();

}  // namespace kith::compute::torch
