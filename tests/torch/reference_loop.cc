#include "tests/torch/reference_loop.h"

#include <torch/torch.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "base/random.h"

namespace kith::compute {
namespace {

namespace nn = ::torch::nn;

nn::Sequential build(const ModelSpec& spec) {
  nn::Sequential net;
  std::int64_t inputs = 1;
  for (const std::int64_t extent : spec.input_shape) inputs *= extent;
  if (spec.kind != "mlp") {
    std::int64_t channels = spec.input_shape[0];
    std::int64_t height = spec.input_shape[1];
    std::int64_t width = spec.input_shape[2];
    for (const std::int64_t wanted : spec.channels) {
      net->push_back(nn::Conv2d(nn::Conv2dOptions(channels, wanted, 3).padding(1)));
      if (spec.kind == "cnn-batchnorm") net->push_back(nn::BatchNorm2d(wanted));
      net->push_back(nn::ReLU());
      net->push_back(nn::MaxPool2d(2));
      channels = wanted;
      height /= 2;
      width /= 2;
    }
    inputs = channels * height * width;
  }
  net->push_back(nn::Flatten());
  for (const std::int64_t units : spec.hidden) {
    net->push_back(nn::Linear(inputs, units));
    net->push_back(nn::ReLU());
    inputs = units;
  }
  net->push_back(nn::Linear(inputs, static_cast<std::int64_t>(spec.classes)));
  return net;
}

at::Tensor find(nn::Sequential& net, const TensorInfo& info) {
  at::Tensor* found = net->named_parameters().find(info.name);
  auto buffers = net->named_buffers();
  if (!found) found = buffers.find(info.name);
  if (!found) throw std::runtime_error("torch::nn has no tensor " + info.name);
  if (found->sizes() != at::IntArrayRef(info.shape)) {
    throw std::runtime_error("torch::nn has another shape for " + info.name);
  }
  return *found;
}

void load(nn::Sequential& net, const ModelSchema& schema, const std::vector<float>& values) {
  ::torch::NoGradGuard guard;
  if (net->named_parameters().size() + net->named_buffers().size() != schema.tensors.size()) {
    throw std::runtime_error("torch::nn has another number of tensors");
  }
  for (const TensorInfo& info : schema.tensors) {
    at::Tensor tensor = find(net, info);
    if (info.kind == TensorKind::kIntegerBuffer) continue;
    tensor.copy_(::torch::from_blob(const_cast<float*>(values.data() + info.offset), info.shape));
  }
}

void store(nn::Sequential& net, const ModelSchema& schema, ReferenceRun& run) {
  run.values.resize(schema.value_count);
  run.integers.resize(schema.integer_count);
  for (const TensorInfo& info : schema.tensors) {
    const at::Tensor tensor = find(net, info).detach().contiguous();
    if (info.kind == TensorKind::kIntegerBuffer) {
      run.integers[info.offset] = tensor.item<std::int64_t>();
    } else {
      std::copy_n(tensor.data_ptr<float>(), info.count, run.values.data() + info.offset);
    }
  }
}

std::unique_ptr<::torch::optim::Optimizer> make_optimizer(const OptimizerSpec& spec,
                                                          nn::Sequential& net) {
  namespace optim = ::torch::optim;
  const double rate = spec.learning_rate;
  if (spec.name == "sgd") {
    return std::make_unique<optim::SGD>(net->parameters(), optim::SGDOptions(rate)
                                                               .momentum(spec.momentum)
                                                               .nesterov(spec.nesterov)
                                                               .weight_decay(spec.weight_decay));
  }
  const std::tuple<double, double> betas{spec.beta1, spec.beta2};
  if (spec.name == "adam") {
    return std::make_unique<optim::Adam>(
        net->parameters(),
        optim::AdamOptions(rate).betas(betas).eps(spec.eps).weight_decay(spec.weight_decay));
  }
  return std::make_unique<optim::AdamW>(
      net->parameters(),
      optim::AdamWOptions(rate).betas(betas).eps(spec.eps).weight_decay(spec.weight_decay));
}

at::Tensor inputs_of(const SampleBatch& batch, const ModelSpec& spec) {
  std::vector<std::int64_t> shape = spec.input_shape;
  shape.insert(shape.begin(), static_cast<std::int64_t>(batch.labels.size()));
  return ::torch::from_blob(const_cast<float*>(batch.inputs.data()), shape).clone();
}

at::Tensor labels_of(const SampleBatch& batch) {
  return ::torch::from_blob(const_cast<std::int64_t*>(batch.labels.data()),
                            {static_cast<std::int64_t>(batch.labels.size())}, ::torch::kLong)
      .clone();
}

void evaluate(nn::Sequential& net, const ModelSpec& spec, const SampleBatch& batch,
              ReferenceRun& run) {
  ::torch::NoGradGuard guard;
  net->eval();
  const at::Tensor logits = net->forward(inputs_of(batch, spec));
  run.eval_loss = nn::functional::cross_entropy(logits, labels_of(batch)).item<float>();
  run.eval_accuracy =
      logits.argmax(1).eq(labels_of(batch)).to(::torch::kDouble).mean().item<double>();
}

}  // namespace

std::vector<SampleBatch> make_batches(const ModelSpec& spec, std::size_t batches,
                                      std::size_t batch_size, std::uint64_t seed) {
  std::size_t values = 1;
  for (const std::int64_t extent : spec.input_shape) values *= static_cast<std::size_t>(extent);
  Random random(seed);
  std::vector<SampleBatch> result(batches);
  for (SampleBatch& batch : result) {
    batch.inputs.assign(batch_size * values, -0.42F);
    for (std::size_t i = 0; i < batch_size; ++i) {
      const std::uint64_t label = random.below(spec.classes);
      batch.labels.push_back(static_cast<std::int64_t>(label));
      const std::size_t start = label * values / (2 * spec.classes);
      for (std::size_t k = 0; k < values / 3; ++k) {
        batch.inputs[i * values + start + k] =
            static_cast<float>(random.normal() + 0.1 * static_cast<double>(label));
      }
    }
  }
  return result;
}

ReferenceRun run_reference(const ModelSpec& spec, const OptimizerSpec& optimizer,
                           const ModelSchema& schema, const std::vector<float>& initial,
                           const std::vector<SampleBatch>& batches,
                           const std::vector<double>& learning_rates) {
  at::set_num_threads(1);
  nn::Sequential net = build(spec);
  load(net, schema, initial);
  auto steps = make_optimizer(optimizer, net);
  ReferenceRun run;
  net->train();
  for (std::size_t i = 0; i < batches.size(); ++i) {
    for (auto& group : steps->param_groups()) group.options().set_lr(learning_rates[i]);
    steps->zero_grad();
    const at::Tensor loss = nn::functional::cross_entropy(net->forward(inputs_of(batches[i], spec)),
                                                          labels_of(batches[i]));
    loss.backward();
    if (optimizer.clip_norm > 0.0)
      nn::utils::clip_grad_norm_(net->parameters(), optimizer.clip_norm);
    steps->step();
    run.losses.push_back(loss.item<float>());
  }
  store(net, schema, run);
  evaluate(net, spec, batches.front(), run);
  return run;
}

}  // namespace kith::compute
