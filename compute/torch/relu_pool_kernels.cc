#include "compute/torch/relu_pool_kernels.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace kith::compute::torch {
namespace {

// Selections by bit masks: compilers turn them into vector code, and branches not always.
inline std::uint32_t mask(bool condition) { return -static_cast<std::uint32_t>(condition); }

// All of `rest`, leaving none, or nothing.
inline float take_if(bool wanted, std::uint32_t& rest) {
  const std::uint32_t taken = rest & mask(wanted);
  rest &= ~mask(wanted);
  return std::bit_cast<float>(taken);
}

// The larger of both, NaN if either is: what max_pool2d keeps.
inline float larger(float kept, float value) {
  return (value > kept || value != value) ? value : kept;
}

void backward_row(const float* __restrict upper, const float* __restrict lower,
                  const float* __restrict outputs, const float* __restrict gradient,
                  float* __restrict upper_gradient, float* __restrict lower_gradient,
                  std::size_t columns) {
  for (std::size_t i = 0; i < columns; ++i) {
    const float best = outputs[i];
    std::uint32_t rest = std::bit_cast<std::uint32_t>(gradient[i]) & mask(best > 0.0F);
    upper_gradient[2 * i] = take_if(upper[2 * i] == best, rest);
    upper_gradient[2 * i + 1] = take_if(upper[2 * i + 1] == best, rest);
    lower_gradient[2 * i] = take_if(lower[2 * i] == best, rest);
    lower_gradient[2 * i + 1] = take_if(lower[2 * i + 1] == best, rest);
  }
}

}  // namespace

void relu_pool_forward(const float* __restrict inputs, float* __restrict outputs,
                       std::size_t planes, std::size_t height, std::size_t width) {
  const std::size_t columns = width / 2;
  for (std::size_t plane = 0; plane < planes; ++plane, inputs += height * width) {
    for (std::size_t row = 0; row < height / 2; ++row, outputs += columns) {
      const float* upper = inputs + 2 * row * width;
      const float* lower = upper + width;
      for (std::size_t i = 0; i < columns; ++i) {
        const float above = larger(larger(0.0F, upper[2 * i]), upper[2 * i + 1]);
        outputs[i] = larger(larger(above, lower[2 * i]), lower[2 * i + 1]);
      }
    }
  }
}

void relu_pool_backward(const float* inputs, const float* outputs, const float* gradient,
                        float* input_gradient, std::size_t planes, std::size_t height,
                        std::size_t width) {
  const std::size_t columns = width / 2;
  if (height % 2 != 0 || width % 2 != 0) std::fill_n(input_gradient, planes * height * width, 0.0F);
  for (std::size_t plane = 0; plane < planes; ++plane) {
    for (std::size_t row = 0; row < height / 2; ++row, outputs += columns, gradient += columns) {
      const std::size_t upper = (plane * height + 2 * row) * width;
      const std::size_t lower = upper + width;
      backward_row(inputs + upper, inputs + lower, outputs, gradient, input_gradient + upper,
                   input_gradient + lower, columns);
    }
  }
}

}  // namespace kith::compute::torch
