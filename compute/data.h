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
  // all | auto (all is loaded; BatchCursor::share() narrows it) | "k/n", 1 <= k <= n
  std::string shard = "all";
  // index: round-robin by sample | label: sorted by label, then cut; not with auto, whose shares
  // are mixtures
  std::string shard_by = "index";
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

// Which samples of a dataset are drawn: a byte for each, 0 = not this one. Empty: all of them.
using SampleMask = std::vector<std::uint8_t>;

// Endless passes over a dataset, each in its own order drawn from (seed, pass), so that a cursor is
// two numbers. A last batch of one sample is merged into the one before (BatchNorm cannot train on
// one).
//
// With a share, a pass is the same order of the whole dataset without the samples of others. The
// position is the place in that order, so it means the same whatever the share: nodes with one
// seed and disjoint shares go through one permutation side by side, and after a change of shares
// each goes on where it was. A sample that changes hands is left out, or drawn twice, in one pass
// at most, and only if its place lies between those of its two owners. Costs: a pass draws the
// order of the whole dataset (4 bytes a sample; 60,000: 0.5 ms).
class BatchCursor {
 public:
  BatchCursor(const Dataset& data, std::size_t batch_size, std::uint64_t seed);
  Batch next();  // valid until the next call
  struct Position {
    // offset: place in the order of the pass; all samples before it that are ours have been drawn.
    std::uint64_t pass = 0, offset = 0;
    bool operator==(const Position&) const = default;
  };
  [[nodiscard]] Position position() const;
  void restore(Position position);
  void reseed(std::uint64_t seed, Position position);
  // From the next batch on. At least one sample.
  void share(SampleMask mask);
  [[nodiscard]] std::size_t samples_per_pass() const;
  [[nodiscard]] std::size_t batches_per_pass() const;

 private:
  void draw_order();
  void count_left();
  [[nodiscard]] bool is_ours(std::size_t sample) const {
    return mask_.empty() || mask_[sample] != 0;
  }
  const Dataset& data_;
  std::size_t batch_size_;
  std::uint64_t seed_;
  SampleMask mask_;
  Position position_;
  std::size_t left_ = 0;  // of ours, from position_ to the end of the pass
  std::vector<std::uint32_t> order_;
  std::vector<float> inputs_;
  std::vector<std::int64_t> labels_;
};

}  // namespace kith::compute
