#include "compute/affinity.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <thread>

namespace kith::compute {
namespace {

unsigned affinity_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return std::max(1U, std::thread::hardware_concurrency());
  return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
}

// In a container the process sees its own control group at the root of the tree.
unsigned quota_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string line;
  if (!file || !std::getline(file, line)) return 0;
  return cores_of_quota(line);
}

}  // namespace

unsigned cores_of_quota(std::string_view cpu_max) {
  const std::size_t blank = cpu_max.find(' ');
  if (blank == std::string_view::npos) return 0;
  const std::string_view quota = cpu_max.substr(0, blank), period = cpu_max.substr(blank + 1);
  std::uint64_t q = 0, p = 0;
  if (std::from_chars(quota.data(), quota.data() + quota.size(), q).ec != std::errc{}) return 0;
  if (std::from_chars(period.data(), period.data() + period.size(), p).ec != std::errc{} || p == 0)
    return 0;
  return static_cast<unsigned>(std::clamp<std::uint64_t>((q + p - 1) / p, 1, 1U << 16));
}

unsigned allowed_cores() {
  const unsigned cores = affinity_cores(), quota = quota_cores();
  return quota == 0 ? cores : std::min(cores, quota);
}

unsigned clamp_threads(unsigned wanted, LogSink& log) {
  const unsigned allowed = allowed_cores();
  const unsigned threads = std::clamp(wanted, 1U, allowed);
  if (wanted > allowed) {
    log.log(LogLevel::kWarn, "compute",
            "fewer compute threads than configured: this process may use fewer cores",
            {{"threads", std::to_string(threads)}, {"configured", std::to_string(wanted)}});
  }
  return threads;
}

}  // namespace kith::compute
