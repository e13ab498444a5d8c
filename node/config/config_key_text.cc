// What is said of keys: what a value must be, how one is written, which key was meant, the table
// for people.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "node/config/config_keys.h"
#include "node/config/config_value.h"

namespace kith::node {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

std::string bounds_text(const KeyRange& range) {
  const bool low = range.low > -kInf;
  const bool high = range.high < kInf;
  std::string text;
  if (low && (range.low_excluded || high))
    text += (range.low_excluded ? " above " : " from ") + number_text(range.low);
  else if (low)
    text += " of at least " + number_text(range.low);
  if (high) {
    text += (range.low_excluded ? " up to " : low ? " to " : " up to ") + number_text(range.high);
    if (range.high_excluded) text += " (excluded)";
  }
  return text;
}

struct ExpectedText {
  const KeyInfo& key;
  template <typename T>
  std::string operator()(const T*) const {
    const std::string bounds = bounds_text(key.range);
    if constexpr (std::is_same_v<T, bool>)
      return "true or false";
    else if constexpr (std::is_same_v<T, Duration>)
      return "a duration in quotes such as \"1.5s\", \"200ms\" or \"2m\"";
    else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::optional<double>>)
      return "a number" + bounds;
    else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>)
      return "a list of integers" + bounds + " such as [16, 32]";
    else if constexpr (std::is_same_v<T, std::vector<std::string>>)
      return "a list of texts";
    else if constexpr (std::is_same_v<T, std::string> ||
                       std::is_same_v<T, std::optional<std::string>> || std::is_same_v<T, Preset>)
      return "text in quotes";
    else
      return "an integer" + bounds;
  }
};

struct ValueText {
  std::string operator()(const bool* v) const { return *v ? "true" : "false"; }
  std::string operator()(const double* v) const { return number_text(*v); }
  std::string operator()(const Duration* v) const { return in_quotes(duration_text(*v)); }
  std::string operator()(const Preset* v) const { return in_quotes(v->name); }
  std::string operator()(const std::string* v) const { return in_quotes(*v); }
  std::string operator()(const std::uint32_t* v) const { return std::to_string(*v); }
  std::string operator()(const std::uint64_t* v) const { return std::to_string(*v); }
  std::string operator()(const std::int64_t* v) const { return std::to_string(*v); }
  template <typename T>
  std::string operator()(const std::optional<T>* v) const {
    return v->has_value() ? (*this)(&**v) : "";
  }
  template <typename T>
  std::string operator()(const std::vector<T>* v) const {
    std::string text = "[";
    for (const T& item : *v) text += (text.size() > 1 ? ", " : "") + (*this)(&item);
    return text + "]";
  }
};

// Names that other systems give to the same thing.
struct Synonym {
  std::string_view word, key;
};
constexpr Synonym kSynonyms[] = {
    {"lr", "train.learning_rate"},
    {"lr_rate", "train.learning_rate"},
    {"rate", "train.learning_rate"},
    {"batch", "train.batch_size"},
    {"bs", "train.batch_size"},
    {"wd", "train.weight_decay"},
    {"decay", "train.weight_decay"},
    {"warmup", "train.warmup_steps"},
    {"optim", "train.optimizer"},
    {"optimiser", "train.optimizer"},
    {"seeds", "cluster.join"},
    {"peers", "cluster.join"},
    {"key", "cluster.key_file"},
    {"model", "model.kind"},
    {"type", "model.kind"},
    {"layers", "model.hidden"},
    {"address", "node.listen"},
    {"bind", "node.listen"},
    {"dir", "node.data_dir"},
    {"metrics", "node.http"},
    {"fragment_size", "exchange.fragment_bytes"},
    {"chunk_size", "exchange.chunk_bytes"},
    {"interval", "checkpoint.every_seconds"},
    {"max_steps", "run.steps"},
    {"num_epochs", "run.epochs"},
    {"gpu", "train.device"},
};

std::string_view last_part(std::string_view key) {
  const auto dot = key.rfind('.');
  return dot == std::string_view::npos ? key : key.substr(dot + 1);
}

}  // namespace

std::string environment_name(std::string_view key) {
  std::string name = "KITH_";
  for (const char c : key)
    name += c == '.' ? '_' : (c >= 'a' && c <= 'z') ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

std::string expected_of(const KeyInfo& key) {
  if (!key.choices.empty()) return "one of " + spaced_choices(key.choices);
  switch (key.form) {
    case KeyForm::kSeeds:
      return "host:port addresses, as a list or as text with commas";
    case KeyForm::kListen:
      return "an address host:port or [IPv6]:port";
    case KeyForm::kAdvertise:
      return "host or host:port, or empty";
    case KeyForm::kLag:
      return "a share of the run such as \"10%\", or a number of steps";
    case KeyForm::kShard:
      return "\"auto\", \"all\" or \"k/n\" with 1 <= k <= n";
    case KeyForm::kDevice:
      return "\"auto\", \"cpu\" or \"cuda:N\"";
    case KeyForm::kName:
      return "a name of 1 to 64 bytes without blanks or '/'";
    default:
      break;
  }
  Config scratch;
  return std::visit(ExpectedText{key}, key.slot(scratch));
}

std::string value_text(const KeyInfo& key, const Config& config) {
  // slot() only forms a pointer; nothing is written through it here.
  return std::visit(ValueText{}, key.slot(const_cast<Config&>(config)));
}

std::string nearest_key(std::string_view unknown) {
  const std::string_view word = last_part(unknown);
  for (const KeyInfo& key : config_keys())
    if (last_part(key.name) == word) return std::string(key.name);
  for (const Synonym& s : kSynonyms)
    if (s.word == word || s.word == unknown) return std::string(s.key);
  std::vector<std::string_view> names;
  for (const KeyInfo& key : config_keys()) names.push_back(key.name);
  if (unknown.find('.') != std::string_view::npos) return std::string(nearest(unknown, names));
  std::vector<std::string_view> words;
  for (const KeyInfo& key : config_keys()) words.push_back(last_part(key.name));
  const std::string_view hit = nearest(unknown, words);
  for (const KeyInfo& key : config_keys())
    if (!hit.empty() && last_part(key.name) == hit) return std::string(key.name);
  return "";
}

std::string describe_keys() {
  const Config defaults;
  std::string text;
  for (const KeyInfo& key : config_keys()) {
    const std::string value = value_text(key, defaults);
    std::string line = "  " + std::string(key.name);
    line.resize(std::max<std::size_t>(line.size() + 1, 28), ' ');
    line += value.empty() ? "(not set)" : value;
    line.resize(std::max<std::size_t>(line.size() + 1, 50), ' ');
    line += std::string(key.help);
    if (!key.unit.empty()) line += " [" + std::string(key.unit) + "]";
    if (!key.choices.empty()) line += ": " + spaced_choices(key.choices);
    text += line + "\n";
  }
  return text;
}

}  // namespace kith::node
