// What the tests of the LibTorch models share: small specs and a few verbs.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "compute/torch/torch_model.h"
#include "tests/torch/reference_loop.h"

namespace kith::compute {

inline ModelSpec small_spec(const std::string& kind) {
  ModelSpec spec;
  spec.kind = kind;
  spec.channels = {6, 8};
  spec.hidden = {20};
  spec.input_shape = {1, 14, 14};
  spec.classes = 10;
  spec.seed = 7;
  spec.device = "cpu";
  return spec;
}

inline OptimizerSpec optimizer_named(const std::string& name) {
  OptimizerSpec spec;
  spec.name = name;
  spec.learning_rate = name == "sgd" ? 0.05 : 0.002;
  return spec;
}

inline std::unique_ptr<Model> make(const ModelSpec& spec, const OptimizerSpec& optimizer = {}) {
  auto model = torch::make_torch_model(spec, optimizer);
  if (!model) {
    ADD_FAILURE() << model.error().message;
    return nullptr;
  }
  return std::move(*model);
}

inline std::vector<float> values_of(const Model& model) {
  std::vector<float> values(model.schema().value_count);
  model.read_values(0, values);
  return values;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// A rate that changes at every step, as a schedule's does.
inline std::vector<double> rates(std::size_t steps, double base) {
  std::vector<double> result;
  for (std::size_t i = 0; i < steps; ++i)
    result.push_back(base * (1.0 - 0.004 * static_cast<double>(i)));
  return result;
}

inline std::vector<float> train(Model& model, const std::vector<SampleBatch>& batches,
                                const std::vector<double>& rates, std::size_t begin,
                                std::size_t end) {
  std::vector<float> losses;
  for (std::size_t i = begin; i < end; ++i) {
    const StepResult result = model.step(batches[i].view(), rates[i]);
    EXPECT_TRUE(result.finite) << "step " << i;
    losses.push_back(static_cast<float>(result.loss));
  }
  return losses;
}

}  // namespace kith::compute
