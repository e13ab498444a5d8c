#include "node/config/daemon_flags.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstring>

#include "base/hash.h"
#include "node/config/config_check.h"
#include "node/config/config_keys.h"
#include "node/config/config_value.h"
#include "node/config/version.h"

extern char** environ;

namespace kith::node {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  kithd -c run.toml --name a --listen 127.0.0.1:7400 --data-dir run/a\n"
    "  kithd -c run.toml --name b --listen 127.0.0.1:7410 --http 127.0.0.1:7490 --data-dir run/b "
    "--join 127.0.0.1:7400\n"
    "  kithd -c run.toml --set train.learning_rate=0.01 --check\n"
    "  kithd -c run.toml --dry-run\n"
    "\n"
    "Every key can be set in the file, as KITH_<TABLE>_<KEY> in the environment, or with --set;\n"
    "flags win over the environment, the environment over the file.\n"
    "Exit codes: 0 done, 1 error, 2 usage or configuration, 4 no seed reached, 5 incompatible "
    "run,\n"
    "6 address in use, 7 data directory in use, 8 data refused, 130 ended at once by a second "
    "SIGTERM "
    "or SIGINT.\n";

struct Shortcut {
  const char* flag;
  const char* key;
  const char* value;
};
constexpr Shortcut kShortcuts[] = {
    {"--name", "node.name", "NAME"},        {"--listen", "node.listen", "HOST:PORT"},
    {"--http", "node.http", "HOST:PORT"},   {"--data-dir", "node.data_dir", "DIR"},
    {"--join", "cluster.join", "ADDR,..."}, {"--log-format", "log.format", "FORMAT"},
    {"--log-level", "log.level", "LEVEL"},
};

// TOML writes "train.momentum=0.9" as three parts; the key ends at the first '='.
Result<Flag> split_setting(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return fail(ErrorCode::kUsage,
                "--set " + in_quotes(text) +
                    ": expected table.key=value, such as --set train.momentum=0.9");
  return Flag{std::string(trimmed(text.substr(0, equals))), text.substr(equals + 1)};
}

class FlagParser {
 public:
  FlagParser() : app_("kithd: trains on this machine's data and averages with random neighbours.") {
    app_.name("kithd");
    app_.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    app_.set_help_flag();
    app_.add_flag("-h,--help", help_, "this text");
    app_.add_flag("--version", version_, "version, commit and what was built in");
    app_.add_option("-c,--config", parsed_.file, "configuration (TOML), the same for all nodes")
        ->type_name("FILE");
    for (const Shortcut& s : kShortcuts) add_shortcut(s);
    app_.add_option_function<std::vector<std::string>>(
            "--set", [this](const std::vector<std::string>& all) { settings_ = all; },
            "one key of the configuration; may be repeated")
        ->type_name("TABLE.KEY=VALUE")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->expected(1)
        ->take_all();
    app_.add_flag("--standalone", parsed_.standalone, "no network, seeds ignored");
    app_.add_flag("--bootstrap", parsed_.bootstrap, "start alone if no seed answers");
    app_.add_flag("--insecure", parsed_.insecure,
                  "allow other than loopback addresses without a key");
    app_.add_flag("--check", parsed_.check, "say whether the configuration is valid, and exit");
    app_.add_flag(
        "--dry-run", parsed_.dry_run,
        "say what a run takes (size, memory, bytes of an averaging, share of a link), and exit");
    app_.add_option("--join-timeout", join_timeout_,
                    "give up (exit 4) when no seed answered in time")
        ->type_name("DURATION");
  }

  [[nodiscard]] CommandHelp help() const { return command_help(app_); }

  Result<ParsedFlags> parse(int argc, const char* const* argv) {
    KITH_TRY(parse_arguments(argc, argv));
    if (version_) parsed_.answer = version_line("kithd") + "\n";
    if (help_) parsed_.answer = help_text();
    if (!parsed_.answer.empty()) return parsed_;
    KITH_TRY(read_timeout());
    KITH_TRY(read_settings());
    return parsed_;
  }

 private:
  void add_shortcut(const Shortcut& s) {
    const KeyInfo* key = find_key(s.key);
    app_.add_option(s.flag, shortcuts_[s.key], std::string(key->help) + " (" + s.key + ")")
        ->type_name(s.value);
  }

  Status parse_arguments(int argc, const char* const* argv) {
    try {
      app_.parse(argc, argv);
      return {};
    } catch (const CLI::ParseError& e) {
      return fail(ErrorCode::kUsage, std::string(e.what()) + " (see kithd --help)");
    }
  }

  Status read_timeout() {
    if (join_timeout_.empty()) return {};
    const auto value = parse_duration(join_timeout_);
    if (!value)
      return fail(ErrorCode::kUsage, "--join-timeout: expected a duration such as 30s or 2m, got " +
                                         in_quotes(join_timeout_));
    parsed_.join_timeout = *value;
    return {};
  }

  // --set and the shortcuts set the same keys: what was given last wins, so both are put into the
  // order of the arguments.
  Status read_settings() {
    std::map<std::string, std::size_t> next;
    std::size_t next_setting = 0;
    for (const CLI::Option* option : app_.parse_order()) {
      if (option->get_name() == "--set") {
        KITH_ASSIGN(Flag flag, split_setting(settings_.at(next_setting++)));
        parsed_.flags.push_back(std::move(flag));
        continue;
      }
      for (const Shortcut& s : kShortcuts)
        if (option->get_name() == s.flag)
          parsed_.flags.push_back({s.key, option->results().at(next[s.key]++)});
    }
    return {};
  }

  std::string help_text() const {
    return app_.help() + "\nKeys of the configuration and their defaults:\n" + describe_keys() +
           "\n" + kExamples;
  }

  CLI::App app_;
  ParsedFlags parsed_;
  bool help_ = false, version_ = false;
  std::string join_timeout_;
  std::map<std::string, std::string> shortcuts_;
  std::vector<std::string> settings_;
};

}  // namespace

Result<ParsedFlags> parse_kithd_flags(int argc, const char* const* argv) {
  return FlagParser().parse(argc, argv);
}

CommandHelp kithd_help() { return FlagParser().help(); }

Result<Config> config_from_flags(const ParsedFlags& flags,
                                 const std::map<std::string, std::string>& environment) {
  KITH_ASSIGN(Config config, load_config(flags.file, flags.flags, environment));
  config.standalone = flags.standalone;
  config.bootstrap = flags.bootstrap;
  config.insecure = flags.insecure;
  config.check_only = flags.check;
  config.join_timeout = flags.join_timeout;
  return config;
}

std::map<std::string, std::string> kith_environment() {
  std::map<std::string, std::string> found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (text.starts_with("KITH_") && equals != std::string::npos)
      found[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return found;
}

Result<std::string> check_report(const Config& config) {
  KITH_TRY(check_files(config));
  Hasher hasher;
  for (const KeyInfo& key : config_keys()) hasher.add(key.name).add(value_text(key, config));
  const std::string what = config.file.empty() ? "the configuration" : config.file;
  std::string text = what + " is valid (digest " + hasher.finish().hex().substr(0, 16) + ")";
  for (const std::string& note : config.notes) text += "\nnote: " + note;
  return text;
}

}  // namespace kith::node
