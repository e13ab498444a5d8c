// A file in memory that code which takes a path can open, rewritten for each input.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/check.h"

namespace kith {

class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("kith-fuzz", MFD_CLOEXEC)) {
    KITH_CHECK(fd_ >= 0, "memfd_create works");
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(fd_); }

  void replace(std::span<const std::uint8_t> bytes) {
    KITH_CHECK(::ftruncate(fd_, 0) == 0, "a memory file can be emptied");
    const ssize_t written = ::pwrite(fd_, bytes.data(), bytes.size(), 0);
    KITH_CHECK(written == static_cast<ssize_t>(bytes.size()),
               "a memory file takes what it is given");
  }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

}  // namespace kith
