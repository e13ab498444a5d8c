// ReLU followed by 2x2 max pooling, as one operator with its own gradient.
//
// Why: on contiguous (N x C x H x W) tensors LibTorch's max pooling is not vectorised and takes two
// thirds of a small CNN's forward pass. The channels-last layout is faster too, but rounds its
// convolutions differently; this one gives the bits of relu() and max_pool2d() in the default
// layout (NaN goes through; of equal values the first takes the gradient). CPU and contiguous fp32:
// the kernels here; everything else: LibTorch's two operators.
#pragma once

#include "compute/torch/aten.h"

namespace kith::compute::torch {

at::Tensor relu_pool(const at::Tensor& inputs);

}  // namespace kith::compute::torch
