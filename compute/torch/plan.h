// The plan of a network: which layers, which tensors, where each lies in the flat space. Plain data
// without any torch type, so that schemas, names and initial values can be tested (and hashed)
// without loading LibTorch.
//
// Names are those of the torch.nn.Sequential that compute/README.md shows for each kind: "0.weight"
// is the first convolution. A module's buffers lie beside its weights, so that one fragment carries
// both.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "compute/model.h"

namespace kith::compute::torch {

// kReluPool is a ReLU together with the max pooling of the layer after it, which then has nothing
// left to do.
enum class LayerKind { kFlatten, kLinear, kConv, kBatchNorm, kRelu, kReluPool, kMaxPool };

struct Layer {
  LayerKind kind = LayerKind::kFlatten;
  // Indices into ModelSchema::tensors, of the layers that have any: weight, bias, then BatchNorm's
  // running mean, running variance and counter.
  std::vector<std::size_t> tensors;
};

struct NetworkPlan {
  ModelSchema schema;
  std::vector<Layer> layers;              // index = position in the torch.nn.Sequential
  std::vector<std::int64_t> input_shape;  // one sample, as the first layer takes it
  std::size_t sample_values = 0;
  std::size_t parameter_count = 0;  // trained values; the rest of the flat space are buffers
};

// kUsage, with the key and what to do, for a spec that makes no network: unknown kind, no blocks,
// an image too small for the pooling, data of the wrong shape, sizes out of range.
Result<NetworkPlan> plan_network(const ModelSpec& spec);

// The initial values that PyTorch's modules would draw by default (He et al. 2015 with a = sqrt 5:
// uniform within 1/sqrt(fan in), weights and biases alike; BatchNorm 1, 0, 0, 1), from a stream per
// tensor that depends only on the seed and the tensor's name: equal on all machines, whatever the
// number of threads.
void initialise(const NetworkPlan& plan, std::uint64_t seed, std::span<float> values,
                std::span<std::int64_t> integers);

}  // namespace kith::compute::torch
