#include "node/store/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>

namespace kith::node {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kRankMax = 16;

struct Dtype {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr Dtype kDtypes[] = {{"F32", 4}, {"I64", 8},  {"U64", 8}, {"U8", 1},  {"F64", 8},
                             {"F16", 2}, {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"I16", 2},
                             {"U16", 2}, {"I8", 1},   {"BOOL", 1}};

// Nullopt when the product does not fit.
std::optional<std::uint64_t> checked_bytes(const TensorEntry& entry) {
  std::uint64_t bytes = dtype_bytes(entry.dtype);
  for (const std::uint64_t extent : entry.shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  return bytes;
}

tl::unexpected<Error> corrupt(const std::string& what) { return fail(ErrorCode::kCorrupt, what); }
tl::unexpected<Error> unusable(const std::string& what) { return fail(ErrorCode::kUsage, what); }

// Nesting deeper than a header ever needs is refused before the parser builds it.
bool is_shallow(std::string_view json) {
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text && c == '\\')
      ++i;
    else if (c == '"')
      in_text = !in_text;
    else if (!in_text && (c == '{' || c == '[') && ++depth > 4)
      return false;
    else if (!in_text && (c == '}' || c == ']'))
      --depth;
  }
  return true;
}

// A JSON object with the same key twice keeps only one of them in the parser: found here, through
// its callback.
class DuplicateKeys {
 public:
  bool operator()(int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) levels_.emplace_back();
    if (event == Json::parse_event_t::object_end && !levels_.empty()) levels_.pop_back();
    if (event == Json::parse_event_t::key && !levels_.empty()) {
      const auto& name = parsed.get_ref<const std::string&>();
      if (!levels_.back().insert(name).second && first_.empty()) first_ = name;
    }
    return true;
  }
  [[nodiscard]] const std::string& first() const { return first_; }

 private:
  std::vector<std::set<std::string>> levels_;
  std::string first_;
};

Result<Json> parse_json(std::string_view text) {
  if (text.empty() || text.front() != '{') return corrupt("the header does not begin with '{'");
  if (!is_shallow(text)) return corrupt("the header is nested too deeply");
  DuplicateKeys duplicates;
  const Json json = Json::parse(text.begin(), text.end(), std::ref(duplicates), false);
  if (json.is_discarded() || !json.is_object()) return corrupt("the header is not valid JSON");
  if (!duplicates.first().empty())
    return corrupt("the header names '" + duplicates.first() + "' twice");
  return json;
}

Status parse_metadata(const Json& json, SafetensorsHeader& header) {
  if (!json.is_object()) return corrupt("__metadata__ is not an object");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) return corrupt("metadata '" + key + "' is not text");
    header.metadata[key] = value.get<std::string>();
  }
  return {};
}

Result<std::vector<std::uint64_t>> parse_numbers(const Json& json, const std::string& what) {
  if (!json.is_array() || json.size() > kRankMax) return corrupt(what + " is not a short list");
  std::vector<std::uint64_t> numbers;
  for (const Json& item : json) {
    if (!item.is_number_unsigned()) return corrupt(what + " has something other than a count");
    numbers.push_back(item.get<std::uint64_t>());
  }
  return numbers;
}

struct Placed {
  TensorEntry entry;
  std::uint64_t begin = 0, end = 0;
};

Result<Placed> parse_tensor(const std::string& name, const Json& json) {
  const std::string what = "tensor '" + name + "'";
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets"))
    return corrupt(what + " needs dtype, shape and data_offsets, and nothing else");
  if (!json["dtype"].is_string()) return corrupt(what + ": dtype is not text");
  Placed placed;
  placed.entry.name = name;
  placed.entry.dtype = json["dtype"].get<std::string>();
  if (dtype_bytes(placed.entry.dtype) == 0)
    return corrupt(what + ": unknown dtype '" + placed.entry.dtype + "'");
  KITH_ASSIGN(placed.entry.shape, parse_numbers(json["shape"], what + ": shape"));
  KITH_ASSIGN(const auto offsets, parse_numbers(json["data_offsets"], what + ": data_offsets"));
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    return corrupt(what + ": data_offsets are not two rising numbers");
  placed.begin = offsets[0];
  placed.end = offsets[1];
  const auto bytes = checked_bytes(placed.entry);
  if (!bytes || *bytes != placed.end - placed.begin)
    return corrupt(what + ": its shape needs another number of bytes than data_offsets give");
  return placed;
}

Status place(std::vector<Placed> tensors, std::uint64_t data_bytes, SafetensorsHeader& header) {
  std::ranges::stable_sort(tensors, [](const Placed& a, const Placed& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (Placed& tensor : tensors) {
    if (tensor.begin != at)
      return corrupt("tensor '" + tensor.entry.name + "' begins at byte " +
                     std::to_string(tensor.begin) + " and not at " + std::to_string(at));
    at = tensor.end;
    header.tensors.push_back(std::move(tensor.entry));
    header.offsets.push_back(tensor.begin);
  }
  if (at != data_bytes)
    return corrupt("the header describes " + std::to_string(at) +
                   " bytes of data and the file has " + std::to_string(data_bytes));
  header.data_bytes = at;
  return {};
}

}  // namespace

std::uint64_t dtype_bytes(std::string_view dtype) {
  const auto found = std::ranges::find(kDtypes, dtype, &Dtype::name);
  return found == std::end(kDtypes) ? 0 : found->bytes;
}

std::uint64_t TensorEntry::byte_count() const {
  return std::accumulate(shape.begin(), shape.end(), dtype_bytes(dtype), std::multiplies<>());
}

Result<std::string> format_header(const std::vector<TensorEntry>& tensors,
                                  const std::map<std::string, std::string>& metadata) {
  Json json = Json::object();
  if (!metadata.empty()) json["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (const TensorEntry& tensor : tensors) {
    if (tensor.name.empty() || json.contains(tensor.name))
      return unusable("tensor name '" + tensor.name + "' is empty or there twice");
    if (dtype_bytes(tensor.dtype) == 0) return unusable("unknown dtype '" + tensor.dtype + "'");
    const auto bytes = checked_bytes(tensor);
    std::uint64_t end = 0;
    if (!bytes || __builtin_add_overflow(at, *bytes, &end))
      return unusable("tensor '" + tensor.name + "' is too large");
    json[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  try {
    std::string text = json.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
  } catch (const Json::exception&) {
    return unusable("a tensor name or metadata text is not valid UTF-8");
  }
}

Result<SafetensorsHeader> parse_header(std::string_view json, std::uint64_t data_bytes) {
  KITH_ASSIGN(const Json root, parse_json(json));
  SafetensorsHeader header;
  std::vector<Placed> placed;
  for (const auto& [name, value] : root.items()) {
    if (name == "__metadata__") {
      KITH_TRY(parse_metadata(value, header));
      continue;
    }
    KITH_ASSIGN(Placed tensor, parse_tensor(name, value));
    placed.push_back(std::move(tensor));
  }
  KITH_TRY(place(std::move(placed), data_bytes, header));
  return header;
}

}  // namespace kith::node
