// Man pages out of the command lines and the table of configuration keys.
#include <algorithm>
#include <cctype>

#include "node/config/cli_help.h"
#include "node/config/config_keys.h"
#include "node/config/version.h"

namespace kith::node {
namespace {

// Text for troff: nothing in it is a request, and a hyphen stays one.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n'))
      out += std::string("\\&") + c;
    else
      out += c;
  }
  return out;
}

std::string title(const std::string& name, int section, const std::string& what) {
  std::string upper = name;
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return ".TH " + upper + " " + std::to_string(section) + " \"\" \"kith " + version() +
         "\"\n.SH NAME\n" + name + " \\- " + escaped(what) + "\n";
}

std::string option_item(const OptionHelp& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += (names.empty() ? "" : ", ") + (option.positional ? "\\fI" + escaped(name) + "\\fR"
                                                              : "\\fB" + escaped(name) + "\\fR");
  if (!option.value.empty() && !option.positional)
    names += " \\fI" + escaped(option.value) + "\\fR";
  std::string help = escaped(option.help);
  if (!option.choices.empty()) {
    help += help.empty() ? "" : " ";
    for (const std::string& choice : option.choices)
      help += (choice == option.choices.front() ? "(" : "|") + escaped(choice);
    help += ")";
  }
  return ".TP\n" + names + "\n" + (help.empty() ? "\\&" : help) + "\n";
}

std::string options_of(const CommandHelp& command) {
  std::string text;
  for (const OptionHelp& option : command.options) text += option_item(option);
  return text;
}

std::string commands_of(const CommandHelp& command, const std::string& path) {
  std::string text;
  for (const CommandHelp& sub : command.commands) {
    const std::string name = path + sub.name;
    if (sub.commands.empty()) {
      std::string line = name;
      for (const OptionHelp& option : sub.options)
        if (option.positional) line += " \\fI" + escaped(option.names.front()) + "\\fB";
      text += ".SS \"" + line + "\"\n" + escaped(sub.help) + "\n";
      CommandHelp without = sub;
      std::erase_if(without.options,
                    [](const OptionHelp& o) { return o.names.back() == "--help"; });
      text += options_of(without);
    }
    text += commands_of(sub, name + " ");
  }
  return text;
}

std::string item(const std::string& name, const std::string& text) {
  return ".TP\n" + name + "\n" + escaped(text) + "\n";
}

std::string exit_codes() {
  return ".SH EXIT STATUS\n" + item("0", "done") +
         item("1",
              "an error, said on standard error; of kithd also: the final model could not be "
              "written, or is this node's own and may differ from the others'") +
         item("2", "wrong usage or configuration") + item("3", "no daemon reached") +
         item("4", "no seed reached within --join-timeout") +
         item("5", "every seed refused this node: another run, model or release") +
         item("6", "an address is in use") +
         item("7", "the data directory or the identity is in use") +
         item("8", "the training data were refused") + item("10", "unhealthy, or a check failed");
}

}  // namespace

std::string kith_page(const CommandHelp& kith) {
  return title("kith", 1, "sees and steers a decentralised training run") +
         ".SH SYNOPSIS\n.B kith\n.RI [ options ] \" command\" \" \" [ arguments ]\n.SH "
         "DESCRIPTION\n" +
         escaped(
             "kith asks a running kithd over its Unix socket (--at DATA_DIR) or its HTTP address "
             "(--at HOST:PORT). What changes "
             "something works only over the socket, on the daemon's own machine.") +
         "\n.SH OPTIONS\n" + options_of(kith) + ".SH COMMANDS\n" + commands_of(kith, "") +
         ".SH ENVIRONMENT\n" + item("KITH_AT", "stands for --at; without both, 127.0.0.1:7480") +
         item("NO_COLOR", "no colours, whatever its value") + exit_codes() +
         ".SH SEE ALSO\n.BR kithd (8),\n.BR kith.toml (5)\n";
}

std::string kithd_page(const CommandHelp& kithd) {
  return title("kithd", 8, "trains on this machine's data and averages with random neighbours") +
         ".SH SYNOPSIS\n.B kithd\n.B \\-c\n.I FILE\n.RI [ options ]\n.SH DESCRIPTION\n" +
         escaped(
             "kithd is one node of a training run. It reads kith.toml(5), joins through its seeds, "
             "trains, exchanges with its "
             "neighbours, and writes the final model when the run's length is reached. Its first "
             "line on standard output says "
             "its name, id and addresses; logs go to standard error.") +
         "\n.SH OPTIONS\n" + options_of(kithd) + ".SH SIGNALS\n" +
         item("SIGTERM, SIGINT",
              "leave in order: exchanges end, a checkpoint is written, the others are told; a "
              "second one ends at once") +
         item("SIGHUP",
              "read the configuration again: log.level, checkpoint.every_seconds and "
              "checkpoint.keep are applied, other "
              "keys that differ are named as needing a restart") +
         ".SH FILES\n" +
         item("DATA_DIR/control.sock, DATA_DIR/http", "where kith finds the daemon") +
         item("DATA_DIR/checkpoints", "the newest checkpoints, as safetensors") +
         item("DATA_DIR/model.safetensors", "the final model") + exit_codes() +
         ".SH SEE ALSO\n.BR kith (1),\n.BR kith.toml (5)\n";
}

std::string configuration_page() {
  std::string text = title("kith.toml", 5, "configuration of kithd, the same file for all nodes") +
                     ".SH DESCRIPTION\n" +
                     escaped(
                         "TOML. Every key can also be set in the environment as KITH_<TABLE>_<KEY> "
                         "or with --set table.key=value; "
                         "flags win over the environment, the environment over the file. Relative "
                         "paths in the file are relative "
                         "to its folder. `kithd --check -c FILE` says whether it is valid, `kith "
                         "config show -c FILE` where "
                         "each value comes from.") +
                     "\n";
  std::string table;
  const Config defaults;
  for (const KeyInfo& key : config_keys()) {
    const std::string name(key.name), its_table = name.substr(0, name.find('.'));
    if (its_table != table) text += ".SH \"[" + escaped(its_table) + "]\"\n";
    table = its_table;
    const std::string value = value_text(key, defaults);
    text += ".TP\n\\fB" + escaped(name.substr(name.find('.') + 1)) + "\\fR\n" + escaped(key.help) +
            ".\n" +
            escaped("Takes " + expected_of(key) +
                    (value.empty() ? "; not set" : "; default " + value)) +
            ".\n";
  }
  return text + ".SH SEE ALSO\n.BR kithd (8),\n.BR kith (1)\n";
}

}  // namespace kith::node
