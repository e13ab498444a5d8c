// Pair: the two processes of a benchmark, and a socket between them for small words: addresses,
// barriers, times. Thread: one per process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.h"

namespace kith::bench {

class Pair {
 public:
  // Forks. side() is 0 in the parent, 1 in the child.
  static Result<Pair> split();
  Pair(Pair&& other) noexcept;
  Pair& operator=(Pair&&) = delete;
  ~Pair();

  [[nodiscard]] int side() const { return side_; }
  // Tells the other side and hears what it says; both must call it. Empty if the other side has
  // died.
  std::string trade(const std::string& word);
  std::uint64_t trade(std::uint64_t number);
  void barrier() { trade(std::uint64_t{0}); }
  // Parent: waits for the child, which has ended or will; its exit code.
  int join();

 private:
  Pair(int side, int fd, pid_t child) : side_(side), fd_(fd), child_(child) {}
  int side_;
  int fd_;
  pid_t child_;
};

}  // namespace kith::bench
