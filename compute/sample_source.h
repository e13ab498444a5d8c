// A labelled data file as samples, whatever its format: what load_data scans for statistics and
// copies a shard from. Immutable after loading. Only as much is held as the files themselves hold
// (u8 images: one byte a value).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compute/data.h"

namespace kith::compute {

class SampleSource {
 public:
  virtual ~SampleSource() = default;
  [[nodiscard]] virtual std::size_t count() const = 0;
  [[nodiscard]] virtual const std::vector<std::int64_t>& sample_shape() const = 0;
  virtual void read(std::size_t sample, std::span<float> out) const = 0;
  [[nodiscard]] virtual std::int64_t label(std::size_t sample) const = 0;
  // "digits.csv:17", "labels.gz sample 16": where a person finds this label or this sample's
  // values.
  [[nodiscard]] virtual std::string label_place(std::size_t sample) const = 0;
  [[nodiscard]] virtual std::string input_place(std::size_t sample) const = 0;
  [[nodiscard]] virtual const std::string& path() const = 0;
  [[nodiscard]] std::size_t sample_values() const;
};

// `key` is "train" or "test", for messages about the configuration (kUsage); bad files are
// kDataRefused.
Result<std::unique_ptr<SampleSource>> open_samples(const std::string& format,
                                                   const std::vector<std::string>& files,
                                                   const std::string& key);

}  // namespace kith::compute
