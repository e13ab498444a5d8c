#include "base/clock.h"

#include <ctime>

namespace kith {

TimePoint SystemClock::now() const {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return {std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec)};
}

double SystemClock::wall_seconds() const {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace kith
