// Time that a stretch of work took its thread: wall time if the thread blocked in it (a lock, a
// device), otherwise its processor time. On a machine with more threads than cores, wall time alone
// would book other processes' turns as waiting. Thread: one owner. Costs about a microsecond per
// use (two system calls).
#pragma once

#include <chrono>

namespace kith::compute {

class WorkTimer {
 public:
  void restart();
  [[nodiscard]] double seconds() const;  // since restart

 private:
  struct Reading {
    double processor_seconds = 0.0;
    long blocked = 0;  // voluntary context switches
  };
  static Reading read();
  std::chrono::steady_clock::time_point wall_start_{};
  Reading start_;
};

}  // namespace kith::compute
