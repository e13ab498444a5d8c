#include <algorithm>
#include <nlohmann/json.hpp>

#include "node/config/config.h"
#include "node/config/config_keys.h"
#include "node/config/config_value.h"

namespace kith::node {
namespace {

using Json = nlohmann::ordered_json;

struct JsonValue {
  Json operator()(const Duration* v) const { return duration_text(*v); }
  Json operator()(const Preset* v) const { return v->name; }
  template <typename T>
  Json operator()(const std::optional<T>* v) const {
    return v->has_value() ? (*this)(&**v) : Json(nullptr);
  }
  template <typename T>
  Json operator()(const T* v) const {
    return *v;
  }
};

std::string origin_of(const Config& config, const KeyInfo& key) {
  const auto found = config.origin.find(std::string(key.name));
  return found == config.origin.end() ? "default" : found->second;
}

std::string show_json(const Config& config) {
  Json values = Json::object();
  for (const KeyInfo& key : config_keys()) {
    Json& entry = values[std::string(key.name)];
    entry["value"] = std::visit(JsonValue{}, key.slot(const_cast<Config&>(config)));
    entry["origin"] = origin_of(config, key);
  }
  Json all;
  all["file"] = config.file;
  all["values"] = std::move(values);
  all["notes"] = config.notes;
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text + "  ";
}

}  // namespace

// The cluster key itself never enters a Config, only the path of its file; a key given in place of
// the path is refused while loading without being repeated. So nothing here needs hiding.
std::string show_config(const Config& config, bool json) {
  if (json) return show_json(config);
  std::size_t key_width = 0;
  std::size_t value_width = 0;
  const auto text_of = [&](const KeyInfo& key) {
    const std::string text = value_text(key, config);
    return text.empty() ? std::string("(not set)") : text;
  };
  for (const KeyInfo& key : config_keys()) {
    key_width = std::max(key_width, key.name.size());
    value_width = std::max(value_width, std::min<std::size_t>(40, text_of(key).size()));
  }
  std::string text;
  for (const KeyInfo& key : config_keys())
    text += padded(std::string(key.name), key_width) + padded(text_of(key), value_width) +
            origin_of(config, key) + "\n";
  for (const std::string& note : config.notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace kith::node
