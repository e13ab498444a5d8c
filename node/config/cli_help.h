// The command lines of kith and kithd as data, read out of the very objects that parse them. Shell
// completion and the man pages are made from it, so they cannot say anything else than --help does.
// Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace kith::node {

struct OptionHelp {
  std::vector<std::string> names;  // "-o", "--output"; a positional: its name alone
  std::string value;               // "FILE"; empty: a switch
  std::string help;
  std::vector<std::string> choices;
  bool positional = false;
};
struct CommandHelp {
  std::string name, help;
  std::vector<OptionHelp> options;
  std::vector<CommandHelp> commands;
};
CommandHelp command_help(const CLI::App& app);

// Scripts that a shell sources, for both programs at once.
std::string bash_completion(const CommandHelp& kith, const CommandHelp& kithd);
std::string zsh_completion(const CommandHelp& kith, const CommandHelp& kithd);

// Pages in the man macros: kith(1), kithd(8), kith.toml(5).
std::string kith_page(const CommandHelp& kith);
std::string kithd_page(const CommandHelp& kithd);
std::string configuration_page();

}  // namespace kith::node
