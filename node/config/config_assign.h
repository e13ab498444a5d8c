// Putting one value into a Config: type, range and form are judged here, and the words of every
// refusal are made here. Pure apart from the Config; any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "node/config/config.h"
#include "node/config/config_keys.h"
#include "node/config/config_value.h"

namespace kith::node {

// Where a value came from.
struct ValueSource {
  std::string where;     // for errors: "run.toml:12", "command line", "KITH_TRAIN_MOMENTUM"
  std::string origin;    // for Config::origin
  std::string text;      // environment and flags: the text as given; the value is its TOML reading
  bool textual = false;  // true: text keys take `text`, lists may be written with commas
  std::string folder;    // of the file, for relative paths; empty: the current one
};

// kUsage: "<where>: <key>: expected <what>, got <value>".
Status assign(Config& config, const KeyInfo& key, const ConfigValue& value,
              const ValueSource& source);

// The preset of this name; nullopt for another one.
std::optional<Preset> find_preset(std::string_view name);

}  // namespace kith::node
