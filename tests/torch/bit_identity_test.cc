// Alone, a kith model is the same as a plain LibTorch loop, bit for bit, and so is one that was
// stopped and resumed.
#include "tests/torch/torch_fixture.h"

namespace kith::compute {
namespace {

constexpr std::size_t kSteps = 60;

struct Case {
  std::string name;
  std::string kind;
  OptimizerSpec optimizer;
};

std::vector<Case> cases() {
  OptimizerSpec momentum = optimizer_named("sgd");
  momentum.momentum = 0.9;
  OptimizerSpec nesterov = momentum;
  nesterov.nesterov = true;
  nesterov.weight_decay = 1e-3;
  OptimizerSpec clipped = momentum;
  clipped.clip_norm = 0.5;
  OptimizerSpec adam = optimizer_named("adam");
  adam.weight_decay = 1e-3;
  OptimizerSpec adamw = optimizer_named("adamw");
  adamw.weight_decay = 1e-2;
  std::vector<Case> all;
  for (const char* kind : {"mlp", "cnn", "cnn-batchnorm"}) {
    const std::string tag = kind == std::string("cnn-batchnorm") ? "cnn_batchnorm" : kind;
    all.push_back({tag + "_sgd", kind, optimizer_named("sgd")});
    all.push_back({tag + "_momentum", kind, momentum});
    all.push_back({tag + "_nesterov_decay", kind, nesterov});
    all.push_back({tag + "_clipped", kind, clipped});
    all.push_back({tag + "_adam", kind, adam});
    all.push_back({tag + "_adamw", kind, adamw});
  }
  return all;
}

class BitIdentity : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(AllModels, BitIdentity, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(BitIdentity, EqualsAPlainLibTorchLoop) {
  const ModelSpec spec = small_spec(GetParam().kind);
  const auto batches = make_batches(spec, kSteps, 16, 1);
  const auto learning_rates = rates(kSteps, GetParam().optimizer.learning_rate);
  const auto model = make(spec, GetParam().optimizer);
  const std::vector<float> initial = values_of(*model);

  const std::vector<float> losses = train(*model, batches, learning_rates, 0, kSteps);
  const ReferenceRun reference =
      run_reference(spec, GetParam().optimizer, model->schema(), initial, batches, learning_rates);

  EXPECT_TRUE(same_bits(losses, reference.losses))
      << losses.back() << " and " << reference.losses.back();
  EXPECT_TRUE(same_bits(values_of(*model), reference.values));
  EXPECT_EQ(model->read_integers(), reference.integers);
  EXPECT_LT(losses.back(), losses.front());
  const EvalResult eval = model->evaluate(batches.front().view());
  EXPECT_EQ(static_cast<float>(eval.loss), reference.eval_loss);
  EXPECT_EQ(eval.accuracy, reference.eval_accuracy);
}

TEST_P(BitIdentity, StoppedAtStep100AndResumedEqualsTheUnbrokenRun) {
  const ModelSpec spec = small_spec(GetParam().kind);
  const auto batches = make_batches(spec, 112, 8, 2);
  const auto learning_rates = rates(112, GetParam().optimizer.learning_rate);
  const auto unbroken = make(spec, GetParam().optimizer);
  train(*unbroken, batches, learning_rates, 0, 100);

  ModelSpec other_seed = spec;
  other_seed.seed = 8;
  const auto resumed = make(other_seed, GetParam().optimizer);
  resumed->write_values(0, values_of(*unbroken));
  resumed->write_integers(unbroken->read_integers());
  ASSERT_TRUE(resumed->load_optimizer_state(unbroken->optimizer_state()));

  EXPECT_TRUE(same_bits(train(*unbroken, batches, learning_rates, 100, 112),
                        train(*resumed, batches, learning_rates, 100, 112)));
  EXPECT_TRUE(same_bits(values_of(*unbroken), values_of(*resumed)));
  EXPECT_EQ(unbroken->read_integers(), resumed->read_integers());
  EXPECT_EQ(unbroken->optimizer_state(), resumed->optimizer_state());
}

TEST(BitIdentityOfImages, OddExtentsAndSeveralChannelsAndThreads) {
  for (const unsigned threads : {1U, 2U}) {
    ModelSpec spec = small_spec("cnn");
    spec.input_shape = {3, 15, 11};
    spec.threads = threads;
    const auto batches = make_batches(spec, 20, 5, 3);
    const auto learning_rates = rates(20, 0.05);
    const auto model = make(spec);
    const std::vector<float> initial = values_of(*model);
    const std::vector<float> losses = train(*model, batches, learning_rates, 0, 20);
    const ReferenceRun reference =
        run_reference(spec, {}, model->schema(), initial, batches, learning_rates);
    if (threads == 1) {
      EXPECT_TRUE(same_bits(losses, reference.losses));
      EXPECT_TRUE(same_bits(values_of(*model), reference.values));
    } else {
      EXPECT_NEAR(losses.back(), reference.losses.back(), 1e-3);
    }
  }
}

TEST(InitialValues, DependOnTheSeedAndNotOnThreads) {
  ModelSpec spec = small_spec("cnn-batchnorm");
  const std::vector<float> first = values_of(*make(spec));
  spec.threads = 2;
  EXPECT_TRUE(same_bits(first, values_of(*make(spec))));
  spec.seed = 8;
  EXPECT_FALSE(same_bits(first, values_of(*make(spec))));
}

}  // namespace
}  // namespace kith::compute
