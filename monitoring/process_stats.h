// What /proc says about this process, under the names that every Prometheus client library uses
// (process_*).
#pragma once

#include <optional>

namespace kith::monitoring {

// A value that could not be read is empty.
struct ProcessStats {
  std::optional<double> cpu_seconds, resident_bytes, virtual_bytes, open_fds, max_fds, threads;
  std::optional<double> start_time_seconds;  // since 1970
};

// Any thread. Opens a few files under /proc/self.
ProcessStats read_process_stats();

}  // namespace kith::monitoring
