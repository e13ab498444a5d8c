// kithd's command line. Parsing only collects; load_config() judges the values, so that a flag, a
// variable and a line of the file that say the same wrong thing are refused in the same words.
// Thread: any one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "node/config/cli_help.h"
#include "node/config/config.h"

namespace kith::node {

struct ParsedFlags {
  std::string file;         // -c, --config; empty: none
  std::vector<Flag> flags;  // --set and its shortcuts, in the order in which they were given
  bool standalone = false, bootstrap = false, insecure = false, check = false, dry_run = false;
  Duration join_timeout{0};  // 0: for ever
  // --help and --version: print this on stdout and exit 0. Empty otherwise.
  std::string answer;
};

// kUsage names the flag; a flag given twice: the last one counts.
Result<ParsedFlags> parse_kithd_flags(int argc, const char* const* argv);

// The flags as data, for completion and the man page.
CommandHelp kithd_help();

// load_config() with these flags, and the flags that have no key entered into the Config.
Result<Config> config_from_flags(const ParsedFlags& flags,
                                 const std::map<std::string, std::string>& environment);
// The process's environment, KITH_* only.
std::map<std::string, std::string> kith_environment();

// `kithd --check`: also reads what the configuration names (training files, key file), starts
// nothing. One line "run.toml is valid (digest 1a2b...)" plus a line per note, or the error.
Result<std::string> check_report(const Config& config);

}  // namespace kith::node
