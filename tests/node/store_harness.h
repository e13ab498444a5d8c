// A small model with every kind of tensor, and what a checkpoint of it needs. For the tests of
// files. Thread: one.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/log.h"
#include "compute/replica.h"
#include "node/store/checkpoint.h"
#include "tests/node/scratch_folder.h"

namespace kith::node {

inline constexpr std::size_t kFragmentBytes = 4096;

inline compute::ModelSchema small_schema(std::uint64_t width = 3000) {
  using compute::TensorKind;
  compute::ModelSchema schema;
  const auto add = [&](const char* name, std::vector<std::int64_t> shape, TensorKind kind) {
    std::size_t count = 1;
    for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
    std::size_t& space =
        kind == TensorKind::kIntegerBuffer ? schema.integer_count : schema.value_count;
    schema.tensors.push_back({name, std::move(shape), kind, space, count});
    space += count;
  };
  add("0.weight", {static_cast<std::int64_t>(width), 2}, TensorKind::kParameter);
  add("0.bias", {5}, TensorKind::kParameter);
  add("1.running_mean", {5}, TensorKind::kBuffer);
  add("1.running_var", {5}, TensorKind::kVarianceBuffer);
  add("1.num_batches_tracked", {}, TensorKind::kIntegerBuffer);
  schema.classes = 10;
  return schema;
}

// Only what Replica::reset() asks of a model.
class ValuesOnly final : public compute::Model {
 public:
  explicit ValuesOnly(compute::ModelSchema schema) : schema_(std::move(schema)) {
    for (std::size_t i = 0; i < schema_.value_count; ++i)
      values_.push_back(0.25F * static_cast<float>(i));
  }
  std::vector<float>& values() { return values_; }

  const compute::ModelSchema& schema() const override { return schema_; }
  std::string_view device() const override { return "cpu"; }
  compute::StepResult step(const compute::Batch&, double) override { return {}; }
  compute::EvalResult evaluate(const compute::Batch&) override { return {}; }
  std::size_t merge_and_publish(std::size_t offset, std::span<const float>,
                                std::span<float> out) override {
    read_values(offset, out);
    return 0;
  }
  void read_values(std::size_t offset, std::span<float> out) const override {
    std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }
  void write_values(std::size_t, std::span<const float>) override {}
  std::vector<std::int64_t> read_integers() const override { return {}; }
  void write_integers(std::span<const std::int64_t>) override {}
  compute::StateBytes optimizer_state() const override { return {}; }
  Status load_optimizer_state(std::span<const std::byte>) override { return {}; }
  void reset_optimizer() override {}

 private:
  compute::ModelSchema schema_;
  std::vector<float> values_;
};

inline std::vector<std::byte> some_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

// One node's state and the folder that its checkpoints go to.
class StoreHarness {
 public:
  explicit StoreHarness(unsigned keep = 3, std::string at = "", std::uint64_t width = 3000)
      : schema(small_schema(width)),
        model(schema),
        replica(schema.value_count, kFragmentBytes),
        folder(at.empty() ? scratch.file("checkpoints") : std::move(at)),
        store(folder, keep, log) {
    replica.reset(model);
    image.samples = 3200;
    image.cursor = {2, 64};
    image.seed = 77;
    image.lr_scale = 0.5;
    image.loss = 0.1;  // not exact in binary: must come back bit for bit
    image.optimizer = some_bytes(1001);
    image.integers = {1234567890123};
    ledger.bytes = some_bytes(77);
    facts.run_id = "digits-1";
    facts.cluster = "digits";
    facts.schema_hash = hash_bytes(some_bytes(3));
    facts.node.bytes[0] = 9;
    facts.incarnation = (7ULL << 32) + 3;
    facts.cluster_progress = 1ULL << 60;
    facts.others_samples[std::string(64, 'a')] = 5;
    facts.others_steps[std::string(64, 'a')] = 6;
    facts.epoch = 1.0 / 3.0;
    facts.model_json = R"({"kind":"cnn"})";
    facts.data_mean = 0.1307;
    facts.classes = 10;
    facts.has_trained = true;
    facts.depth_ahead = -17;
  }

  Result<std::string> write(Step step) {
    image.step = step;
    return store.write(schema, replica, image, ledger, facts);
  }
  Result<std::optional<LoadedCheckpoint>> load() {
    return store.load_newest(schema, facts.schema_hash, facts.run_id);
  }
  // 0: none or an error.
  Step loaded_step() {
    auto loaded = load();
    return loaded && *loaded ? (*loaded)->state.own->step : 0;
  }

  ScratchFolder scratch;
  compute::ModelSchema schema;
  ValuesOnly model;
  compute::Replica replica;
  MemoryLog log;
  std::string folder;
  CheckpointStore store;
  compute::TrainerImage image;
  gossip::LedgerImage ledger;
  CheckpointFacts facts;
};

}  // namespace kith::node
