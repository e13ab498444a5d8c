#include "compute/data.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <numeric>

#include "base/hash.h"
#include "compute/sample_source.h"

namespace kith::compute {
namespace {

constexpr std::size_t kMostClasses = 1'000'000;

struct Statistics {
  double mean = 0.0, std = 1.0;
  Hash256 fingerprint;
  std::int64_t highest_label = 0;
};

tl::unexpected<Error> refuse(const std::string& what) {
  return fail(ErrorCode::kDataRefused, what);
}

// One pass for the sum, the fingerprint and the checks of every value and label.
Result<Statistics> first_pass(const SampleSource& source, std::vector<float>& sample) {
  Statistics found;
  Hasher hasher;
  hasher.add(std::string_view("kith data 1")).add(std::uint64_t{source.count()});
  for (const std::int64_t dim : source.sample_shape()) hasher.add(static_cast<std::uint64_t>(dim));
  double sum = 0.0;
  for (std::size_t i = 0; i < source.count(); ++i) {
    source.read(i, sample);
    double part = 0.0;
    for (const float v : sample) part += v;
    if (!std::isfinite(part))
      return refuse(source.input_place(i) + ": holds a value that is not finite");
    sum += part;
    const std::int64_t label = source.label(i);
    if (label < 0)
      return refuse(source.label_place(i) + ": its label is " + std::to_string(label) +
                    ", below 0");
    found.highest_label = std::max(found.highest_label, label);
    hasher.add(std::as_bytes(std::span(sample))).add(static_cast<std::uint64_t>(label));
  }
  found.mean = sum / static_cast<double>(source.count() * sample.size());
  found.fingerprint = hasher.finish();
  return found;
}

// Population deviation. Data that is the same everywhere is divided by 1, not by 0.
double deviation(const SampleSource& source, double mean, std::vector<float>& sample) {
  double sum = 0.0;
  for (std::size_t i = 0; i < source.count(); ++i) {
    source.read(i, sample);
    double part = 0.0;
    for (const float v : sample) part += (v - mean) * (v - mean);
    sum += part;
  }
  const double deviation = std::sqrt(sum / static_cast<double>(source.count() * sample.size()));
  return deviation > 0.0 ? deviation : 1.0;
}

Result<Statistics> scan(const SampleSource& source, const DataSpec& spec) {
  std::vector<float> sample(source.sample_values());
  KITH_ASSIGN(Statistics found, first_pass(source, sample));
  found.mean = spec.mean.value_or(found.mean);
  found.std = spec.std ? *spec.std : deviation(source, found.mean, sample);
  return found;
}

Status check_labels(const SampleSource& source, std::size_t classes) {
  for (std::size_t i = 0; i < source.count(); ++i) {
    const std::int64_t label = source.label(i);
    if (label < 0 || static_cast<std::size_t>(label) >= classes) {
      return refuse(source.label_place(i) + ": its label is " + std::to_string(label) +
                    ", expected 0 to " + std::to_string(classes - 1) + " (" +
                    std::to_string(classes) + " classes)");
    }
  }
  return {};
}

Result<std::size_t> class_count(const SampleSource& source, const DataSpec& spec,
                                std::int64_t highest) {
  const std::size_t classes =
      spec.classes.value_or(std::max<std::size_t>(static_cast<std::size_t>(highest) + 1, 2));
  if (classes < 2 || classes > kMostClasses) {
    return refuse(source.path() + ": " + std::to_string(classes) +
                  " classes: expected 2 to 1000000");
  }
  KITH_TRY(check_labels(source, classes));
  return classes;
}

// Indices of the samples that belong to one shard, in the order in which they are kept.
std::vector<std::size_t> shard_samples(const SampleSource& source, ShardSpec shard, bool by_label) {
  std::vector<std::size_t> all(source.count());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (shard.count == 0) return all;
  std::vector<std::size_t> mine;
  if (!by_label) {
    for (std::size_t i = shard.index - 1; i < all.size(); i += shard.count) mine.push_back(i);
    return mine;
  }
  std::stable_sort(all.begin(), all.end(),
                   [&](std::size_t a, std::size_t b) { return source.label(a) < source.label(b); });
  const auto cut = [&](std::uint64_t k) {
    return static_cast<std::ptrdiff_t>(k * all.size() / shard.count);
  };
  mine.assign(all.begin() + cut(shard.index - 1), all.begin() + cut(shard.index));
  return mine;
}

Dataset copy_samples(const SampleSource& source, const std::vector<std::size_t>& samples,
                     double mean, double std) {
  Dataset data;
  data.sample_shape = source.sample_shape();
  data.count = samples.size();
  const std::size_t values = source.sample_values();
  data.inputs.resize(samples.size() * values);
  data.labels.reserve(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::span<float> out(data.inputs.data() + i * values, values);
    source.read(samples[i], out);
    for (float& v : out) v = static_cast<float>((v - mean) / std);
    data.labels.push_back(source.label(samples[i]));
  }
  return data;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t dim : shape) text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text;
}

Result<Dataset> load_test(const DataSpec& spec, const SampleSource& train,
                          const LoadedData& loaded) {
  if (spec.test.empty()) return Dataset{.sample_shape = train.sample_shape()};
  KITH_ASSIGN(const auto source, open_samples(spec.format, spec.test, "test"));
  if (source->sample_shape() != train.sample_shape()) {
    return refuse(source->path() + ": its samples are " + shape_text(source->sample_shape()) +
                  ", those of " + train.path() + " are " + shape_text(train.sample_shape()));
  }
  KITH_TRY(check_labels(*source, loaded.classes));
  std::vector<float> sample(source->sample_values());
  KITH_TRY(first_pass(*source, sample));
  return copy_samples(*source, shard_samples(*source, {}, false), loaded.mean, loaded.std);
}

Status check_spec(const DataSpec& spec) {
  if (spec.shard_by != "index" && spec.shard_by != "label") {
    return fail(ErrorCode::kUsage,
                "data.shard_by is '" + spec.shard_by + "': expected index or label");
  }
  if (spec.shard == "auto" && spec.shard_by == "label") {
    return fail(ErrorCode::kUsage,
                "data.shard_by = label needs data.shard = \"k/n\": with auto every share is a "
                "mixture of the whole file");
  }
  if (spec.std && !(std::isfinite(*spec.std) && *spec.std > 0.0)) {
    return fail(ErrorCode::kUsage,
                "data.std is " + std::to_string(*spec.std) + ": expected more than 0");
  }
  if (spec.mean && !std::isfinite(*spec.mean))
    return fail(ErrorCode::kUsage, "data.mean is not finite");
  return {};
}

}  // namespace

std::size_t Dataset::sample_values() const {
  return std::accumulate(
      sample_shape.begin(), sample_shape.end(), std::size_t{1},
      [](std::size_t n, std::int64_t dim) { return n * static_cast<std::size_t>(dim); });
}

Result<ShardSpec> parse_shard(const std::string& text) {
  if (text == "all" || text == "auto") return ShardSpec{};
  ShardSpec shard;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, shard.index);
  const bool slash = first.ec == std::errc{} && first.ptr != end && *first.ptr == '/';
  const auto second = slash ? std::from_chars(first.ptr + 1, end, shard.count) : first;
  if (!slash || second.ec != std::errc{} || second.ptr != end || shard.index < 1 ||
      shard.index > shard.count) {
    return fail(ErrorCode::kUsage, "data.shard is '" + text +
                                       "': expected auto, all or k/n with 1 <= k <= n, as in 2/4");
  }
  return shard;
}

Result<LoadedData> load_data(const DataSpec& spec) {
  KITH_TRY(check_spec(spec));
  KITH_ASSIGN(const ShardSpec shard, parse_shard(spec.shard));
  KITH_ASSIGN(const auto source, open_samples(spec.format, spec.train, "train"));
  KITH_ASSIGN(const Statistics found, scan(*source, spec));
  LoadedData loaded;
  KITH_ASSIGN(loaded.classes, class_count(*source, spec, found.highest_label));
  loaded.mean = found.mean;
  loaded.std = found.std;
  loaded.fingerprint = found.fingerprint;
  loaded.whole_count = source->count();
  loaded.shard_index = shard.index;
  loaded.shard_count = shard.count;
  const auto mine = shard_samples(*source, shard, spec.shard_by == "label");
  if (mine.empty()) {
    return refuse(source->path() + ": shard " + spec.shard + " is empty, the file has only " +
                  std::to_string(source->count()) + " samples");
  }
  loaded.train = copy_samples(*source, mine, loaded.mean, loaded.std);
  KITH_ASSIGN(loaded.test, load_test(spec, *source, loaded));
  return loaded;
}

}  // namespace kith::compute
