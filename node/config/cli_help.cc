#include "node/config/cli_help.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>

#include "node/config/config_keys.h"

namespace kith::node {
namespace {

// CLI11 tells a list of choices only in words: "TEXT:{table,json}".
std::vector<std::string> choices_in(const std::string& type) {
  std::vector<std::string> choices;
  const auto open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return choices;
  std::string word;
  for (const char c : type.substr(open + 1, close - open - 1) + ",") {
    if (c != ',') {
      word += c;
    } else if (!word.empty()) {
      choices.push_back(std::exchange(word, ""));
    }
  }
  return choices;
}

OptionHelp option_help(const CLI::Option& option) {
  OptionHelp help;
  help.positional = option.nonpositional() == false;
  for (const auto& name : option.get_snames()) help.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) help.names.push_back("--" + name);
  if (help.positional) help.names = {option.get_name(true)};
  help.help = option.get_description();
  const std::string type = option.get_type_name();
  help.choices = choices_in(type);
  if (option.get_items_expected_max() == 0) return help;
  help.value = help.choices.empty() ? type : "WORD";  // "HOST:PORT" is a type too
  if (help.value == "TEXT") help.value = "VALUE";
  if (help.value == "FLOAT") help.value = "NUMBER";
  return help;
}

}  // namespace

CommandHelp command_help(const CLI::App& app) {
  CommandHelp help{app.get_name(), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options()) help.options.push_back(option_help(*option));
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    help.commands.push_back(command_help(*command));
  return help;
}

namespace {

using Visitor = std::function<void(const std::string& path, const CommandHelp& command)>;

// Every command with the words that lead to it: "", "checkpoint", "checkpoint export".
void visit(const CommandHelp& command, const std::string& path, const Visitor& visitor) {
  visitor(path, command);
  for (const CommandHelp& sub : command.commands)
    visit(sub, path.empty() ? sub.name : path + " " + sub.name, visitor);
}

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// What a command's words may be: its own options, those of the commands above, its commands.
std::vector<std::string> words_of(const CommandHelp& command, const CommandHelp& root) {
  std::vector<std::string> words;
  for (const CommandHelp& sub : command.commands) words.push_back(sub.name);
  for (const CommandHelp* level : {&command, &root}) {
    for (const OptionHelp& option : level->options)
      if (!option.positional) words.insert(words.end(), option.names.begin(), option.names.end());
    if (&command == &root) break;
  }
  return words;
}

bool is_path(const OptionHelp& option) {
  return option.value == "FILE" || option.value == "DIR" || option.names.back() == "--config" ||
         option.names.back() == "--at" ||
         (option.names.back() == "--output" && option.choices.empty());
}

std::string config_words(const char* after) {
  std::vector<std::string> words;
  for (const KeyInfo& key : config_keys()) words.push_back(std::string(key.name) + after);
  return joined(words, " ");
}

// The lines of a shell's `case` that say what follows an option: "command:option) ...".
std::string value_cases(const std::string& path, const CommandHelp& command,
                        const std::function<std::string(const std::string&)>& words_line,
                        const std::string& files_line) {
  std::string text;
  for (const OptionHelp& option : command.options) {
    if (option.positional || option.value.empty()) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : option.names)
      patterns.push_back(path.empty() ? "*:" + name : "'" + path + "':" + name);
    std::string line;
    if (!option.choices.empty())
      line = words_line(joined(option.choices, " "));
    else if (option.names.back() == "--set")
      line = words_line(config_words("="));
    else if (is_path(option))
      line = files_line;
    else
      line = "return 0";
    text += "    " + joined(patterns, "|") + ") " + line + " ;;\n";
  }
  return text;
}

// Commands before options of the root, so that `checkpoint export -o` is a file.
std::string all_value_cases(const CommandHelp& root,
                            const std::function<std::string(const std::string&)>& words_line,
                            const std::string& files_line) {
  std::string own, inner;
  visit(root, "", [&](const std::string& path, const CommandHelp& command) {
    (path.empty() ? own : inner) += value_cases(path, command, words_line, files_line);
  });
  return inner + own;
}

std::string path_cases(const CommandHelp& root) {
  std::string text;
  visit(root, "", [&](const std::string& path, const CommandHelp&) {
    if (!path.empty()) text += (text.empty() ? "" : "|") + std::string("'") + path + "'";
  });
  return text;
}

std::string bash_function(const CommandHelp& root) {
  const std::string fn = "_" + root.name;
  std::string text =
      fn +
      "() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path= word\n"
      "  COMPREPLY=()\n";
  if (const std::string paths = path_cases(root); !paths.empty())
    text +=
        "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
        "    case \"${path:+$path }$word\" in " +
        paths + ") path=\"${path:+$path }$word\" ;; esac\n  done\n";
  text += "  case \"$path:$before\" in\n" +
          all_value_cases(
              root,
              [](const std::string& words) {
                return "COMPREPLY=($(compgen -W '" + words + "' -- \"$current\")); return 0";
              },
              "COMPREPLY=($(compgen -f -- \"$current\")); return 0") +
          "  esac\n  case \"$path\" in\n";
  visit(root, "", [&](const std::string& path, const CommandHelp& command) {
    text += "    '" + path + "') COMPREPLY=($(compgen -W '" + joined(words_of(command, root), " ") +
            "' -- \"$current\")) ;;\n";
  });
  text += "  esac\n";
  visit(root, "", [&](const std::string& path, const CommandHelp& command) {
    if (std::ranges::any_of(command.options, [](const auto& o) { return o.positional; }))
      text += "  [[ \"$path\" == '" + path +
              "' && \"$current\" != -* ]] && COMPREPLY=($(compgen -f -- \"$current\"))\n";
  });
  return text + "  return 0\n}\ncomplete -o filenames -F " + fn + " " + root.name + "\n";
}

// One 'word:description' for zsh.
std::string described(const std::string& word, const std::string& help) {
  std::string text;
  for (const char c : word + "\t" + help) {
    if (c == '\'')
      text += "'\\''";
    else if (c == '\t')
      text += ':';
    else if (c == ':')
      text += "\\:";
    else
      text += c;
  }
  return "'" + text + "'";
}

std::string zsh_function(const CommandHelp& root) {
  std::string text =
      "_" + root.name +
      "() {\n  local path= word before=${words[CURRENT-1]}\n  local -a commands options\n";
  if (const std::string paths = path_cases(root); !paths.empty())
    text +=
        "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n"
        "    case \"${path:+$path }$word\" in " +
        paths + ") path=\"${path:+$path }$word\" ;; esac\n  done\n";
  text += "  case \"$path:$before\" in\n" +
          all_value_cases(
              root, [](const std::string& words) { return "compadd -- " + words + "; return"; },
              "_files; return") +
          "  esac\n  case \"$path\" in\n";
  visit(root, "", [&](const std::string& path, const CommandHelp& command) {
    text += "    '" + path + "')\n      commands=(";
    for (const CommandHelp& sub : command.commands)
      text += "\n        " + described(sub.name, sub.help);
    text += ")\n      options=(";
    for (const CommandHelp* level : {&command, &root}) {
      for (const OptionHelp& option : level->options)
        if (!option.positional)
          for (const std::string& name : option.names)
            text += "\n        " + described(name, option.help);
      if (&command == &root) break;
    }
    text += ") ;;\n";
  });
  text +=
      "  esac\n  (( ${#commands} )) && _describe command commands\n  _describe -o option options\n";
  visit(root, "", [&](const std::string& path, const CommandHelp& command) {
    if (std::ranges::any_of(command.options, [](const auto& o) { return o.positional; }))
      text += "  [[ \"$path\" == '" + path + "' ]] && _files\n";
  });
  return text + "}\n";
}

}  // namespace

std::string bash_completion(const CommandHelp& kith, const CommandHelp& kithd) {
  return "# bash completion for kith and kithd; written by `kith completion bash`.\n" +
         bash_function(kith) + bash_function(kithd);
}

std::string zsh_completion(const CommandHelp& kith, const CommandHelp& kithd) {
  return "#compdef kith kithd\n# zsh completion for kith and kithd; written by `kith completion "
         "zsh`.\n" +
         zsh_function(kith) + zsh_function(kithd) +
         "case \"$service\" in\n  kithd) _kithd ;;\n  *) _kith ;;\nesac\n";
}

}  // namespace kith::node
