// Where a model computes: reads [train] device, and keeps LibTorch to the cores that this process
// may use.
#pragma once

#include <string>

#include "base/result.h"
#include "compute/torch/aten.h"

namespace kith::compute::torch {

// auto: cuda:0 when built with CUDA and one is there, else cpu. Errors: kUsage for another word,
// kFailed for a device that is not there, with what to do.
Result<at::Device> choose_device(const std::string& name);

// LibTorch's compute threads for the calling thread: `wanted`, at least 1, at most the allowed
// cores. Cheap when nothing changes, so every entry into a model calls it: OpenMP's number of
// threads belongs to the thread that starts them.
void use_threads(unsigned wanted);

}  // namespace kith::compute::torch
