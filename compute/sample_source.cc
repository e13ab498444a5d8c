#include "compute/sample_source.h"

#include <numeric>

#include "compute/array_file.h"
#include "compute/csv.h"
#include "compute/data_file.h"

namespace kith::compute {
namespace {

// {n, features} as it is; images get their channel dimension: {n, H, W} is one channel.
Result<std::vector<std::int64_t>> shape_of_samples(const ArrayFile& inputs) {
  const auto& shape = inputs.shape;
  switch (shape.size()) {
    case 2:
      return std::vector<std::int64_t>{shape[1]};
    case 3:
      return std::vector<std::int64_t>{1, shape[1], shape[2]};
    case 4:
      return std::vector<std::int64_t>{shape[1], shape[2], shape[3]};
    default:
      break;
  }
  return refuse_data(
      inputs.path,
      "its shape is " + to_text(shape) +
          ": expected samples x features, samples x height x width, or samples x channels x "
          "height x width (are inputs and labels swapped?)");
}

class ArraySamples final : public SampleSource {
 public:
  ArraySamples(ArrayFile inputs, ArrayFile labels, std::vector<std::int64_t> sample_shape)
      : inputs_(std::move(inputs)),
        labels_(std::move(labels)),
        sample_shape_(std::move(sample_shape)) {}

  [[nodiscard]] std::size_t count() const override { return inputs_.count(); }
  [[nodiscard]] const std::vector<std::int64_t>& sample_shape() const override {
    return sample_shape_;
  }
  void read(std::size_t sample, std::span<float> out) const override {
    inputs_.read_sample(sample, out);
  }
  [[nodiscard]] std::int64_t label(std::size_t sample) const override {
    return labels_.integer(sample);
  }
  [[nodiscard]] std::string label_place(std::size_t sample) const override {
    return place(labels_, sample);
  }
  [[nodiscard]] std::string input_place(std::size_t sample) const override {
    return place(inputs_, sample);
  }
  [[nodiscard]] const std::string& path() const override { return inputs_.path; }

 private:
  static std::string place(const ArrayFile& file, std::size_t sample) {
    return file.path + ": sample " + std::to_string(sample);
  }
  ArrayFile inputs_, labels_;
  std::vector<std::int64_t> sample_shape_;
};

class CsvSamples final : public SampleSource {
 public:
  explicit CsvSamples(CsvTable table)
      : table_(std::move(table)), sample_shape_{static_cast<std::int64_t>(table_.columns)} {}

  [[nodiscard]] std::size_t count() const override { return table_.labels.size(); }
  [[nodiscard]] const std::vector<std::int64_t>& sample_shape() const override {
    return sample_shape_;
  }
  void read(std::size_t sample, std::span<float> out) const override {
    std::copy_n(table_.values.begin() + static_cast<std::ptrdiff_t>(sample * out.size()),
                out.size(), out.begin());
  }
  [[nodiscard]] std::int64_t label(std::size_t sample) const override {
    return table_.labels[sample];
  }
  [[nodiscard]] std::string label_place(std::size_t sample) const override {
    return input_place(sample);
  }
  [[nodiscard]] std::string input_place(std::size_t sample) const override {
    return table_.path + ":" + std::to_string(table_.lines[sample]);
  }
  [[nodiscard]] const std::string& path() const override { return table_.path; }

 private:
  CsvTable table_;
  std::vector<std::int64_t> sample_shape_;
};

Status check_labels(const ArrayFile& inputs, const ArrayFile& labels) {
  if (labels.shape.size() != 1) {
    return refuse_data(labels.path, "its shape is " + to_text(labels.shape) +
                                        ": expected one label per sample (" +
                                        std::to_string(inputs.count()) + ")");
  }
  if (!is_integer(labels.type)) return refuse_data(labels.path, "its labels are not integers");
  if (labels.count() != inputs.count()) {
    return refuse_data(labels.path, "has " + std::to_string(labels.count()) + " labels, but " +
                                        inputs.path + " has " + std::to_string(inputs.count()) +
                                        " samples");
  }
  return {};
}

Result<std::unique_ptr<SampleSource>> open_arrays(Result<ArrayFile> (*read)(const std::string&),
                                                  const std::vector<std::string>& files) {
  KITH_ASSIGN(ArrayFile inputs, read(files[0]));
  KITH_ASSIGN(std::vector<std::int64_t> shape, shape_of_samples(inputs));
  KITH_ASSIGN(ArrayFile labels, read(files[1]));
  KITH_TRY(check_labels(inputs, labels));
  if (inputs.count() == 0) return refuse_data(inputs.path, "holds no samples");
  if (inputs.sample_values() == 0)
    return refuse_data(inputs.path, "its samples hold no values: " + to_text(inputs.shape));
  return std::make_unique<ArraySamples>(std::move(inputs), std::move(labels), std::move(shape));
}

}  // namespace

std::size_t SampleSource::sample_values() const {
  const auto& shape = sample_shape();
  return std::accumulate(
      shape.begin(), shape.end(), std::size_t{1},
      [](std::size_t n, std::int64_t dim) { return n * static_cast<std::size_t>(dim); });
}

Result<std::unique_ptr<SampleSource>> open_samples(const std::string& format,
                                                   const std::vector<std::string>& files,
                                                   const std::string& key) {
  const bool csv = format == "csv";
  if (!csv && format != "idx" && format != "npy") {
    return fail(ErrorCode::kUsage, "data.format is '" + format + "': expected idx, csv or npy");
  }
  if (files.size() != (csv ? 1U : 2U)) {
    if (files.empty())
      return fail(ErrorCode::kUsage, "data." + key +
                                         " is not set: give the run's configuration with -c FILE "
                                         "(kithd --help lists its keys)");
    return fail(ErrorCode::kUsage, "data." + key + " names " + std::to_string(files.size()) +
                                       " files: format '" + format +
                                       (csv ? "' takes one, with the label in its last column"
                                            : "' takes two, the inputs and the labels"));
  }
  if (!csv) return open_arrays(format == "idx" ? &read_idx : &read_npy, files);
  KITH_ASSIGN(CsvTable table, read_csv(files[0]));
  return std::make_unique<CsvSamples>(std::move(table));
}

}  // namespace kith::compute
