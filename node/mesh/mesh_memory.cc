#include "node/mesh/mesh_memory.h"

#include <malloc.h>

namespace kith::node {
namespace {

constexpr int kOwnBlockBytes = 32 << 20;  // the largest that glibc allows
constexpr int kKeptBytes = 64 << 20;
constexpr std::size_t kLargeBytes = 64 << 10;
constexpr Duration kQuiet = std::chrono::seconds(5);

}  // namespace

void keep_message_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, kOwnBlockBytes);
  mallopt(M_TRIM_THRESHOLD, kKeptBytes);
#endif
}

void MemoryKeeper::received(std::size_t bytes) { used_ |= bytes >= kLargeBytes; }

bool MemoryKeeper::tick(TimePoint now) {
  if (used_) {
    used_ = false;
    give_back_at_ = now + kQuiet;
  }
  if (now < give_back_at_) return false;
  give_back_at_ = TimePoint::max();
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  return true;
}

}  // namespace kith::node
