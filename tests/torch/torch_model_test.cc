// Merging, publishing, statistics, states and refusals of the LibTorch models.
#include <sched.h>

#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <thread>

#include "tests/torch/torch_fixture.h"

namespace kith::compute {
namespace {

const TensorInfo& tensor(const Model& model, const std::string& name) {
  for (const TensorInfo& info : model.schema().tensors) {
    if (info.name == name) return info;
  }
  ADD_FAILURE() << "no tensor " << name;
  return model.schema().tensors.front();
}

TEST(TorchSchema, HasTheNamesOfATorchSequentialAndBuffersBesideTheirWeights) {
  const auto model = make(small_spec("cnn-batchnorm"));
  std::vector<std::string> names;
  std::size_t offset = 0;
  for (const TensorInfo& info : model->schema().tensors) {
    names.push_back(info.name);
    if (info.kind == TensorKind::kIntegerBuffer) continue;
    EXPECT_EQ(info.offset, offset) << info.name;
    offset += info.count;
  }
  EXPECT_EQ(offset, model->schema().value_count);
  const std::vector<std::string> expected = {"0.weight",
                                             "0.bias",
                                             "1.weight",
                                             "1.bias",
                                             "1.running_mean",
                                             "1.running_var",  //
                                             "4.weight",
                                             "4.bias",
                                             "5.weight",
                                             "5.bias",
                                             "5.running_mean",
                                             "5.running_var",  //
                                             "9.weight",
                                             "9.bias",
                                             "11.weight",
                                             "11.bias",
                                             "1.num_batches_tracked",
                                             "5.num_batches_tracked"};
  EXPECT_EQ(names, expected);
  EXPECT_EQ(tensor(*model, "4.weight").shape, (std::vector<std::int64_t>{8, 6, 3, 3}));
  EXPECT_EQ(tensor(*model, "9.weight").shape, (std::vector<std::int64_t>{20, 72}));
  EXPECT_EQ(tensor(*model, "1.running_var").kind, TensorKind::kVarianceBuffer);
}

TEST(TorchSchema, CountsTheMultiplyAddsOfDenseAndConvolutionalLayers) {
  ModelSpec cnn;  // images of 28 x 28, then 14 x 14, then 7 x 7
  cnn.input_shape = {1, 28, 28};
  cnn.channels = {16, 32};
  cnn.hidden = {64};
  const double convolutions = 9.0 * (1 * 16 * 28 * 28 + 16 * 32 * 14 * 14);
  const double dense = 32 * 7 * 7 * 64 + 64 * 10;
  EXPECT_EQ(make(cnn)->schema().forward_flops, 2 * (convolutions + dense));
  cnn.kind = "mlp";
  EXPECT_EQ(make(cnn)->schema().forward_flops, 2.0 * (28 * 28 * 64 + 64 * 10));
}

TEST(TorchMerge, AddsTheDeltaExactlyAndPublishesTheSum) {
  const auto model = make(small_spec("cnn-batchnorm"));
  std::vector<float> expected = values_of(*model);
  const std::size_t offset = 37;
  const std::size_t count = expected.size() - 100;
  std::vector<float> delta(count);
  for (std::size_t i = 0; i < count; ++i) delta[i] = 0.001F * static_cast<float>(i % 17);
  std::vector<float> published(count, -1.0F);

  EXPECT_EQ(model->merge_and_publish(offset, delta, published), 0U);
  for (std::size_t i = 0; i < count; ++i) expected[offset + i] += delta[i];
  EXPECT_TRUE(same_bits(values_of(*model), expected));
  EXPECT_TRUE(same_bits(published, {expected.begin() + offset, expected.begin() + offset + count}));

  EXPECT_EQ(model->merge_and_publish(offset, delta, {}), 0U);
  for (std::size_t i = 0; i < count; ++i) expected[offset + i] += delta[i];
  EXPECT_EQ(model->merge_and_publish(offset, {}, published), 0U);
  EXPECT_TRUE(same_bits(published, {expected.begin() + offset, expected.begin() + offset + count}));
}

TEST(TorchMerge, ClampsRunningVariancesAtZeroAndCountsThem) {
  const auto model = make(small_spec("cnn-batchnorm"));
  const TensorInfo variance = tensor(*model, "1.running_var");
  const TensorInfo mean = tensor(*model, "1.running_mean");
  std::vector<float> delta(model->schema().value_count, 0.0F);
  std::vector<float> published(delta.size());
  for (std::size_t i = 0; i < 4; ++i) delta[variance.offset + i] = -1.5F;
  delta[mean.offset] = -1.5F;  // a mean may be negative

  EXPECT_EQ(model->merge_and_publish(0, delta, published), 4U);
  for (std::size_t i = 0; i < variance.count; ++i) {
    EXPECT_EQ(published[variance.offset + i], i < 4 ? 0.0F : 1.0F);
  }
  EXPECT_EQ(published[mean.offset], -1.5F);
  EXPECT_TRUE(same_bits(values_of(*model), published));
  // A range that only touches the tensor's end, without publishing.
  std::vector<float> end = {-3.0F};
  EXPECT_EQ(model->merge_and_publish(variance.offset + variance.count - 1, end, {}), 1U);
}

TEST(TorchMerge, IsSeenByTheNextStepAndByEvaluation) {
  const ModelSpec spec = small_spec("cnn-batchnorm");
  const auto batches = make_batches(spec, 12, 16, 4);
  const auto model = make(spec);
  train(*model, batches, rates(12, 0.05), 0, 10);
  std::vector<float> delta(model->schema().value_count, 0.01F);
  std::vector<float> published(delta.size());
  model->merge_and_publish(0, delta, published);

  const auto other = make(spec);
  other->write_values(0, published);
  EXPECT_EQ(model->evaluate(batches[10].view()).loss, other->evaluate(batches[10].view()).loss);
  EXPECT_EQ(model->step(batches[11].view(), 0.05).loss, other->step(batches[11].view(), 0.05).loss);
  EXPECT_TRUE(same_bits(values_of(*model), values_of(*other)));
}

TEST(TorchBatchNorm, CounterIsAnIntegerThatOnlyStepsRaise) {
  const ModelSpec spec = small_spec("cnn-batchnorm");
  const auto batches = make_batches(spec, 5, 16, 5);
  const auto model = make(spec);
  EXPECT_EQ(model->read_integers(), (std::vector<std::int64_t>{0, 0}));
  train(*model, batches, rates(5, 0.05), 0, 5);
  const std::vector<float> delta(model->schema().value_count, -2.0F);
  model->merge_and_publish(0, delta, {});
  model->evaluate(batches[0].view());
  EXPECT_EQ(model->read_integers(), (std::vector<std::int64_t>{5, 5}));
  const std::int64_t large[] = {std::int64_t{1} << 40, 9};
  model->write_integers(large);
  EXPECT_EQ(model->read_integers(), (std::vector<std::int64_t>{std::int64_t{1} << 40, 9}));
}

TEST(TorchBatchNorm, TrainsOnABatchOfOneSample) {
  const ModelSpec spec = small_spec("cnn-batchnorm");
  const auto model = make(spec);
  const auto batches = make_batches(spec, 3, 1, 6);
  train(*model, batches, rates(3, 0.05), 0, 3);
  for (const float value : values_of(*model)) ASSERT_TRUE(std::isfinite(value));
}

TEST(TorchEvaluation, LeavesNoTrace) {
  const ModelSpec spec = small_spec("cnn-batchnorm");
  OptimizerSpec optimizer;
  optimizer.momentum = 0.9;
  const auto batches = make_batches(spec, 4, 16, 7);
  const auto model = make(spec, optimizer);
  train(*model, batches, rates(4, 0.05), 0, 2);
  const std::vector<float> before = values_of(*model);
  const StateBytes state = model->optimizer_state();
  const EvalResult first = model->evaluate(batches[2].view());
  const EvalResult second = model->evaluate(batches[2].view());
  EXPECT_EQ(first.loss, second.loss);
  EXPECT_EQ(first.count, 16U);
  EXPECT_TRUE(same_bits(before, values_of(*model)));
  EXPECT_EQ(state, model->optimizer_state());
}

TEST(TorchNonFinite, StepIsNotMadeAndLeavesNoTrace) {
  const ModelSpec spec = small_spec("cnn-batchnorm");
  OptimizerSpec optimizer = optimizer_named("adam");
  auto batches = make_batches(spec, 3, 16, 8);
  const auto model = make(spec, optimizer);
  train(*model, batches, rates(3, 0.002), 0, 2);
  const std::vector<float> before = values_of(*model);
  const StateBytes state = model->optimizer_state();
  const auto integers = model->read_integers();

  batches[2].inputs[40] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(model->step(batches[2].view(), 0.002).finite);
  batches[2].inputs[40] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(model->step(batches[2].view(), 0.002).finite);
  EXPECT_TRUE(same_bits(before, values_of(*model)));
  EXPECT_EQ(state, model->optimizer_state());
  EXPECT_EQ(integers, model->read_integers());
}

TEST(TorchNonFinite, ParametersThatAreNotFiniteAreNoticed) {
  for (const char* kind : {"mlp", "cnn", "cnn-batchnorm"}) {
    const ModelSpec spec = small_spec(kind);
    const auto model = make(spec);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    model->write_values(0, std::span(&nan, 1));
    EXPECT_FALSE(model->step(make_batches(spec, 1, 8, 9)[0].view(), 0.05).finite) << kind;
  }
}

TEST(TorchOptimizerState, OfAnotherOptimizerOrModelOrCutShortIsRefusedAndChangesNothing) {
  const ModelSpec spec = small_spec("cnn");
  const auto batches = make_batches(spec, 3, 8, 10);
  const auto adam = make(spec, optimizer_named("adam"));
  train(*adam, batches, rates(3, 0.002), 0, 3);
  const StateBytes good = adam->optimizer_state();

  const auto adamw = make(spec, optimizer_named("adamw"));
  const Status other_name = adamw->load_optimizer_state(good);
  ASSERT_FALSE(other_name);
  EXPECT_EQ(other_name.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(other_name.error().message.find("adamw"), std::string::npos)
      << other_name.error().message;

  const auto mlp = make(small_spec("mlp"), optimizer_named("adam"));
  EXPECT_FALSE(mlp->load_optimizer_state(good));
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{9}, good.size() - 1}) {
    EXPECT_FALSE(adam->load_optimizer_state(std::span(good).first(size))) << size;
  }
  EXPECT_EQ(adam->optimizer_state(), good);
}

TEST(TorchOptimizerState, ResetGivesFreshMoments) {
  const ModelSpec spec = small_spec("cnn");
  OptimizerSpec optimizer;
  optimizer.momentum = 0.9;
  const auto batches = make_batches(spec, 4, 8, 11);
  const auto used = make(spec, optimizer);
  const StateBytes fresh_state = used->optimizer_state();
  train(*used, batches, rates(4, 0.05), 0, 3);
  used->reset_optimizer();
  EXPECT_EQ(used->optimizer_state(), fresh_state);

  const auto fresh = make(spec, optimizer);
  fresh->write_values(0, values_of(*used));
  train(*used, batches, rates(4, 0.05), 3, 4);
  train(*fresh, batches, rates(4, 0.05), 3, 4);
  EXPECT_TRUE(same_bits(values_of(*used), values_of(*fresh)));
}

TEST(TorchThreads, AreNoMoreThanTheCoresThatTheProcessMayUse) {
  const auto threads_here = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const auto before = threads_here();
    ModelSpec spec = small_spec("cnn");
    spec.threads = 64;
    const auto model = make(spec);
    train(*model, make_batches(spec, 2, 64, 12), rates(2, 0.05), 0, 2);
    EXPECT_LE(threads_here(), before);
  }).join();
}

TEST(TorchInitialValues, FillTheRangeOfPyTorchsDefaultFromAStreamPerTensor) {
  const auto model = make(small_spec("cnn"));
  const std::vector<float> values = values_of(*model);
  const TensorInfo weight = tensor(*model, "7.weight");
  const double bound = 1.0 / std::sqrt(72.0);
  double largest = 0.0;
  double sum = 0.0;
  for (std::size_t i = 0; i < weight.count; ++i) {
    const double value = values[weight.offset + i];
    largest = std::max(largest, std::abs(value));
    sum += value;
  }
  EXPECT_LE(largest, bound);
  EXPECT_GT(largest, 0.99 * bound);
  EXPECT_LT(std::abs(sum / static_cast<double>(weight.count)), 0.05 * bound);
  EXPECT_NE(values[weight.offset], values[tensor(*model, "7.bias").offset]);
}

struct BadSpec {
  const char* what;
  void (*spoil)(ModelSpec&, OptimizerSpec&);
  ErrorCode code;
  const char* mentions;
};

TEST(TorchSpec, BadOnesAreRefusedInOneLineThatNamesTheKey) {
  const BadSpec table[] = {
      {"kind", [](ModelSpec& m, OptimizerSpec&) { m.kind = "transformer"; }, ErrorCode::kUsage,
       "model.kind"},
      {"too many blocks",
       [](ModelSpec& m, OptimizerSpec&) {
         m.channels = {4, 4, 4, 4};
       },
       ErrorCode::kUsage, "4 blocks"},
      {"no block", [](ModelSpec& m, OptimizerSpec&) { m.channels = {}; }, ErrorCode::kUsage,
       "model.channels"},
      {"zero channels", [](ModelSpec& m, OptimizerSpec&) { m.channels = {0}; }, ErrorCode::kUsage,
       "model.channels"},
      {"negative units", [](ModelSpec& m, OptimizerSpec&) { m.hidden = {-3}; }, ErrorCode::kUsage,
       "model.hidden"},
      {"huge",
       [](ModelSpec& m, OptimizerSpec&) {
         m.hidden = {65536, 65536, 65536};
       },
       ErrorCode::kUsage, "parameters"},
      {"no image", [](ModelSpec& m, OptimizerSpec&) { m.input_shape = {196}; }, ErrorCode::kUsage,
       "mlp"},
      {"no classes", [](ModelSpec& m, OptimizerSpec&) { m.classes = 0; }, ErrorCode::kUsage,
       "classes"},
      {"device", [](ModelSpec& m, OptimizerSpec&) { m.device = "tpu"; }, ErrorCode::kUsage,
       "auto, cpu or cuda:N"},
      {"device index", [](ModelSpec& m, OptimizerSpec&) { m.device = "cuda:x"; }, ErrorCode::kUsage,
       "cuda:N"},
      {"no CUDA here", [](ModelSpec& m, OptimizerSpec&) { m.device = "cuda:99"; },
       ErrorCode::kFailed, "cpu"},
      {"optimizer", [](ModelSpec&, OptimizerSpec& o) { o.name = "lion"; }, ErrorCode::kUsage,
       "optimizer"},
      {"momentum", [](ModelSpec&, OptimizerSpec& o) { o.momentum = 1.5; }, ErrorCode::kUsage,
       "momentum"},
      {"decay", [](ModelSpec&, OptimizerSpec& o) { o.weight_decay = -1; }, ErrorCode::kUsage,
       "weight_decay"},
  };
  for (const BadSpec& bad : table) {
    ModelSpec spec = small_spec("cnn");
    OptimizerSpec optimizer;
    bad.spoil(spec, optimizer);
    const auto model = torch::make_torch_model(spec, optimizer);
    ASSERT_FALSE(model) << bad.what;
    EXPECT_EQ(model.error().code, bad.code) << bad.what << ": " << model.error().message;
    EXPECT_NE(model.error().message.find(bad.mentions), std::string::npos) << model.error().message;
    EXPECT_EQ(model.error().message.find('\n'), std::string::npos) << model.error().message;
  }
}

}  // namespace
}  // namespace kith::compute
