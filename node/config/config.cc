#include "node/config/config.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "node/config/config_assign.h"
#include "node/config/config_check.h"
#include "node/config/config_toml.h"
#include "node/text/text.h"

namespace kith::node {
namespace {

constexpr std::size_t kFileBytesMax = 1U << 20;

// -- the file --

tl::unexpected<Error> cannot_read(const std::string& file, const std::string& why) {
  return fail(ErrorCode::kUsage, "cannot read the configuration " + file + ": " + why);
}

Result<std::string> read_text(const std::string& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return cannot_read(file, std::strerror(errno));
  struct stat info {};
  std::string text;
  std::string why;
  if (::fstat(fd, &info) != 0 || S_ISDIR(info.st_mode)) why = "it is not a file";
  std::array<char, 65536> buffer{};
  while (why.empty()) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0) why = std::strerror(errno);
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > kFileBytesMax) why = "it is longer than 1 MiB";
  }
  ::close(fd);
  if (!why.empty()) return cannot_read(file, why);
  return text;
}

Result<toml::table> parse_file(const std::string& file) {
  KITH_ASSIGN(const std::string text, read_text(file));
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& e) {
    return fail(ErrorCode::kUsage, file + ":" + std::to_string(e.source().begin.line) +
                                       ": not valid TOML: " + std::string(e.description()));
  } catch (const std::exception& e) {
    return fail(ErrorCode::kUsage, file + ": not valid TOML: " + e.what());
  }
}

struct FileEntry {
  std::string key;
  ConfigValue value;
  std::uint32_t line = 0;
};

void collect(const toml::table& table, const std::string& prefix, std::vector<FileEntry>& out) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    const toml::table* inner = prefix.empty() ? node.as_table() : nullptr;
    if (inner != nullptr && !inner->empty())
      collect(*inner, key + ".", out);
    else
      out.push_back({key, to_config_value(node), name.source().begin.line});
  }
}

bool is_table_name(std::string_view name) {
  const std::string prefix = std::string(name) + ".";
  return std::ranges::any_of(config_keys(),
                             [&](const KeyInfo& k) { return k.name.starts_with(prefix); });
}

std::string known_tables() {
  std::string text;
  std::string last;
  for (const KeyInfo& key : config_keys()) {
    const std::string table(key.name.substr(0, key.name.find('.')));
    if (table == last) continue;
    text += (text.empty() ? "" : ", ") + table;
    last = table;
  }
  return text;
}

tl::unexpected<Error> unknown_key(const std::string& where, const std::string& key) {
  const std::string near = nearest_key(key);
  const std::string table = key.substr(0, key.find('.'));
  std::string hint;
  if (!near.empty())
    hint = "; did you mean " + in_quotes(near) + "?";
  else if (is_table_name(table))
    hint = "; `kith config keys` lists all keys";
  else
    hint = "; known tables: " + known_tables();
  return fail(ErrorCode::kUsage, where + ": unknown key " + in_quotes(key) + hint);
}

Status apply_entry(Config& config, const FileEntry& entry, const std::string& folder) {
  const std::string where = config.file + ":" + std::to_string(entry.line);
  const bool is_table = std::holds_alternative<ConfigValue::Other>(entry.value.value);
  if (is_table && is_table_name(entry.key)) return {};  // [train] without keys
  const KeyInfo* key = find_key(entry.key);
  if (key == nullptr && is_table_name(entry.key))
    return fail(ErrorCode::kUsage, where + ": " + entry.key + ": expected a table [" + entry.key +
                                       "], got " + describe(entry.value));
  if (key == nullptr) return unknown_key(where, entry.key);
  return assign(config, *key, entry.value,
                {.where = where, .origin = "file " + where, .text = {}, .folder = folder});
}

Status apply_file(Config& config) {
  KITH_ASSIGN(const toml::table table, parse_file(config.file));
  std::vector<FileEntry> entries;
  collect(table, "", entries);
  std::ranges::stable_sort(entries, {}, &FileEntry::line);  // the first wrong line is reported
  const std::string folder = std::filesystem::path(config.file).parent_path().string();
  for (const FileEntry& entry : entries) KITH_TRY(apply_entry(config, entry, folder));
  return {};
}

// -- environment and flags --

Status apply_text(Config& config, const KeyInfo& key, const std::string& text,
                  const std::string& where, const std::string& origin) {
  const auto parsed = parse_toml_value(text);
  return assign(config, key, parsed ? *parsed : ConfigValue{text},
                {.where = where, .origin = origin, .text = text, .textual = true, .folder = {}});
}

// KITH_TRAIN_MOMENTUN looks like a key and is none; KITH_AT and KITH_TORCH_ROOT are others'.
std::optional<std::string> looks_like_key(const std::string& name) {
  if (!name.starts_with("KITH_")) return std::nullopt;
  std::string rest = name.substr(5);
  std::ranges::transform(rest, rest.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  const auto bar = rest.find('_');
  if (bar == std::string::npos || !is_table_name(rest.substr(0, bar))) return std::nullopt;
  return rest.replace(bar, 1, ".");
}

Status apply_environment(Config& config, const std::map<std::string, std::string>& environment) {
  for (const KeyInfo& key : config_keys()) {
    const std::string name = environment_name(key.name);
    const auto found = environment.find(name);
    if (found == environment.end() || found->second.empty()) continue;
    KITH_TRY(apply_text(config, key, found->second, name, "environment " + name));
  }
  for (const auto& [name, value] : environment) {
    const auto key = looks_like_key(name);
    if (!key || find_key(*key) != nullptr || value.empty()) continue;
    const std::string near = nearest_key(*key);
    return fail(ErrorCode::kUsage,
                "environment variable " + name + ": unknown key " + in_quotes(*key) +
                    (near.empty() ? "" : "; did you mean " + environment_name(near) + "?"));
  }
  return {};
}

Status apply_flags(Config& config, const std::vector<Flag>& flags) {
  for (const Flag& flag : flags) {
    const KeyInfo* key = find_key(flag.key);
    if (key == nullptr) return unknown_key("command line", flag.key);
    KITH_TRY(apply_text(config, *key, flag.value, "command line", "flag"));
  }
  return {};
}

// -- defaults that depend on the machine or on other keys --

bool is_default(const Config& config, std::string_view key) {
  return config.origin.at(std::string(key)) == "default";
}

void fill_defaults(Config& config) {
  if (is_default(config, "node.name")) config.node.name = host_name();
  if (is_default(config, "node.data_dir")) config.node.data_dir = "kith-data/" + config.node.name;
  if (is_default(config, "exchange.chunk_bytes"))
    config.exchange.chunk_bytes =
        std::min(config.exchange.chunk_bytes, config.exchange.fragment_bytes);
}

}  // namespace

Result<Config> load_config(const std::string& file, const std::vector<Flag>& flags,
                           const std::map<std::string, std::string>& environment) {
  Config config;
  config.file = file;
  config.cluster.preset = *find_preset("local");
  for (const KeyInfo& key : config_keys()) config.origin[std::string(key.name)] = "default";
  if (!file.empty()) KITH_TRY(apply_file(config));
  KITH_TRY(apply_environment(config, environment));
  KITH_TRY(apply_flags(config, flags));
  fill_defaults(config);
  KITH_TRY(check_together(config));
  config.notes = find_unused_keys(config);
  return config;
}

}  // namespace kith::node
