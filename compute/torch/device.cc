#include "compute/torch/device.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <string_view>

#include "compute/affinity.h"

namespace kith::compute::torch {
namespace {

#ifdef KITH_CUDA
constexpr bool kBuiltWithCuda = true;
#else
constexpr bool kBuiltWithCuda = false;
#endif

int cuda_devices() {
  if (!kBuiltWithCuda || !at::globalContext().hasCUDA()) return 0;
  return static_cast<int>(at::detail::getCUDAHooks().deviceCount());
}

Result<at::Device> choose_cuda(const std::string& name) {
  int index = 0;
  if (name != "cuda") {
    const std::string_view digits = std::string_view(name).substr(5);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error != std::errc() || end != digits.data() + digits.size() || index < 0 || index > 127) {
      return fail(ErrorCode::kUsage,
                  "train.device is '" + name + "': expected cuda:N, N from 0 to 127");
    }
  }
  if (!kBuiltWithCuda) {
    return fail("train.device is '" + name +
                "', and this kith was built without CUDA: use device = \"cpu\", or run "
                "scripts/fetch_torch.sh --cuda and configure with -DKITH_CUDA=ON");
  }
  const int devices = cuda_devices();
  if (index >= devices) {
    return fail("train.device is '" + name + "', and CUDA sees " + std::to_string(devices) +
                " devices: use device = \"auto\" or \"cpu\", or check the driver (nvidia-smi)");
  }
  return at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(index));
}

}  // namespace

Result<at::Device> choose_device(const std::string& name) {
  if (name == "cpu") return at::Device(at::kCPU);
  if (name == "auto") {
    return cuda_devices() > 0 ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
  }
  if (name == "cuda" || name.starts_with("cuda:")) return choose_cuda(name);
  return fail(ErrorCode::kUsage, "train.device is '" + name + "': expected auto, cpu or cuda:N");
}

void use_threads(unsigned wanted) {
  static std::once_flag once;
  std::call_once(once, [] { at::set_num_interop_threads(1); });
  thread_local unsigned in_use = 0;
  if (in_use == wanted && in_use != 0) return;
  at::set_num_threads(static_cast<int>(std::clamp(wanted, 1U, allowed_cores())));
  in_use = wanted;
}

}  // namespace kith::compute::torch
