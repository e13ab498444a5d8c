#include "compute/affinity.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace kith::compute {
namespace {

TEST(Affinity, AThreadPinnedToOneCoreGetsOneComputeThread) {
  std::thread([] {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &all)) {
        CPU_SET(cpu, &one);
        break;
      }
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(allowed_cores(), 1U);
    MemoryLog log;
    EXPECT_EQ(clamp_threads(8, log), 1U);
    EXPECT_TRUE(log.contains("threads=1"));
    EXPECT_TRUE(log.contains("configured=8"));
  }).join();
}

TEST(Affinity, AllowedThreadsAreNotTouchedAndNotLogged) {
  MemoryLog log;
  EXPECT_EQ(clamp_threads(1, log), 1U);
  EXPECT_EQ(clamp_threads(0, log), 1U);
  EXPECT_TRUE(log.lines().empty());
}

TEST(Affinity, QuotasAreRoundedUpToWholeCores) {
  EXPECT_EQ(cores_of_quota("max 100000"), 0U);
  EXPECT_EQ(cores_of_quota("100000 100000"), 1U);
  EXPECT_EQ(cores_of_quota("150000 100000"), 2U);
  EXPECT_EQ(cores_of_quota("50000 100000"), 1U);
  EXPECT_EQ(cores_of_quota("400000 100000"), 4U);
  for (const char* odd : {"", "max", "100000", "x y", "100000 0"})
    EXPECT_EQ(cores_of_quota(odd), 0U) << odd;
}

}  // namespace
}  // namespace kith::compute
