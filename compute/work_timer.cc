#include "compute/work_timer.h"

#include <sys/resource.h>
#include <time.h>

namespace kith::compute {

WorkTimer::Reading WorkTimer::read() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  timespec cpu{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  return {static_cast<double>(cpu.tv_sec) + 1e-9 * static_cast<double>(cpu.tv_nsec),
          usage.ru_nvcsw};
}

void WorkTimer::restart() {
  start_ = read();
  wall_start_ = std::chrono::steady_clock::now();
}

double WorkTimer::seconds() const {
  const auto wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_start_).count();
  const Reading end = read();
  return end.blocked == start_.blocked ? end.processor_seconds - start_.processor_seconds : wall;
}

}  // namespace kith::compute
