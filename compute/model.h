// Models as the trainer sees them: a flat space of fp32 values, a step, an evaluation.
// Implementations: `linear` in plain C++, and the LibTorch models in a module that is loaded at run
// time (model_module.h). No torch type here.
//
// Thread: every call on one thread (the trainer's), except where said. Shapes: images are N x C x H
// x W or N x features, contiguous fp32, already normalised; labels are int64 in [0, classes).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace kith::compute {

enum class TensorKind : std::uint8_t {
  kParameter,       // trained and averaged
  kBuffer,          // averaged (BatchNorm running mean)
  kVarianceBuffer,  // averaged and clamped at >= 0 after each merge (BatchNorm running variance)
  kIntegerBuffer,   // never averaged, copied on adoption, saved as int64 (BatchNorm's counter)
};

struct TensorInfo {
  std::string name;  // as in a PyTorch module: "0.weight", "features.0.bias"
  std::vector<std::int64_t> shape;
  TensorKind kind = TensorKind::kParameter;
  std::size_t offset = 0;  // first value in the flat space (or in the integer space)
  std::size_t count = 0;
};

// Layout of one model: float tensors back to back in flat order, a module's buffers beside its
// weights.
struct ModelSchema {
  std::vector<TensorInfo> tensors;  // floats in flat order, then integer buffers
  std::size_t value_count = 0;      // floats
  std::size_t integer_count = 0;
  std::size_t classes = 0;
  // Floating-point operations of one sample's forward pass: two per multiply-add of dense and
  // convolutional layers; what is linear in the activations (bias, ReLU, pooling, BatchNorm) is
  // left out, as in Kaplan et al. 2020.
  double forward_flops = 0.0;
  // A training step does them three times: forward, and the gradients of inputs and of weights.
  [[nodiscard]] double training_flops() const { return 3.0 * forward_flops; }
  // Hash of names, shapes, kinds, classes and fragment size: nodes whose hashes differ never
  // exchange.
  [[nodiscard]] Hash256 hash(std::size_t fragment_bytes) const;
};

// Configuration tables [model] and the optimiser part of [train].
struct ModelSpec {
  std::string kind = "cnn";  // linear | mlp | cnn | cnn-batchnorm
  std::vector<std::int64_t> channels = {16, 32};
  std::vector<std::int64_t> hidden = {64};
  std::vector<std::int64_t> input_shape;  // one sample: {C, H, W} or {features}
  std::size_t classes = 10;
  std::uint64_t seed = 0;       // of the run: same seed, same initial values everywhere
  std::string device = "auto";  // auto | cpu | cuda:N
  unsigned threads = 1;
};

struct OptimizerSpec {
  std::string name = "sgd";  // sgd | adam | adamw
  double learning_rate = 0.05;
  double momentum = 0.0;                          // sgd
  bool nesterov = false;                          // sgd
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;  // adam, adamw
  double weight_decay = 0.0;                      // L2 for sgd and adam, decoupled for adamw
  double clip_norm = 0.0;                         // 0 = off; global 2-norm of the gradient
};

struct Batch {
  std::span<const float> inputs;         // count * sample_values
  std::span<const std::int64_t> labels;  // count
  std::size_t count = 0;
};

struct StepResult {
  double loss = 0.0;       // mean over the batch, before the step
  double grad_norm = 0.0;  // before clipping
  double forward_seconds = 0.0, backward_seconds = 0.0, optimizer_seconds = 0.0;
  bool finite = true;  // loss and gradient norm; false: no step was made
};

struct EvalResult {
  double loss = 0.0;      // mean
  double accuracy = 0.0;  // 0..1
  std::size_t count = 0;
};

// The optimiser's own state, serialised: version byte, name, step, then fp32 tensors. Opaque
// outside the model.
using StateBytes = std::vector<std::byte>;

class Model {
 public:
  virtual ~Model() = default;
  [[nodiscard]] virtual const ModelSchema& schema() const = 0;
  [[nodiscard]] virtual std::string_view device() const = 0;

  virtual StepResult step(const Batch& batch, double learning_rate) = 0;
  virtual EvalResult evaluate(const Batch& batch) = 0;  // eval mode, no gradient; leaves no trace

  // x[offset, +count) += taken (if not empty), then published = x (if not empty). One pass where
  // memory is shared. Variance buffers are clamped at 0 after the addition; returns how many values
  // were.
  virtual std::size_t merge_and_publish(std::size_t offset, std::span<const float> taken,
                                        std::span<float> published) = 0;

  // Whole or partial copies of the live values.
  virtual void read_values(std::size_t offset, std::span<float> out) const = 0;
  virtual void write_values(std::size_t offset, std::span<const float> values) = 0;
  [[nodiscard]] virtual std::vector<std::int64_t> read_integers() const = 0;
  virtual void write_integers(std::span<const std::int64_t> values) = 0;

  [[nodiscard]] virtual StateBytes optimizer_state() const = 0;
  virtual Status load_optimizer_state(
      std::span<const std::byte> bytes) = 0;  // kCorrupt names what does not fit
  virtual void reset_optimizer() = 0;         // fresh moments
};

struct ModelInfo {
  std::string_view kind;
  std::string_view summary;
  std::string_view keys;  // configuration keys it reads
  bool needs_torch;
};
// The one table of model kinds.
std::span<const ModelInfo> model_kinds();

// Makes a model, loading the LibTorch module first if the kind needs it. `module_path` empty:
// beside the running binary
// (../lib/libkith_torch.so). Errors: kUsage for a bad spec (unknown kind with the nearest name,
// image too small for the blocks), kFailed when the module or the device is missing, with what to
// do.
Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec, const OptimizerSpec& optimizer,
                                          const std::string& module_path = "");

}  // namespace kith::compute
