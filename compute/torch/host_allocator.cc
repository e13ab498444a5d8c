#include <c10/core/Allocator.h>

#include <mutex>

#include "compute/torch/block_cache.h"

namespace kith::compute::torch {
namespace {

// Never destroyed: tensors may outlive every static object.
BlockCache& cache() {
  static auto* const instance = new BlockCache;
  return *instance;
}

void give_back(void* block) { cache().give(block); }

struct HostAllocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    void* block = bytes == 0 ? nullptr : cache().take(bytes);
    TORCH_CHECK(bytes == 0 || block, "out of memory: ", bytes, " bytes for a tensor");
    return {block, block, &give_back, c10::Device(c10::DeviceType::CPU)};
  }
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

}  // namespace

void use_block_cache() {
  static std::once_flag once;
  std::call_once(
      once, [] { c10::SetAllocator(c10::DeviceType::CPU, new HostAllocator, /*priority=*/1); });
}

}  // namespace kith::compute::torch
