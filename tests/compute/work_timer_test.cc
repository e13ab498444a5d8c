#include "compute/work_timer.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace kith::compute {
namespace {

TEST(WorkTimerTest, CountsTimeInWhichTheThreadWasBlocked) {
  std::promise<void> go_on;
  std::thread other([&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(30);
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
    go_on.set_value();
  });
  WorkTimer timer;
  timer.restart();
  const auto start = std::chrono::steady_clock::now();
  go_on.get_future().wait();
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_GE(timer.seconds(), wall);
  other.join();
}

TEST(WorkTimerTest, CountsTheThreadsOwnWorkAndNotMoreThanTheWall) {
  WorkTimer timer;
  timer.restart();
  const auto start = std::chrono::steady_clock::now();
  volatile double sink = 0.0;
  for (int i = 0; i < 2'000'000; ++i) sink = sink + i;
  const double seconds = timer.seconds();
  EXPECT_GT(seconds, 1e-4);
  EXPECT_LE(seconds,
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() + 1e-3);
}

}  // namespace
}  // namespace kith::compute
