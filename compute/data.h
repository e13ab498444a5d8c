// Training data: IDX (also .gz), CSV and npy files, normalised, sharded, cut into batches by a
// resumable cursor. Bad files end as kDataRefused with the file, what is wrong and what was
// expected; nothing is guessed. Thread: loading on any one thread; a Dataset is immutable
// afterwards; a BatchCursor has one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/random.h"
#include "base/result.h"
#include "compute/model.h"

namespace kith::compute {

struct DataSpec {
  std::string format = "idx";  // idx | csv | npy
  std::vector<std::string>
      train;  // idx, npy: {inputs, labels}; csv: {file} with the label in the last column
  std::vector<std::string> test;       // the same; may be empty
  std::optional<std::size_t> classes;  // default: highest label of the whole training file + 1
  std::optional<double> mean, std;     // default: over all values of the whole training file
  std::string shard =
      "all";  // all | auto (all, until members share the data out) | "k/n", 1 <= k <= n
  std::string shard_by =
      "index";  // index: round-robin by sample | label: sorted by label, then cut
};

struct Dataset {
  std::vector<float> inputs;  // count * sample_values, normalised (x - mean) / std
  std::vector<std::int64_t> labels;
  std::vector<std::int64_t> sample_shape;  // {1, 28, 28} for idx3; {features} for csv and 2-d npy
  std::size_t count = 0;
  [[nodiscard]] std::size_t sample_values() const;
};

struct LoadedData {
  Dataset train;  // this node's shard only
  Dataset test;
  std::size_t classes = 0;
  double mean = 0.0, std = 1.0;
  Hash256 fingerprint;  // of the whole training file's values and labels, before normalisation
  std::size_t whole_count = 0;                     // samples in the whole training file
  std::uint32_t shard_index = 0, shard_count = 0;  // 0/0 = all
};

// uint8 image files are scaled to 0..1 before mean and std are taken.
Result<LoadedData> load_data(const DataSpec& spec);
// "2/4" -> {2, 4}; "all", "auto" -> {0, 0}; otherwise kUsage.
struct ShardSpec {
  std::uint32_t index = 0, count = 0;
};
Result<ShardSpec> parse_shard(const std::string& text);

// Endless passes over a dataset, each in its own order drawn from (seed, pass), so that a cursor is
// two numbers. A last batch of one sample is merged into the one before (BatchNorm cannot train on
// one).
class BatchCursor {
 public:
  BatchCursor(const Dataset& data, std::size_t batch_size, std::uint64_t seed);
  Batch next();  // valid until the next call
  struct Position {
    std::uint64_t pass = 0, offset = 0;
    bool operator==(const Position&) const = default;
  };
  [[nodiscard]] Position position() const;
  void restore(Position position);
  [[nodiscard]] std::size_t batches_per_pass() const;

 private:
  void draw_order();
  const Dataset& data_;
  std::size_t batch_size_;
  std::uint64_t seed_;
  Position position_;
  std::vector<std::uint32_t> order_;
  std::vector<float> inputs_;
  std::vector<std::int64_t> labels_;
};

}  // namespace kith::compute
