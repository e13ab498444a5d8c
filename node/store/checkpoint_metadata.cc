#include "node/store/checkpoint_metadata.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

namespace kith::node {
namespace {

using Json = nlohmann::json;

template <typename T>
bool parse_all(const std::string& text, T& value) {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

bool is_integer(const compute::TensorInfo& tensor) {
  return tensor.kind == compute::TensorKind::kIntegerBuffer;
}

TensorEntry entry_of(const compute::TensorInfo& tensor) {
  return {
      tensor.name, is_integer(tensor) ? "I64" : "F32", {tensor.shape.begin(), tensor.shape.end()}};
}

using Counts = std::map<std::string, std::uint64_t>;

std::string counts_text(const Counts& counts) { return Json(counts).dump(); }

Result<Counts> parse_counts(const std::string& key, const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return fail(ErrorCode::kCorrupt, "metadata '" + key + "' is not JSON");
  Counts counts;
  for (const auto& [id, count] : json.items()) {
    if (!NodeId::from_hex(id) || !count.is_number_unsigned())
      return fail(ErrorCode::kCorrupt, "metadata '" + key + "' has a wrong entry");
    counts[id] = count.get<std::uint64_t>();
  }
  return counts;
}

// Not there before a later version: none.
Result<Counts> parse_later_counts(const Metadata& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? Counts{} : parse_counts(key, found->second);
}

}  // namespace

void MetadataReader::fault(const std::string& key, const std::string& what) {
  if (status_) status_ = fail(ErrorCode::kCorrupt, "metadata '" + key + "' " + what);
}

std::string MetadataReader::text(const std::string& key) {
  const auto found = metadata_.find(key);
  if (found != metadata_.end()) return found->second;
  fault(key, "is missing");
  return "";
}

std::uint64_t MetadataReader::count(const std::string& key) {
  std::uint64_t value = 0;
  if (!parse_all(text(key), value)) fault(key, "is not a count");
  return value;
}

std::uint64_t MetadataReader::count_or_zero(const std::string& key) {
  return metadata_.contains(key) ? count(key) : 0;
}

double MetadataReader::number(const std::string& key) {
  double value = 0;
  if (!parse_all(text(key), value)) fault(key, "is not a number");
  return value;
}

Hash256 MetadataReader::hash(const std::string& key) {
  Hash256 hash;
  const auto bytes = from_hex(text(key));
  if (bytes && bytes->size() == hash.bytes.size())
    std::memcpy(hash.bytes.data(), bytes->data(), bytes->size());
  else
    fault(key, "is not 64 hexadecimal characters");
  return hash;
}

std::string metadata_number(double value) {
  if (std::isnan(value)) return "nan";
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end.ptr};
}

Metadata checkpoint_metadata(const CheckpointFacts& facts, const compute::TrainerImage& image) {
  return {{"format", kCheckpointFormat},
          {"version", KITH_VERSION},
          {"run_id", facts.run_id},
          {"cluster", facts.cluster},
          {"schema_hash", facts.schema_hash.hex()},
          {"node", facts.node.hex()},
          {"incarnation", std::to_string(facts.incarnation)},
          {"progress", std::to_string(facts.cluster_progress)},
          {"others_samples", counts_text(facts.others_samples)},
          {"others_steps", counts_text(facts.others_steps)},
          {"vouched_samples", counts_text(facts.vouched_samples)},
          {"vouched_steps", counts_text(facts.vouched_steps)},
          {"folded_samples", std::to_string(facts.folded.count.samples)},
          {"folded_steps", std::to_string(facts.folded.count.steps)},
          {"folded_data", std::to_string(facts.folded.data)},
          {"folded_below_max", std::to_string(facts.folded.below_max)},
          {"epoch", metadata_number(facts.epoch)},
          {"model", facts.model_json},
          {"data_mean", metadata_number(facts.data_mean)},
          {"data_std", metadata_number(facts.data_std)},
          {"classes", std::to_string(facts.classes)},
          {"has_trained", facts.has_trained ? "1" : "0"},
          {"depth_ahead", metadata_number(facts.depth_ahead)},
          {"step", std::to_string(image.step)},
          {"samples", std::to_string(image.samples)},
          {"cursor_pass", std::to_string(image.cursor.pass)},
          {"cursor_offset", std::to_string(image.cursor.offset)},
          {"seed", std::to_string(image.seed)},
          {"lr_scale", metadata_number(image.lr_scale)},
          {"loss", metadata_number(image.loss)}};
}

Status read_checkpoint_metadata(const Metadata& metadata, CheckpointFacts& facts,
                                compute::TrainerImage& image) {
  MetadataReader read(metadata);
  if (read.text("format") != kCheckpointFormat)
    return fail(ErrorCode::kCorrupt, "is not a checkpoint of this version of kith");
  facts.run_id = read.text("run_id");
  facts.cluster = read.text("cluster");
  facts.schema_hash = read.hash("schema_hash");
  facts.node.bytes = read.hash("node").bytes;
  facts.incarnation = read.count("incarnation");
  facts.cluster_progress = read.count("progress");
  facts.folded = {{read.count_or_zero("folded_samples"), read.count_or_zero("folded_steps")},
                  read.count_or_zero("folded_data"),
                  read.count_or_zero("folded_below_max")};
  facts.epoch = read.number("epoch");
  facts.model_json = read.text("model");
  facts.data_mean = read.number("data_mean");
  facts.data_std = read.number("data_std");
  facts.classes = read.count("classes");
  facts.has_trained = read.count("has_trained") != 0;
  facts.depth_ahead = read.number("depth_ahead");
  image.step = read.count("step");
  image.samples = read.count("samples");
  image.cursor = {read.count("cursor_pass"), read.count("cursor_offset")};
  image.seed = read.count("seed");
  image.lr_scale = read.number("lr_scale");
  image.loss = read.number("loss");
  const std::string others_samples = read.text("others_samples");
  const std::string others_steps = read.text("others_steps");
  KITH_TRY(read.status());
  KITH_ASSIGN(facts.others_samples, parse_counts("others_samples", others_samples));
  KITH_ASSIGN(facts.others_steps, parse_counts("others_steps", others_steps));
  KITH_ASSIGN(facts.vouched_samples, parse_later_counts(metadata, "vouched_samples"));
  KITH_ASSIGN(facts.vouched_steps, parse_later_counts(metadata, "vouched_steps"));
  return {};
}

Metadata final_metadata(const FinalFacts& facts) {
  return {{"format", kFinalFormat},
          {"run_id", facts.run_id},
          {"progress", std::to_string(facts.progress)},
          {"epoch", metadata_number(facts.epoch)},
          {"model", facts.model_json},
          {"data_mean", metadata_number(facts.data_mean)},
          {"data_std", metadata_number(facts.data_std)},
          {"classes", std::to_string(facts.classes)},
          {"accuracy", metadata_number(facts.accuracy)},
          {"version", facts.version}};
}

Result<FinalFacts> read_final_metadata(const Metadata& metadata) {
  MetadataReader read(metadata);
  if (read.text("format") != kFinalFormat)
    return fail(ErrorCode::kCorrupt, "is not a final model of this version of kith");
  FinalFacts facts;
  facts.run_id = read.text("run_id");
  facts.progress = read.count("progress");
  facts.epoch = read.number("epoch");
  facts.model_json = read.text("model");
  facts.data_mean = read.number("data_mean");
  facts.data_std = read.number("data_std");
  facts.classes = read.count("classes");
  facts.accuracy = read.number("accuracy");
  facts.version = read.text("version");
  KITH_TRY(read.status());
  return facts;
}

std::vector<TensorEntry> model_entries(const compute::ModelSchema& schema) {
  std::vector<TensorEntry> entries;
  for (const auto& tensor : schema.tensors) entries.push_back(entry_of(tensor));
  return entries;
}

Status match_schema(const SafetensorsFile& file, const compute::ModelSchema& schema) {
  for (const auto& tensor : schema.tensors) {
    const TensorEntry wanted = entry_of(tensor);
    const TensorEntry* entry = file.find(tensor.name);
    if (entry == nullptr) return fail(ErrorCode::kCorrupt, "has no tensor '" + tensor.name + "'");
    if (entry->dtype != wanted.dtype || entry->shape != wanted.shape)
      return fail(ErrorCode::kCorrupt, "tensor '" + tensor.name + "' has another shape or type");
  }
  return {};
}

Result<std::vector<float>> read_values(const SafetensorsFile& file,
                                       const compute::ModelSchema& schema) {
  std::vector<float> values(schema.value_count);
  for (const auto& tensor : schema.tensors) {
    if (is_integer(tensor)) continue;
    KITH_ASSIGN(const auto bytes, file.bytes(tensor.name));
    std::memcpy(values.data() + tensor.offset, bytes.data(), bytes.size());
  }
  for (const float v : values)
    if (!std::isfinite(v)) return fail(ErrorCode::kNonFinite, "holds NaN or infinity");
  return values;
}

Result<std::vector<std::int64_t>> read_integers(const SafetensorsFile& file,
                                                const compute::ModelSchema& schema) {
  std::vector<std::int64_t> values(schema.integer_count);
  for (const auto& tensor : schema.tensors) {
    if (!is_integer(tensor)) continue;
    KITH_ASSIGN(const auto bytes, file.bytes(tensor.name));
    std::memcpy(values.data() + tensor.offset, bytes.data(), bytes.size());
  }
  return values;
}

Status append_values(SafetensorsWriter& writer, compute::Replica& replica) {
  std::vector<float> buffer;
  for (FragmentIndex f = 0; f < replica.fragment_count(); ++f) {
    buffer.resize(replica.range(f).count);
    replica.read(f, buffer);
    if (!std::ranges::all_of(buffer, [](float v) { return std::isfinite(v); }))
      return fail(ErrorCode::kNonFinite, "the model holds NaN or infinity: not written");
    KITH_TRY(writer.append(std::as_bytes(std::span(buffer))));
  }
  return {};
}

}  // namespace kith::node
