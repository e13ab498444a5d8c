// The one table of configuration keys: name, where the value lives, range, unit and help. Reading
// the file, the environment and flags, `config show`, `--help` and every error message are made
// from it, so a key is added in one place (config_keys.cc). Immutable; any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "node/config/config.h"

namespace kith::node {

// Where a key's value lives in a Config; the pointer's type is the key's type.
using KeySlot = std::variant<bool*, std::uint32_t*, std::uint64_t*, std::optional<std::uint64_t>*,
                             std::optional<std::int64_t>*, double*, std::optional<double>*,
                             std::string*, std::optional<std::string>*, std::vector<std::int64_t>*,
                             std::vector<std::string>*, Duration*, Preset*>;

// What a text must look like beyond being text.
enum class KeyForm {
  kPlain,
  kName,       // no blanks, no '/', at most 64 bytes
  kPath,       // relative paths in a file are relative to that file's folder
  kSeeds,      // host:port each; port 7400 when left out
  kListen,     // host:port, port 0 = any
  kAdvertise,  // empty, host or host:port
  kLag,        // "10%" or a number of steps
  kShard,      // auto | all | k/n
  kDevice,     // auto | cpu | cuda:N
};

struct KeyRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_excluded = false;
  bool high_excluded = false;
};

struct KeyInfo {
  std::string_view name;  // "train.momentum"
  KeySlot (*slot)(Config&);
  std::string_view help;  // one line, lower case, without a full stop
  KeyRange range{};       // numbers, and each number of a list; durations in seconds
  std::string_view unit = "";
  std::string_view choices = "";  // "sgd|adam|adamw": nothing else is accepted
  KeyForm form = KeyForm::kPlain;
};

std::span<const KeyInfo> config_keys();
const KeyInfo* find_key(std::string_view name);

// "KITH_TRAIN_MOMENTUM".
std::string environment_name(std::string_view key);
// What a value of this key must be: "a number from 0 to 1 (excluded)", "one of sgd | adam | adamw".
std::string expected_of(const KeyInfo& key);
// The value as TOML, "" for an optional one that is not set.
std::string value_text(const KeyInfo& key, const Config& config);
// The known key meant by `unknown`: the same name in another table, a usual synonym, or the closest
// spelling. Empty when nothing is near.
std::string nearest_key(std::string_view unknown);
// The table of all keys with default, range and help, for --help and the README.
std::string describe_keys();

}  // namespace kith::node
