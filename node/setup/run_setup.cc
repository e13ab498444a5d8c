#include "node/setup/run_setup.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace kith::node {

compute::DataSpec data_spec(const Config& config) {
  compute::DataSpec spec;
  spec.format = config.data.format;
  spec.train = config.data.train;
  spec.test = config.data.test;
  if (config.data.classes) spec.classes = static_cast<std::size_t>(*config.data.classes);
  spec.mean = config.data.mean;
  spec.std = config.data.std;
  spec.shard = config.data.shard;
  spec.shard_by = config.data.shard_by;
  return spec;
}

compute::ModelSpec model_spec(const Config& config, const compute::LoadedData& data) {
  compute::ModelSpec spec;
  spec.kind = config.model.kind;
  spec.channels = config.model.channels;
  spec.hidden = config.model.hidden;
  spec.input_shape = data.train.sample_shape;
  spec.classes = data.classes;
  spec.seed = config.run.seed;
  spec.device = config.train.device;
  spec.threads = config.train.threads;
  return spec;
}

compute::OptimizerSpec optimizer_spec(const Config& config) {
  compute::OptimizerSpec spec;
  spec.name = config.train.optimizer;
  spec.learning_rate = config.train.learning_rate;
  spec.momentum = config.train.momentum;
  spec.nesterov = config.train.nesterov;
  spec.beta1 = config.train.beta1;
  spec.beta2 = config.train.beta2;
  spec.eps = config.train.eps;
  spec.weight_decay = config.train.weight_decay;
  spec.clip_norm = config.train.clip_norm;
  return spec;
}

// Schedules count samples of cluster progress; the configuration counts steps of one batch each.
compute::ScheduleSpec schedule_spec(const Config& config, const compute::LoadedData& data) {
  const double batch = config.train.batch_size;
  compute::ScheduleSpec spec;
  spec.name = config.train.schedule;
  spec.base = config.train.learning_rate;
  spec.warmup = static_cast<double>(config.train.warmup_steps) * batch;
  spec.step_every = static_cast<double>(config.train.step_every) * batch;
  spec.gamma = config.train.gamma;
  spec.floor = config.train.floor;
  // Whole file: what the cluster's data is once everybody is there.
  if (config.run.steps > 0)
    spec.total = static_cast<double>(config.run.steps) * batch;
  else
    spec.total = config.run.epochs * static_cast<double>(data.whole_count);
  return spec;
}

gossip::MethodOverrides method_overrides(const Config& config) {
  return {config.method.topology, config.method.codec, config.method.wait,
          config.method.finish,   config.method.alpha, config.method.every_steps};
}

std::string fact_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

schema::Facts run_facts(const Config& config, const gossip::Composition& composition,
                        const compute::LoadedData& data) {
  return {{"run.seed", std::to_string(config.run.seed)},
          {"run.epochs", fact_text(config.run.epochs)},
          {"run.steps", std::to_string(config.run.steps)},
          {"method", gossip::describe(composition)},
          {"data.classes", std::to_string(data.classes)},
          {"data.mean", fact_text(data.mean)},
          {"data.std", fact_text(data.std)}};
}

std::string model_json(const Config& config, const compute::LoadedData& data) {
  return nlohmann::json{{"kind", config.model.kind},
                        {"channels", config.model.channels},
                        {"hidden", config.model.hidden},
                        {"input_shape", data.train.sample_shape},
                        {"classes", data.classes}}
      .dump();
}

std::optional<std::string> first_difference(const schema::Facts& here, const schema::Facts& there) {
  for (const auto& [name, value] : here) {
    const auto other =
        std::find_if(there.begin(), there.end(), [&](const auto& f) { return f.first == name; });
    if (other == there.end()) return name + ": " + value + " here, not stated there";
    if (other->second != value) return name + ": " + value + " here, " + other->second + " there";
  }
  return std::nullopt;
}

}  // namespace kith::node
