#include "compute/linear_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compute/data.h"
#include "test_files.h"

namespace kith::compute {
namespace {

ModelSpec small_spec(std::uint64_t seed = 7) {
  ModelSpec spec;
  spec.kind = "linear";
  spec.input_shape = {5};
  spec.classes = 3;
  spec.seed = seed;
  return spec;
}

std::vector<float> values_of(const Model& model) {
  std::vector<float> values(model.schema().value_count);
  model.read_values(0, values);
  return values;
}

TEST(LinearModelTest, HasTheNamesAndShapesOfATorchLinearLayer) {
  LinearModel model(small_spec(), {});
  const auto& tensors = model.schema().tensors;
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[0].name, "weight");
  EXPECT_EQ(tensors[0].shape, (std::vector<std::int64_t>{3, 5}));
  EXPECT_EQ(tensors[1].name, "bias");
  EXPECT_EQ(tensors[1].offset, 15U);
  EXPECT_EQ(model.schema().value_count, 18U);
  EXPECT_EQ(model.schema().classes, 3U);
  EXPECT_EQ(model.schema().training_flops(), 3 * 2 * 15.0);
}

TEST(LinearModelTest, TheSeedDecidesTheInitialValues) {
  EXPECT_EQ(values_of(LinearModel(small_spec(1), {})), values_of(LinearModel(small_spec(1), {})));
  EXPECT_NE(values_of(LinearModel(small_spec(1), {})), values_of(LinearModel(small_spec(2), {})));
  for (const float v : values_of(LinearModel(small_spec(), {})))
    EXPECT_LE(std::abs(v), 1 / std::sqrt(5.0F));
}

// The gradient against differences of the loss: SGD with learning rate 1 moves by exactly the
// gradient.
TEST(LinearModelTest, StepsAlongTheGradientOfItsLoss) {
  LinearModel model(small_spec(), {.name = "sgd"});
  const std::vector<float> inputs{0.5F, -1, 2, 0.1F, 0, 1, 1, -0.3F, 0.7F, -2};
  const std::vector<std::int64_t> labels{2, 0};
  const Batch batch{inputs, labels, 2};
  const auto start = values_of(model);
  std::vector<double> slopes;
  for (std::size_t i = 0; i < start.size(); ++i) {
    double losses[2];
    for (int side = 0; side < 2; ++side) {
      auto moved = start;
      moved[i] += side == 0 ? -1e-2F : 1e-2F;
      model.write_values(0, moved);
      losses[side] = model.evaluate(batch).loss;
    }
    slopes.push_back((losses[1] - losses[0]) / 2e-2);
  }
  model.write_values(0, start);
  const auto loss = model.evaluate(batch).loss;
  const auto result = model.step(batch, 1.0);
  EXPECT_NEAR(result.loss, loss, 1e-6);
  const auto end = values_of(model);
  double norm = 0.0;
  for (std::size_t i = 0; i < start.size(); ++i) {
    EXPECT_NEAR(start[i] - end[i], slopes[i], 2e-3) << i;
    norm += std::pow(start[i] - end[i], 2);
  }
  EXPECT_NEAR(result.grad_norm, std::sqrt(norm), 1e-5);
}

TEST(LinearModelTest, ClippingLimitsTheMove) {
  LinearModel model(small_spec(), {.name = "sgd", .clip_norm = 0.01});
  const std::vector<float> inputs{50, -100, 20, 10, 0};
  const std::vector<std::int64_t> labels{2};
  const auto start = values_of(model);
  const auto result = model.step({inputs, labels, 1}, 1.0);
  EXPECT_GT(result.grad_norm, 1.0);
  double norm = 0.0;
  const auto end = values_of(model);
  for (std::size_t i = 0; i < start.size(); ++i) norm += std::pow(start[i] - end[i], 2);
  EXPECT_NEAR(std::sqrt(norm), 0.01, 1e-4);
}

TEST(LinearModelTest, ALossThatIsNotFiniteMakesNoStep) {
  LinearModel model(small_spec(), {.name = "sgd", .momentum = 0.9});
  std::vector<float> broken = values_of(model);
  broken[3] = NAN;
  model.write_values(0, broken);
  const std::vector<float> inputs(5, 1.0F);
  const std::vector<std::int64_t> labels{0};
  const auto before = model.optimizer_state();
  EXPECT_FALSE(model.step({inputs, labels, 1}, 0.1).finite);
  EXPECT_EQ(model.optimizer_state(), before);
}

TEST(LinearModelTest, EvaluationLeavesNoTrace) {
  LinearModel model(small_spec(), {});
  const std::vector<float> inputs(5, 1.0F);
  const std::vector<std::int64_t> labels{0};
  const auto before = values_of(model);
  const auto state = model.optimizer_state();
  model.evaluate({inputs, labels, 1});
  EXPECT_EQ(values_of(model), before);
  EXPECT_EQ(model.optimizer_state(), state);
}

TEST(LinearModelTest, LearnsTheDigits) {
  DataSpec data_spec;
  data_spec.train = {testing::digits("train-images-idx3-ubyte.gz"),
                     testing::digits("train-labels-idx1-ubyte.gz")};
  data_spec.test = {testing::digits("t10k-images-idx3-ubyte.gz"),
                    testing::digits("t10k-labels-idx1-ubyte.gz")};
  const auto data = load_data(data_spec);
  ASSERT_TRUE(data) << data.error().message;
  ModelSpec spec;
  spec.kind = "linear";
  spec.input_shape = data->train.sample_shape;
  auto model = make_model(spec, {.name = "sgd", .momentum = 0.9});
  ASSERT_TRUE(model);
  BatchCursor cursor(data->train, 32, 1);
  while (cursor.position().pass < 3) (*model)->step(cursor.next(), 0.01);
  const auto result = (*model)->evaluate({data->test.inputs, data->test.labels, data->test.count});
  EXPECT_EQ(result.count, data->test.count);
  EXPECT_GT(result.accuracy, 0.88);
  std::printf("accuracy after three passes: %.3f\n", result.accuracy);
}

}  // namespace
}  // namespace kith::compute
