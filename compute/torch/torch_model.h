// TorchModel: the networks of LibTorch behind compute's Model interface. No torch type here.
//
// On the CPU the live values are plain memory and a merge is one pass of compute's kernels over it.
// On a GPU they go through pinned host memory. Exceptions of torch end here: in make_torch_model as
// a Result; in a step, where only bugs and exhausted memory raise any, as a failed check with
// torch's message.
#pragma once

#include <memory>

#include "base/result.h"
#include "compute/model.h"

namespace kith::compute::torch {

Result<std::unique_ptr<Model>> make_torch_model(const ModelSpec& spec,
                                                const OptimizerSpec& optimizer);

}  // namespace kith::compute::torch
