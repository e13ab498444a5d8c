#include "compute/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compute/optimizer_state.h"

namespace kith::compute {
namespace {

// One parameter from 1, learning rate 0.1, the gradients given; expected parameter after each.
struct Row {
  const char* name;
  OptimizerSpec spec;
  std::vector<float> gradients;
  std::vector<double> parameters;
};

std::vector<Row> table() {
  return {
      {"sgd", {.name = "sgd"}, {0.5F, 0.5F}, {0.95, 0.90}},
      {"momentum", {.name = "sgd", .momentum = 0.9}, {0.5F, 0.5F, -1}, {0.95, 0.855, 0.8695}},
      {"nesterov",
       {.name = "sgd", .momentum = 0.9, .nesterov = true},
       {0.5F, 0.5F},
       {0.905, 0.7695}},
      {"weight decay", {.name = "sgd", .weight_decay = 0.1}, {0.5F, 0}, {0.94, 0.9306}},
      {"momentum and decay",
       {.name = "sgd", .momentum = 0.5, .weight_decay = 0.1},
       {0.5F, 0},
       {0.94, 0.9006}},
      {"adam", {.name = "adam"}, {0.5F, -0.5F}, {0.9, 0.90526316}},
      {"adam with L2", {.name = "adam", .weight_decay = 0.1}, {0.5F}, {0.9}},
      {"adam with L2 against the gradient", {.name = "adam", .weight_decay = 0.5}, {-0.25F}, {0.9}},
      {"adamw", {.name = "adamw", .weight_decay = 0.1}, {0.5F}, {0.89}},
      {"adamw against the gradient", {.name = "adamw", .weight_decay = 0.5}, {-0.25F}, {1.05}},
  };
}

TEST(Optimizers, FollowTheFormulasOfPyTorch) {
  for (const Row& row : table()) {
    ASSERT_TRUE(validate(row.spec)) << row.name;
    Optimizer optimizer(row.spec, 1);
    std::vector<float> parameter{1.0F};
    for (std::size_t i = 0; i < row.gradients.size(); ++i) {
      std::vector<float> gradient{row.gradients[i]};
      optimizer.step(parameter, gradient, 0.1);
      EXPECT_NEAR(parameter[0], row.parameters[i], 1e-6) << row.name << ", step " << i + 1;
    }
  }
}

TEST(Optimizers, AResumedOneContinuesWithTheSameBits) {
  for (const Row& row : table()) {
    Optimizer unbroken(row.spec, 2);
    std::vector<float> a{1.0F, -2.0F};
    const auto step = [](Optimizer& optimizer, std::vector<float>& parameters, int i) {
      std::vector<float> gradient{std::sin(static_cast<float>(i)), std::cos(static_cast<float>(i))};
      optimizer.step(parameters, gradient, 0.05);
    };
    for (int i = 0; i < 10; ++i) step(unbroken, a, i);
    Optimizer resumed(row.spec, 2);
    ASSERT_TRUE(resumed.load(unbroken.state())) << row.name;
    std::vector<float> b = a;
    for (int i = 10; i < 20; ++i) {
      step(unbroken, a, i);
      step(resumed, b, i);
    }
    EXPECT_EQ(a, b) << row.name;
    EXPECT_EQ(unbroken.state(), resumed.state()) << row.name;
  }
}

TEST(Optimizers, AStateThatDoesNotFitIsRefusedAndTheOldOneStays) {
  const auto state_of = [](const OptimizerSpec& spec, std::size_t count) {
    Optimizer optimizer(spec, count);
    std::vector<float> p(count, 1.0F), g(count, 1.0F);
    optimizer.step(p, g, 0.1);
    return optimizer.state();
  };
  const OptimizerSpec momentum{.name = "sgd", .momentum = 0.9};
  Optimizer optimizer(momentum, 2);
  std::vector<float> p(2, 1.0F), g(2, 1.0F);
  optimizer.step(p, g, 0.1);
  const auto before = optimizer.state();
  for (const auto& bad : {state_of({.name = "adam"}, 2), state_of({.name = "sgd"}, 2),
                          state_of(momentum, 3), StateBytes{}}) {
    const auto status = optimizer.load(bad);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kCorrupt);
    EXPECT_EQ(optimizer.state(), before);
  }
}

TEST(Optimizers, ANegativeSecondMomentIsRefused) {
  Optimizer optimizer({.name = "adam"}, 1);
  EXPECT_TRUE(optimizer.load(encode_optimizer_state({"adam", 3, {{-1}, {0.5F}}})));
  EXPECT_FALSE(optimizer.load(encode_optimizer_state({"adam", 3, {{1}, {-0.5F}}})));
}

TEST(Optimizers, ResetForgetsTheMoments) {
  Optimizer optimizer({.name = "sgd", .momentum = 0.9}, 1),
      fresh({.name = "sgd", .momentum = 0.9}, 1);
  std::vector<float> p{1.0F}, g{1.0F};
  optimizer.step(p, g, 0.1);
  optimizer.reset();
  EXPECT_EQ(optimizer.state(), fresh.state());
}

TEST(Clipping, ScalesOnlyGradientsThatAreTooLong) {
  std::vector<float> gradient{3.0F, 4.0F};
  clip_gradient(gradient, 5.0, 10.0);
  EXPECT_EQ(gradient, (std::vector<float>{3.0F, 4.0F}));
  clip_gradient(gradient, 5.0, 0.0);
  EXPECT_EQ(gradient, (std::vector<float>{3.0F, 4.0F}));
  clip_gradient(gradient, 5.0, 1.0);
  EXPECT_NEAR(gradient[0], 0.6, 1e-6);
  EXPECT_NEAR(gradient[1], 0.8, 1e-6);
}

TEST(Optimizers, SettingsOutOfRangeAreUsageErrors) {
  const OptimizerSpec kTable[] = {{.name = "sdg"},
                                  {.learning_rate = 0},
                                  {.learning_rate = -1},
                                  {.learning_rate = INFINITY},
                                  {.momentum = 1.0},
                                  {.momentum = -0.1},
                                  {.nesterov = true},
                                  {.name = "adam", .beta1 = 1.0},
                                  {.name = "adam", .beta2 = -0.1},
                                  {.weight_decay = -1},
                                  {.clip_norm = -1},
                                  {.clip_norm = NAN}};
  for (const auto& spec : kTable) {
    const auto status = validate(spec);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kUsage);
  }
  EXPECT_TRUE(validate(OptimizerSpec{.name = "adam", .momentum = 0.9, .nesterov = true}))
      << "does not apply to adam";
}

}  // namespace
}  // namespace kith::compute
