// A small NVML for tests: cards with known figures, a driver that fails or hangs on request.
// fake_nvml_mode() sets what it does: 0 works, 1 init fails, 2 hangs in every reading until the
// mode changes, 3 has twenty cards.
#include <poll.h>

#include <atomic>
#include <cstdint>
#include <cstdio>

namespace {

std::atomic<int> mode{0};
constexpr int kNotSupported = 3;

std::intptr_t index_of(void* device) { return reinterpret_cast<std::intptr_t>(device) - 1; }

struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};

}  // namespace

extern "C" {

void fake_nvml_mode(int value) { mode = value; }

int nvmlInit_v2() { return mode == 1 ? 999 : 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  while (mode == 2) ::poll(nullptr, 0, 5);
  *count = mode == 3 ? 20 : 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<std::intptr_t>(index) + 1);
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned length) {
  std::snprintf(text, length, "GPU-%d", static_cast<int>(index_of(device)));
  return 0;
}
int nvmlDeviceGetName(void*, char* text, unsigned length) {
  std::snprintf(text, length, "Test Card");
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, Utilization* out) {
  *out = {index_of(device) == 0 ? 75U : 10U, 5U};
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, Memory* out) {
  *out = {8ULL << 30, 6ULL << 30, 2ULL << 30};
  return 0;
}
// The second card is an old one.
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  if (index_of(device) != 0) return kNotSupported;
  *millijoules = 1'500'500;
  return 0;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  if (index_of(device) != 0) return kNotSupported;
  *milliwatts = 250'000;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int sensor, unsigned* celsius) {
  *celsius = 61;
  return sensor == 0 ? 0 : kNotSupported;
}
}
