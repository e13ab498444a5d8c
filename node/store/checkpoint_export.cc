#include <nlohmann/json.hpp>

#include "base/fault_point.h"
#include "node/store/checkpoint.h"
#include "node/store/checkpoint_metadata.h"

namespace kith::node {
namespace {

using Json = nlohmann::ordered_json;

bool is_ours(const TensorEntry& tensor) { return tensor.name.starts_with("kith."); }

// What model.safetensors has too; an accuracy only if the file knows one.
Metadata exported_metadata(const Metadata& from) {
  Metadata to{{"format", kFinalFormat}, {"accuracy", "nan"}, {"version", KITH_VERSION}};
  for (const char* key : {"run_id", "progress", "epoch", "model", "data_mean", "data_std",
                          "classes", "accuracy", "version"})
    if (const auto found = from.find(key); found != from.end()) to[key] = found->second;
  return to;
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string text = "[";
  for (const std::uint64_t extent : shape)
    text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

std::string show_json(const SafetensorsFile& file, const std::string& path) {
  Json json;
  json["file"] = path;
  json["content"] = file.verify_content() ? "intact" : "corrupt";
  json["metadata"] = file.metadata();
  json["tensors"] = Json::array();
  for (const TensorEntry& t : file.tensors())
    json["tensors"].push_back(
        {{"name", t.name}, {"dtype", t.dtype}, {"shape", t.shape}, {"bytes", t.byte_count()}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void add_line(std::string& text, std::string name, std::size_t width, const std::string& rest) {
  name.resize(std::max(name.size(), width), ' ');
  text += name + "  " + rest + "\n";
}

std::string show_text(const SafetensorsFile& file, const std::string& path) {
  std::size_t width = sizeof kContentHashKey;
  for (const TensorEntry& t : file.tensors()) width = std::max(width, t.name.size());
  std::string text;
  add_line(text, "file", width, path);
  const auto content = file.verify_content();
  add_line(text, "content", width, content ? "intact" : "corrupt: " + content.error().message);
  for (const auto& [key, value] : file.metadata())
    add_line(text, key, width,
             value == "nan" ? "not known: exported in the middle of a run" : value);
  text += "\n";
  for (const TensorEntry& t : file.tensors())
    add_line(text, t.name, width, t.dtype + " " + shape_text(t.shape));
  return text;
}

}  // namespace

Status export_checkpoint(const std::string& from, const std::string& to) {
  KITH_ASSIGN(const SafetensorsFile file, SafetensorsFile::open(from));
  KITH_TRY(file.verify_content());
  std::vector<TensorEntry> entries;
  for (const TensorEntry& tensor : file.tensors())
    if (!is_ours(tensor)) entries.push_back(tensor);
  KITH_ASSIGN(auto writer,
              SafetensorsWriter::create(to, entries, exported_metadata(file.metadata())));
  for (const TensorEntry& tensor : entries) {
    KITH_ASSIGN(const auto bytes, file.bytes(tensor.name));
    KITH_TRY(writer.append(bytes));
  }
  return writer.commit();
}

Status export_values(const std::string& to, const compute::ModelSchema& schema,
                     std::span<const float> values, const compute::TrainerImage& image,
                     const CheckpointFacts& facts) {
  KITH_ASSIGN(auto writer,
              SafetensorsWriter::create(to, model_entries(schema),
                                        exported_metadata(checkpoint_metadata(facts, image))));
  pass(FaultPoint::kExportOpened);
  KITH_TRY(writer.append(std::as_bytes(values)));
  KITH_TRY(writer.append(std::as_bytes(std::span(image.integers))));
  return writer.commit();
}

Result<std::string> show_checkpoint(const std::string& path, bool json) {
  KITH_ASSIGN(const SafetensorsFile file, SafetensorsFile::open(path));
  return json ? show_json(file, path) : show_text(file, path);
}

}  // namespace kith::node
