#include "compute/torch/relu_pool.h"

#include <torch/csrc/autograd/custom_function.h>

#include "compute/torch/relu_pool_kernels.h"

namespace kith::compute::torch {
namespace {

using ::torch::autograd::AutogradContext;
using ::torch::autograd::variable_list;

struct Planes {
  std::size_t count, height, width;
};

Planes planes_of(const at::Tensor& images) {
  return {static_cast<std::size_t>(images.size(0) * images.size(1)),
          static_cast<std::size_t>(images.size(2)), static_cast<std::size_t>(images.size(3))};
}

struct ReluPool : ::torch::autograd::Function<ReluPool> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& inputs) {
    const Planes p = planes_of(inputs);
    at::Tensor outputs = at::empty(
        {inputs.size(0), inputs.size(1), inputs.size(2) / 2, inputs.size(3) / 2}, inputs.options());
    const std::size_t in_plane = p.height * p.width;
    const std::size_t out_plane = (p.height / 2) * (p.width / 2);
    const float* in = inputs.const_data_ptr<float>();
    float* out = outputs.mutable_data_ptr<float>();
    at::parallel_for(0, static_cast<std::int64_t>(p.count), grain(in_plane),
                     [&](std::int64_t begin, std::int64_t end) {
                       relu_pool_forward(in + begin * in_plane, out + begin * out_plane,
                                         end - begin, p.height, p.width);
                     });
    context->save_for_backward({inputs, outputs});
    return outputs;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const Planes p = planes_of(saved[0]);
    const at::Tensor gradient = gradients[0].contiguous();
    at::Tensor input_gradient = at::empty(saved[0].sizes(), saved[0].options());
    const std::size_t in_plane = p.height * p.width;
    const std::size_t out_plane = (p.height / 2) * (p.width / 2);
    const float* in = saved[0].const_data_ptr<float>();
    const float* out = saved[1].const_data_ptr<float>();
    const float* g = gradient.const_data_ptr<float>();
    float* gi = input_gradient.mutable_data_ptr<float>();
    at::parallel_for(0, static_cast<std::int64_t>(p.count), grain(in_plane),
                     [&](std::int64_t begin, std::int64_t end) {
                       relu_pool_backward(in + begin * in_plane, out + begin * out_plane,
                                          g + begin * out_plane, gi + begin * in_plane, end - begin,
                                          p.height, p.width);
                     });
    return {input_gradient};
  }

  // Planes that are worth a thread of their own.
  static std::int64_t grain(std::size_t in_plane) {
    return static_cast<std::int64_t>(32768 / in_plane + 1);
  }
};

}  // namespace

at::Tensor relu_pool(const at::Tensor& inputs) {
  if (inputs.is_cpu() && inputs.dim() == 4 && inputs.scalar_type() == at::kFloat &&
      inputs.is_contiguous()) {
    return ReluPool::apply(inputs);
  }
  return at::max_pool2d(at::relu(inputs), 2);
}

}  // namespace kith::compute::torch
