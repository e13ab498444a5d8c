// GpuStats: what NVIDIA's management library (NVML) says about the graphics cards of this machine.
// The library belongs to the driver, so it is loaded at run time when it is there and nothing is
// needed to build; its few functions are declared in gpu_stats.cc. A card shows what it can: an
// older or virtual one lacks some figures, which are then empty.
//
// Contract: a driver may take seconds to answer or hang for ever, so only a thread of this object
// talks to it, and only when somebody reads. read() waits a moment for fresh figures and otherwise
// gives the latest ones. Thread: read() from any.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace kith::monitoring {

inline constexpr std::size_t kGpusMax = 16;  // further ones are left out: a scrape stays small

struct GpuSample {
  std::string index;  // as nvidia-smi counts: "0"
  std::string uuid, name;
  std::optional<double> utilization_ratio;  // share of the last moments in which a kernel ran
  std::optional<double> memory_used_bytes, memory_size_bytes;
  std::optional<double> energy_joules;  // since the driver was loaded
  std::optional<double> power_watts, temperature_celsius;
};

class GpuStats {
 public:
  // Null when the library cannot be loaded or lacks what every version has.
  static std::unique_ptr<GpuStats> load(const char* library = "libnvidia-ml.so.1");
  // Waits a second at most for the driver's last answer; a thread that hangs in it is left behind.
  ~GpuStats();
  GpuStats(const GpuStats&) = delete;
  GpuStats& operator=(const GpuStats&) = delete;

  [[nodiscard]] std::vector<GpuSample> read(Duration patience = std::chrono::milliseconds(250));

 private:
  struct Shared;
  explicit GpuStats(std::shared_ptr<Shared> shared);

  std::shared_ptr<Shared>
      shared_;  // also the thread's: it may outlive this object in a hung driver
};

}  // namespace kith::monitoring
