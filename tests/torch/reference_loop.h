// A plain LibTorch training loop, as a user of torch::nn and torch::optim would write it, to
// compare kith's models with. Only reference_loop.cc includes torch/torch.h; this header has plain
// types.
#pragma once

#include <cstdint>
#include <vector>

#include "compute/model.h"

namespace kith::compute {

struct SampleBatch {
  std::vector<float> inputs;
  std::vector<std::int64_t> labels;
  [[nodiscard]] Batch view() const { return {inputs, labels, labels.size()}; }
};

// Images like the digits': most of a sample is one constant background (so that pooling meets equal
// values), and a patch that depends on the label.
std::vector<SampleBatch> make_batches(const ModelSpec& spec, std::size_t batches,
                                      std::size_t batch_size, std::uint64_t seed);

struct ReferenceRun {
  std::vector<float> losses;
  std::vector<float> values;  // in the schema's order, found by name
  std::vector<std::int64_t> integers;
  float eval_loss = 0.0F;  // on the first batch, after the last step
  double eval_accuracy = 0.0;
};

// Builds the torch.nn.Sequential of the README, loads `initial` by name (all names and shapes must
// fit), and takes one step per batch on one thread. Throws std::runtime_error when a name or a
// shape does not fit.
ReferenceRun run_reference(const ModelSpec& spec, const OptimizerSpec& optimizer,
                           const ModelSchema& schema, const std::vector<float>& initial,
                           const std::vector<SampleBatch>& batches,
                           const std::vector<double>& learning_rates);

}  // namespace kith::compute
