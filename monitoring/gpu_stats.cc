#include "monitoring/gpu_stats.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>

namespace kith::monitoring {
namespace {

// The part of NVML's interface that is used here; all functions return 0 for success.
using Device = void*;
struct Utilization {
  unsigned gpu = 0, memory = 0;  // percent
};
struct Memory {
  unsigned long long total = 0, free = 0, used = 0;  // bytes
};

struct Nvml {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, Device*) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  // may be absent
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*energy)(Device, unsigned long long*) = nullptr;  // millijoules
  int (*power)(Device, unsigned*) = nullptr;             // milliwatts
  int (*temperature)(Device, int, unsigned*) = nullptr;  // sensor 0: the chip
};

template <typename Function>
bool find(void* library, const char* name, Function*& to) {
  to = reinterpret_cast<Function*>(dlsym(library, name));
  return to != nullptr;
}

std::optional<Nvml> functions_of(void* library) {
  Nvml n;
  const bool complete = find(library, "nvmlInit_v2", n.init) &&
                        find(library, "nvmlShutdown", n.shutdown) &&
                        find(library, "nvmlDeviceGetCount_v2", n.count) &&
                        find(library, "nvmlDeviceGetHandleByIndex_v2", n.handle) &&
                        find(library, "nvmlDeviceGetUUID", n.uuid);
  if (!complete) return std::nullopt;
  find(library, "nvmlDeviceGetName", n.name);
  find(library, "nvmlDeviceGetUtilizationRates", n.utilization);
  find(library, "nvmlDeviceGetMemoryInfo", n.memory);
  find(library, "nvmlDeviceGetTotalEnergyConsumption", n.energy);
  find(library, "nvmlDeviceGetPowerUsage", n.power);
  find(library, "nvmlDeviceGetTemperature", n.temperature);
  return n;
}

template <typename Value, typename Function>
std::optional<double> scaled(Function* function, Device device, double scale) {
  Value value = 0;
  if (function == nullptr || function(device, &value) != 0) return std::nullopt;
  return static_cast<double>(value) * scale;
}

std::string text_of(int (*function)(Device, char*, unsigned), Device device) {
  std::array<char, 97> text{};
  if (function == nullptr || function(device, text.data(), text.size() - 1) != 0) return "";
  return text.data();
}

GpuSample sample_of(const Nvml& nvml, Device device, unsigned index) {
  GpuSample out;
  out.index = std::to_string(index);
  out.uuid = text_of(nvml.uuid, device);
  out.name = text_of(nvml.name, device);
  if (Utilization busy; nvml.utilization != nullptr && nvml.utilization(device, &busy) == 0)
    out.utilization_ratio = busy.gpu / 100.0;
  if (Memory memory; nvml.memory != nullptr && nvml.memory(device, &memory) == 0) {
    out.memory_used_bytes = static_cast<double>(memory.used);
    out.memory_size_bytes = static_cast<double>(memory.total);
  }
  out.energy_joules = scaled<unsigned long long>(nvml.energy, device, 1e-3);
  out.power_watts = scaled<unsigned>(nvml.power, device, 1e-3);
  if (unsigned celsius = 0;
      nvml.temperature != nullptr && nvml.temperature(device, 0, &celsius) == 0)
    out.temperature_celsius = celsius;
  return out;
}

std::vector<GpuSample> sample_all(const Nvml& nvml) {
  unsigned count = 0;
  if (nvml.count(&count) != 0) return {};
  std::vector<GpuSample> out;
  for (unsigned i = 0; i < count && out.size() < kGpusMax; ++i) {
    Device device = nullptr;
    if (nvml.handle(i, &device) == 0) out.push_back(sample_of(nvml, device, i));
  }
  return out;
}

}  // namespace

struct GpuStats::Shared {
  explicit Shared(Nvml functions) : nvml(functions) {}

  void run();

  const Nvml nvml;
  std::mutex mutex;
  std::condition_variable changed;
  // guarded by mutex
  std::uint64_t wanted = 0, taken = 0;  // numbers of readings
  bool stopping = false, ended = false;
  std::vector<GpuSample> latest;
};

// The library stays loaded while the process lives: the thread may be inside it.
void GpuStats::Shared::run() {
  const bool usable = nvml.init() == 0;
  std::unique_lock lock(mutex);
  while (usable && !stopping) {
    changed.wait(lock, [this] { return stopping || wanted > taken; });
    if (stopping) break;
    const std::uint64_t serving = wanted;
    lock.unlock();
    std::vector<GpuSample> fresh = sample_all(nvml);
    lock.lock();
    latest = std::move(fresh);
    taken = serving;
    changed.notify_all();
  }
  lock.unlock();
  if (usable) nvml.shutdown();
  lock.lock();
  ended = true;
  changed.notify_all();
}

std::unique_ptr<GpuStats> GpuStats::load(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  const auto functions = functions_of(handle);
  if (!functions) {
    dlclose(handle);
    return nullptr;
  }
  auto shared = std::make_shared<Shared>(*functions);
  std::thread([shared] { shared->run(); }).detach();
  return std::unique_ptr<GpuStats>(new GpuStats(std::move(shared)));
}

GpuStats::GpuStats(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

GpuStats::~GpuStats() {
  std::unique_lock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, std::chrono::seconds(1), [this] { return shared_->ended; });
}

std::vector<GpuSample> GpuStats::read(Duration patience) {
  std::unique_lock lock(shared_->mutex);
  if (shared_->ended) return {};
  const std::uint64_t mine = ++shared_->wanted;
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, patience,
                            [&] { return shared_->taken >= mine || shared_->ended; });
  return shared_->latest;
}

}  // namespace kith::monitoring
