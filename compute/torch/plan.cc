#include "compute/torch/plan.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace kith::compute::torch {
namespace {

constexpr std::int64_t kWidthMax = 65536;  // channels of a block, units of a layer
constexpr std::size_t kValuesMax = std::size_t{1}
                                   << 32;  // 16 GiB of fp32: beyond it, the spec is a mistake
constexpr std::size_t kLayersMax = 64;

std::string join(std::span<const std::int64_t> numbers) {
  std::string text;
  for (const std::int64_t number : numbers) {
    if (!text.empty()) text += " x ";
    text += std::to_string(number);
  }
  return text;
}

std::size_t product(std::span<const std::int64_t> shape) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  return count;
}

// Appends layers and their tensors in the order of a torch.nn.Sequential.
class Planner {
 public:
  void add(LayerKind kind) { plan_.layers.push_back({kind, {}}); }

  void add_linear(std::int64_t inputs, std::int64_t outputs) {
    add(LayerKind::kLinear);
    count_flops(inputs * outputs);
    add_float("weight", {outputs, inputs}, TensorKind::kParameter);
    add_float("bias", {outputs}, TensorKind::kParameter);
  }

  // `pixels`: of the image that comes out, which has the size of the one that goes in.
  void add_conv(std::int64_t inputs, std::int64_t outputs, std::int64_t pixels) {
    add(LayerKind::kConv);
    count_flops(inputs * outputs * 9 * pixels);
    add_float("weight", {outputs, inputs, 3, 3}, TensorKind::kParameter);
    add_float("bias", {outputs}, TensorKind::kParameter);
  }

  void add_batch_norm(std::int64_t channels) {
    add(LayerKind::kBatchNorm);
    add_float("weight", {channels}, TensorKind::kParameter);
    add_float("bias", {channels}, TensorKind::kParameter);
    add_float("running_mean", {channels}, TensorKind::kBuffer);
    add_float("running_var", {channels}, TensorKind::kVarianceBuffer);
    integers_.push_back({plan_.layers.size() - 1, name("num_batches_tracked")});
  }

  // Integer buffers come after all floats.
  NetworkPlan finish(const ModelSpec& spec) {
    ModelSchema& schema = plan_.schema;
    for (auto& [layer, tensor_name] : integers_) {
      plan_.layers[layer].tensors.push_back(schema.tensors.size());
      schema.tensors.push_back(
          {std::move(tensor_name), {}, TensorKind::kIntegerBuffer, schema.integer_count, 1});
      ++schema.integer_count;
    }
    schema.classes = spec.classes;
    plan_.input_shape = spec.input_shape;
    plan_.sample_values = product(spec.input_shape);
    return std::move(plan_);
  }

  [[nodiscard]] std::size_t value_count() const { return plan_.schema.value_count; }

 private:
  [[nodiscard]] std::string name(const char* what) const {
    return std::to_string(plan_.layers.size() - 1) + "." + what;
  }

  void count_flops(std::int64_t multiply_adds) {
    plan_.schema.forward_flops += 2.0 * static_cast<double>(multiply_adds);
  }

  void add_float(const char* what, std::vector<std::int64_t> shape, TensorKind kind) {
    ModelSchema& schema = plan_.schema;
    const std::size_t count = product(shape);
    plan_.layers.back().tensors.push_back(schema.tensors.size());
    schema.tensors.push_back({name(what), std::move(shape), kind, schema.value_count, count});
    schema.value_count += count;
    if (kind == TensorKind::kParameter) plan_.parameter_count += count;
  }

  NetworkPlan plan_;
  std::vector<std::pair<std::size_t, std::string>> integers_;  // layer, name
};

Status check_widths(const char* key, std::span<const std::int64_t> widths) {
  if (widths.size() > kLayersMax) {
    return fail(ErrorCode::kUsage, std::string("model.") + key + " has " +
                                       std::to_string(widths.size()) + " entries: at most " +
                                       std::to_string(kLayersMax));
  }
  for (const std::int64_t width : widths) {
    if (width < 1 || width > kWidthMax) {
      return fail(ErrorCode::kUsage, std::string("model.") + key + " has " + std::to_string(width) +
                                         ": every entry must be from 1 to " +
                                         std::to_string(kWidthMax));
    }
  }
  return {};
}

Status check_common(const ModelSpec& spec) {
  if (spec.kind != "mlp" && spec.kind != "cnn" && spec.kind != "cnn-batchnorm") {
    return fail(ErrorCode::kUsage, "model.kind is '" + spec.kind +
                                       "': the LibTorch module has mlp, cnn and cnn-batchnorm");
  }
  if (spec.classes < 1 || spec.classes > static_cast<std::size_t>(kWidthMax)) {
    return fail(ErrorCode::kUsage, "data.classes is " + std::to_string(spec.classes) +
                                       ": it must be from 1 to " + std::to_string(kWidthMax));
  }
  std::size_t values = 1;
  for (const std::int64_t extent : spec.input_shape) {
    if (extent < 1 || extent > (std::int64_t{1} << 24) ||
        (values *= static_cast<std::size_t>(extent)) > (std::size_t{1} << 28)) {
      return fail(ErrorCode::kUsage, "a sample of shape " + join(spec.input_shape) +
                                         " is empty or too large to train on");
    }
  }
  if (spec.input_shape.empty()) {
    return fail(ErrorCode::kUsage, "model." + spec.kind + " needs the shape of one sample");
  }
  return check_widths("hidden", spec.hidden);
}

// Width times height after the blocks, or why they do not fit.
Result<std::int64_t> check_image(const ModelSpec& spec) {
  KITH_TRY(check_widths("channels", spec.channels));
  if (spec.channels.empty()) {
    return fail(
        ErrorCode::kUsage,
        "model.channels is empty: name the channels of at least one block, or use kind = \"mlp\"");
  }
  if (spec.input_shape.size() != 3) {
    return fail(ErrorCode::kUsage,
                "model.kind = \"" + spec.kind +
                    "\" needs images (channels x height x width), and a sample has the shape " +
                    join(spec.input_shape) + ": use kind = \"mlp\" or \"linear\"");
  }
  std::int64_t height = spec.input_shape[1];
  std::int64_t width = spec.input_shape[2];
  std::size_t fitting = 0;
  for (; fitting < spec.channels.size() && std::min(height, width) >= 2; ++fitting) {
    height /= 2;
    width /= 2;
  }
  if (fitting < spec.channels.size()) {
    return fail(ErrorCode::kUsage, "model.channels has " + std::to_string(spec.channels.size()) +
                                       " blocks, each of which halves the image, and images of " +
                                       join(std::span(spec.input_shape).subspan(1)) + " allow " +
                                       std::to_string(fitting) + ": use fewer blocks");
  }
  return height * width;
}

void add_dense(Planner& planner, const ModelSpec& spec, std::int64_t inputs) {
  planner.add(LayerKind::kFlatten);
  for (const std::int64_t units : spec.hidden) {
    planner.add_linear(inputs, units);
    planner.add(LayerKind::kRelu);
    inputs = units;
  }
  planner.add_linear(inputs, static_cast<std::int64_t>(spec.classes));
}

void add_blocks(Planner& planner, const ModelSpec& spec) {
  std::int64_t inputs = spec.input_shape[0], height = spec.input_shape[1],
               width = spec.input_shape[2];
  for (const std::int64_t channels : spec.channels) {
    planner.add_conv(inputs, channels, height * width);
    if (spec.kind == "cnn-batchnorm") planner.add_batch_norm(channels);
    planner.add(LayerKind::kReluPool);
    planner.add(LayerKind::kMaxPool);
    inputs = channels;
    height /= 2;
    width /= 2;
  }
}

void fill(const NetworkPlan& plan, std::span<float> values, std::size_t tensor, float value) {
  const TensorInfo& info = plan.schema.tensors[tensor];
  std::ranges::fill(values.subspan(info.offset, info.count), value);
}

void draw(const NetworkPlan& plan, const Random& random, std::span<float> values,
          const Layer& layer) {
  const TensorInfo& weight = plan.schema.tensors[layer.tensors[0]];
  const double bound =
      1.0 / std::sqrt(static_cast<double>(weight.count) / static_cast<double>(weight.shape[0]));
  for (const std::size_t tensor : layer.tensors) {
    const TensorInfo& info = plan.schema.tensors[tensor];
    Random stream = random.fork(info.name);
    for (float& value : values.subspan(info.offset, info.count)) {
      value = static_cast<float>(stream.uniform(-bound, bound));
    }
  }
}

}  // namespace

Result<NetworkPlan> plan_network(const ModelSpec& spec) {
  KITH_TRY(check_common(spec));
  Planner planner;
  std::int64_t inputs = static_cast<std::int64_t>(product(spec.input_shape));
  if (spec.kind != "mlp") {
    KITH_ASSIGN(const std::int64_t pixels, check_image(spec));
    add_blocks(planner, spec);
    inputs = pixels * spec.channels.back();
  }
  add_dense(planner, spec, inputs);
  if (planner.value_count() > kValuesMax) {
    return fail(ErrorCode::kUsage, "model.channels and model.hidden make " +
                                       std::to_string(planner.value_count()) +
                                       " parameters: at most " + std::to_string(kValuesMax));
  }
  return planner.finish(spec);
}

void initialise(const NetworkPlan& plan, std::uint64_t seed, std::span<float> values,
                std::span<std::int64_t> integers) {
  KITH_CHECK(values.size() == plan.schema.value_count, "values of another model");
  KITH_CHECK(integers.size() == plan.schema.integer_count, "integers of another model");
  const Random random = Random(seed).fork("initial values");
  for (const Layer& layer : plan.layers) {
    if (layer.kind == LayerKind::kLinear || layer.kind == LayerKind::kConv) {
      draw(plan, random, values, layer);
    } else if (layer.kind == LayerKind::kBatchNorm) {
      const float initial[] = {1.0F, 0.0F, 0.0F,
                               1.0F};  // weight, bias, running mean, running variance
      for (std::size_t i = 0; i < 4; ++i) fill(plan, values, layer.tensors[i], initial[i]);
    }
  }
  std::ranges::fill(integers, 0);
}

}  // namespace kith::compute::torch
