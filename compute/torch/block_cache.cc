#include "compute/torch/block_cache.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace kith::compute::torch {
namespace {

constexpr std::size_t kAlignment = 64;  // the first 64 bytes of a block hold its size
constexpr std::size_t kSmall = std::size_t{64} << 10;
constexpr std::size_t kKeptMin = std::size_t{64} << 20;

std::size_t& size_of(void* start) { return *static_cast<std::size_t*>(start); }
void* payload(void* start) { return static_cast<std::byte*>(start) + kAlignment; }
void* start_of(void* payload) { return static_cast<std::byte*>(payload) - kAlignment; }

}  // namespace

BlockCache::~BlockCache() { drop(); }

void* BlockCache::take(std::size_t bytes) {
  const std::size_t size = (bytes + 2 * kAlignment - 1) / kAlignment * kAlignment;
  if (size >= kSmall) {
    const std::lock_guard lock(mutex_);
    if (void* start = reuse(size)) return payload(start);
  }
  void* start = std::aligned_alloc(kAlignment, size);
  const std::lock_guard lock(mutex_);
  if (!start) {
    drop();
    start = std::aligned_alloc(kAlignment, size);
    if (!start) return nullptr;
  }
  size_of(start) = size;
  used_bytes_ += size;
  used_bytes_max_ = std::max(used_bytes_max_, used_bytes_);
  return payload(start);
}

// The smallest kept block that is large enough, and not larger by more than an eighth.
void* BlockCache::reuse(std::size_t size) {
  const auto found = kept_.lower_bound(size);
  if (found == kept_.end() || found->first > size + size / 8) return nullptr;
  void* start = found->second;
  kept_bytes_ -= found->first;
  used_bytes_ += found->first;
  used_bytes_max_ = std::max(used_bytes_max_, used_bytes_);
  kept_.erase(found);
  return start;
}

void BlockCache::give(void* block) {
  if (!block) return;
  void* start = start_of(block);
  const std::size_t size = size_of(start);
  const std::lock_guard lock(mutex_);
  used_bytes_ -= size;
  if (size < kSmall) {
    std::free(start);
    return;
  }
  if (kept_bytes_ + size > std::max(kKeptMin, used_bytes_max_)) drop();
  kept_.emplace(size, start);
  kept_bytes_ += size;
}

void BlockCache::drop() {
  for (const auto& [size, start] : kept_) std::free(start);
  kept_.clear();
  kept_bytes_ = 0;
}

std::size_t BlockCache::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_bytes_;
}

}  // namespace kith::compute::torch
