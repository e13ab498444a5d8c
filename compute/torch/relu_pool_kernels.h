// The loops of relu_pool, for `planes` contiguous images of height x width. Outputs are planes x
// (height / 2) x (width / 2). The last row or column of an odd extent is not looked at, and gets no
// gradient. Pure functions, any thread.
#pragma once

#include <cstddef>

namespace kith::compute::torch {

// The largest of the four values and 0, NaN if one of them is NaN.
void relu_pool_forward(const float* inputs, float* outputs, std::size_t planes, std::size_t height,
                       std::size_t width);

// Writes all of `input_gradient`: each output's gradient to the first of its four inputs that
// equals it, none where the output is 0.
void relu_pool_backward(const float* inputs, const float* outputs, const float* gradient,
                        float* input_gradient, std::size_t planes, std::size_t height,
                        std::size_t width);

}  // namespace kith::compute::torch
