// Writes a short training run of a kith model into a folder, for compare_python.py: a description
// (run.txt), the initial and final values, the batches and the losses, all little-endian.
//   torch_export_run KIND FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/random.h"
#include "compute/torch/torch_model.h"

namespace kith::compute {
namespace {

constexpr std::size_t kSteps = 20;
constexpr std::size_t kBatch = 8;

template <typename T>
void write(const std::filesystem::path& path, const std::vector<T>& values) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(T)));
}

void describe(const std::filesystem::path& path, const ModelSpec& spec, const ModelSchema& schema) {
  std::ofstream out(path);
  const auto list = [&](const char* key, const std::vector<std::int64_t>& numbers) {
    out << key;
    for (const std::int64_t number : numbers) out << ' ' << number;
    out << '\n';
  };
  out << "kind " << spec.kind << "\nclasses " << spec.classes << "\nbatch " << kBatch << '\n';
  list("input", spec.input_shape);
  list("channels", spec.channels);
  list("hidden", spec.hidden);
  for (const TensorInfo& info : schema.tensors) {
    out << (info.kind == TensorKind::kIntegerBuffer ? "integer " : "float ") << info.name << ' '
        << info.offset;
    for (const std::int64_t extent : info.shape) out << ' ' << extent;
    out << '\n';
  }
}

int run(const std::string& kind, const std::filesystem::path& folder) {
  ModelSpec spec;
  spec.kind = kind;
  spec.channels = {6, 8};
  spec.hidden = {20};
  spec.input_shape = {1, 15, 14};
  spec.device = "cpu";
  OptimizerSpec optimizer;
  optimizer.momentum = 0.9;
  auto made = torch::make_torch_model(spec, optimizer);
  if (!made) {
    std::cerr << made.error().message << '\n';
    return 1;
  }
  Model& model = **made;
  std::filesystem::create_directories(folder);
  describe(folder / "run.txt", spec, model.schema());

  std::vector<float> values(model.schema().value_count);
  model.read_values(0, values);
  write(folder / "initial", values);
  Random random(5);
  std::vector<float> inputs(kSteps * kBatch * 210);
  std::vector<std::int64_t> labels(kSteps * kBatch);
  for (float& value : inputs) value = static_cast<float>(random.normal());
  for (std::int64_t& label : labels) label = static_cast<std::int64_t>(random.below(10));
  std::vector<float> losses;
  for (std::size_t i = 0; i < kSteps; ++i) {
    const Batch batch{std::span(inputs).subspan(i * kBatch * 210, kBatch * 210),
                      std::span(labels).subspan(i * kBatch, kBatch), kBatch};
    losses.push_back(static_cast<float>(model.step(batch, 0.05).loss));
  }
  write(folder / "inputs", inputs);
  write(folder / "labels", labels);
  write(folder / "losses", losses);
  model.read_values(0, values);
  write(folder / "final", values);
  write(folder / "integers", model.read_integers());
  return 0;
}

}  // namespace
}  // namespace kith::compute

int main(int count, char** arguments) {
  if (count != 3) {
    std::cerr << "usage: torch_export_run KIND FOLDER\n";
    return 2;
  }
  return kith::compute::run(arguments[1], arguments[2]);
}
