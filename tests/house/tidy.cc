#include "tests/house/tidy.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string_view>

namespace kith::house {
namespace {

const std::vector<std::string> kRooms = {"base",    "schema",     "gossip",
                                         "compute", "monitoring", "node"};

bool is_cpp(const std::string& path) { return path.ends_with(".cc") || path.ends_with(".h"); }

bool is_cmake(const std::string& path) {
  return path.ends_with("CMakeLists.txt") || path.ends_with(".cmake");
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

// Empty or partial headers under a library's own names, for headers of that library that include
// them.
bool stands_in_for_a_library(const std::string& path) {
  return path.find("_shim/") != std::string::npos;
}

std::string room_of(const std::string& path) { return path.substr(0, path.find('/')); }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

std::string at(const SourceFile& file, std::size_t line_index, const std::string& what) {
  return file.path + ":" + std::to_string(line_index + 1) + ": " + what;
}

struct Include {
  std::size_t line = 0;
  std::string target;
};

// Read from the raw text: the names are literals.
std::vector<Include> includes_of(const SourceFile& file) {
  static const std::regex kInclude(
      R"re(^\s*#\s*include\s*["<]([^">]+)[">])re");  // asked of few lines: it is slow
  std::vector<Include> out;
  const auto lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::smatch match;
    if (lines[i].find("include") != std::string::npos &&
        std::regex_search(lines[i], match, kInclude))
      out.push_back({i, match[1]});
  }
  return out;
}

bool may_include(const std::string& room, const std::string& target) {
  static const std::map<std::string, std::set<std::string>> kAllowed = {
      {"base", {"base"}},
      {"schema", {"schema", "base"}},
      {"gossip", {"gossip", "base"}},
      {"compute", {"compute", "base"}},
      {"monitoring", {"monitoring", "base"}},
      {"node", {"base", "schema", "gossip", "compute", "monitoring", "node"}},
  };
  if (room == "gossip" && target == "schema/messages.h") return true;
  return kAllowed.at(room).contains(room_of(target));
}

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// `word` in `line`, not as a part of a longer name.
bool has_word(const std::string& line, const std::string& word) {
  for (auto i = line.find(word); i != std::string::npos; i = line.find(word, i + 1)) {
    const bool starts = i == 0 || !is_word_char(line[i - 1]) || !is_word_char(word.front());
    const auto end = i + word.size();
    const bool ends = end >= line.size() || !is_word_char(line[end]) || !is_word_char(word.back());
    if (starts && ends) return true;
  }
  return false;
}

Violations find_words(const SourceFile& file, const std::vector<std::string>& words,
                      const std::string& why) {
  Violations out;
  const auto lines = lines_of(blank_comments_and_literals(file.text));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const std::string& word : words) {
      if (has_word(lines[i], word)) out.push_back(at(file, i, "'" + word + "' " + why));
    }
  }
  return out;
}

void append(Violations& to, Violations from) { std::ranges::move(from, std::back_inserter(to)); }

bool skipped(const std::filesystem::path& relative) {
  static const std::set<std::string> kFolders = {"build",  ".git",        "data",  "run",
                                                 ".cache", "__pycache__", "corpus"};
  return std::ranges::any_of(relative,
                             [](const auto& part) { return kFolders.contains(part.string()); });
}

}  // namespace

Tree read_tree(const std::string& root) {
  static const std::set<std::string> kText = {
      ".cc",   ".h",  ".cmake", ".txt",  ".md",   ".sh",   ".json", ".capnp",
      ".toml", ".py", ".yml",   ".yaml", ".lock", ".supp", "",      ".clang-format"};
  Tree out;
  for (auto it = std::filesystem::recursive_directory_iterator(root); it != decltype(it){}; ++it) {
    const auto relative = std::filesystem::relative(it->path(), root);
    if (skipped(relative)) {
      it.disable_recursion_pending();
    } else if (it->is_regular_file() && kText.contains(it->path().extension().string())) {
      std::ifstream in(it->path(), std::ios::binary);
      out.push_back({relative.generic_string(), {std::istreambuf_iterator<char>(in), {}}});
    }
  }
  std::ranges::sort(out, {}, &SourceFile::path);
  return out;
}

std::string blank_comments_and_literals(const std::string& text) {
  enum class In { kCode, kLine, kBlock, kString, kChar, kRaw } state = In::kCode;
  std::string out = text;
  std::string raw_end;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const std::string_view rest = std::string_view(text).substr(i);
    const bool blank = state != In::kCode && c != '\n';
    if (blank) out[i] = ' ';
    switch (state) {
      case In::kCode:
        if (rest.starts_with("//")) state = In::kLine;
        if (rest.starts_with("/*")) state = In::kBlock;
        if (rest.starts_with("R\"")) {
          raw_end = ")" + std::string(rest.substr(2, rest.find('(') - 2)) + "\"";
          state = In::kRaw;
        } else if (c == '"') {
          state = In::kString;
        } else if (c == '\'' && (i == 0 || !is_word_char(text[i - 1]))) {  // 1'000 is a number
          state = In::kChar;
        }
        if (state == In::kLine || state == In::kBlock) out[i] = ' ';
        break;
      case In::kLine:
        if (c == '\n') state = In::kCode;
        break;
      case In::kBlock:
        if (rest.starts_with("*/")) {
          out[++i] = ' ';
          state = In::kCode;
        }
        break;
      case In::kString:
      case In::kChar:
        if (c == '\\' && i + 1 < text.size()) {
          out[++i] = ' ';
        } else if (c == (state == In::kString ? '"' : '\'')) {
          state = In::kCode;
        }
        break;
      case In::kRaw:
        if (!rest.starts_with(raw_end)) break;
        for (std::size_t n = 1; n < raw_end.size(); ++n) out[++i] = ' ';
        state = In::kCode;
        break;
    }
  }
  return out;
}

Violations check_include_direction(const Tree& tree) {
  Violations out;
  for (const SourceFile& file : tree) {
    const std::string room = room_of(file.path);
    if (!is_cpp(file.path) || std::ranges::find(kRooms, room) == kRooms.end()) continue;
    for (const Include& include : includes_of(file)) {
      const std::string target_room = room_of(include.target);
      const bool ours =
          std::ranges::find(kRooms, target_room) != kRooms.end() || target_room == "tests";
      if (ours && include.target.find('/') != std::string::npos &&
          !may_include(room, include.target)) {
        out.push_back(at(file, include.line, room + " may not include " + include.target));
      }
    }
  }
  return out;
}

Violations check_library_headers(const Tree& tree) {
  struct Rule {
    std::string prefix;                // of the included name
    std::vector<std::string> folders;  // where it may be
  };
  static const std::vector<Rule> kRules = {
      {"torch/", {"compute/torch", "tests/torch", "tests/bench"}},
      {"ATen/", {"compute/torch", "tests/torch", "tests/bench"}},
      {"c10/", {"compute/torch", "tests/torch", "tests/bench"}},
      {"zmq", {"node", "tests/node", "tests/bench"}},
      {"capnp/", {"schema", "tests/schema", "tests/fuzz"}},
      {"kj/", {"schema", "tests/schema", "tests/fuzz"}},
      {"prometheus/", {"monitoring", "tests/monitoring"}},
      {"httplib",
       {"monitoring", "node", "tests/monitoring", "tests/node", "tests/e2e", "tests/page",
        "tests/bench"}},
  };
  Violations out;
  for (const SourceFile& file : tree) {
    if (!is_cpp(file.path)) continue;
    for (const Include& include : includes_of(file)) {
      for (const Rule& rule : kRules) {
        const auto allows = [&](const std::string& folder) {
          return file.path.starts_with(folder + "/");
        };
        if (include.target.starts_with(rule.prefix) && std::ranges::none_of(rule.folders, allows)) {
          out.push_back(at(file, include.line, include.target + " does not belong here"));
        }
      }
    }
  }
  return out;
}

Violations check_step_machine(const Tree& tree) {
  static const std::vector<std::string> kBanned = {"system_clock",
                                                   "steady_clock",
                                                   "high_resolution_clock",
                                                   "SystemClock",
                                                   "clock_gettime",
                                                   "gettimeofday",
                                                   "sleep_for",
                                                   "sleep_until",
                                                   "sleep",
                                                   "usleep",
                                                   "nanosleep",
                                                   "random_device",
                                                   "rand",
                                                   "srand",
                                                   "mt19937",
                                                   "uniform_int_distribution",
                                                   "uniform_real_distribution",
                                                   "normal_distribution",
                                                   "bernoulli_distribution",
                                                   "std::thread",
                                                   "std::jthread",
                                                   "std::mutex",
                                                   "std::shared_mutex",
                                                   "std::condition_variable",
                                                   "std::atomic",
                                                   "std::async",
                                                   "std::future",
                                                   "getenv",
                                                   "fopen",
                                                   "ifstream",
                                                   "ofstream",
                                                   "printf",
                                                   "std::cout",
                                                   "std::cerr"};
  static const std::set<std::string> kBannedHeaders = {
      "thread", "mutex",  "shared_mutex", "condition_variable", "atomic",   "future",    "random",
      "ctime",  "time.h", "fstream",      "iostream",           "unistd.h", "filesystem"};
  Violations out;
  for (const SourceFile& file : tree) {
    if (!is_cpp(file.path) || room_of(file.path) != "gossip") continue;
    append(out, find_words(file, kBanned,
                           "has no place in the protocol core: it comes in from outside"));
    for (const Include& include : includes_of(file)) {
      if (kBannedHeaders.contains(include.target) || include.target.starts_with("sys/")) {
        out.push_back(
            at(file, include.line, "<" + include.target + "> has no place in the protocol core"));
      }
    }
  }
  return out;
}

Violations check_tests_do_not_sleep(const Tree& tree) {
  Violations out;
  for (const SourceFile& file : tree) {
    const bool may_poll =
        file.path.starts_with("tests/e2e/") || file.path.starts_with("tests/bench/");
    if (!is_cpp(file.path) || room_of(file.path) != "tests" || may_poll) continue;
    append(out, find_words(file, {"sleep_for", "sleep_until", "usleep", "sleep", "nanosleep"},
                           "in a test: drive a clock, or wait for a condition with a bound"));
  }
  return out;
}

// `name` could come out of a name with a variable in it, such as mesh_${part}_test.cc. One that is
// all variable proves nothing: it counts for no file.
bool fits_a_pattern(const std::string& cmake, const std::string& name) {
  static const std::regex kPattern(R"re(([A-Za-z0-9_/.-]*)\$\{[a-z_]+\}([A-Za-z0-9_/.-]*\.cc))re");
  const auto fits = [&](const std::smatch& m) {
    const std::string before = m[1], after = m[2];
    const bool says_something = before.size() + after.size() > std::string_view(".cc").size();
    return says_something && name.size() > before.size() + after.size() &&
           name.starts_with(before) && name.ends_with(after);
  };
  return std::any_of(std::sregex_iterator(cmake.begin(), cmake.end(), kPattern), {}, fits);
}

bool is_built(const std::string& cmake, const std::string& name) {
  const std::string stem = name.substr(0, name.size() - std::string_view(".cc").size());
  return has_word(cmake, name) || has_word(cmake, stem) || fits_a_pattern(cmake, name);
}

Violations check_dead_files(const Tree& tree) {
  std::map<std::string, std::string> cmake_by_folder;
  std::set<std::string> included;
  for (const SourceFile& file : tree) {
    if (is_cmake(file.path)) cmake_by_folder[folder_of(file.path)] += file.text + "\n";
    if (!is_cpp(file.path)) continue;
    for (const Include& include : includes_of(file)) included.insert(include.target);
  }
  const auto built = [&](const std::string& path) {
    for (std::string folder = folder_of(path);; folder = folder_of(folder)) {
      const std::string name = folder.empty() ? path : path.substr(folder.size() + 1);
      if (is_built(cmake_by_folder[folder], name)) return true;
      if (folder.empty()) return false;
    }
  };
  const auto is_included = [&](const std::string& path) {
    return std::ranges::any_of(included, [&](const std::string& target) {
      return path == target || path.ends_with("/" + target);
    });
  };
  Violations out;
  for (const SourceFile& file : tree) {
    if (file.path.ends_with(".cc") && !built(file.path))
      out.push_back(file.path + ": no CMake file builds it");
    const bool ours = file.path.ends_with(".h") && !stands_in_for_a_library(file.path);
    if (ours && !is_included(file.path)) out.push_back(file.path + ": nobody includes it");
  }
  return out;
}

Violations check_headers_open_with_prose(const Tree& tree) {
  Violations out;
  for (const SourceFile& file : tree) {
    if (!file.path.ends_with(".h") || stands_in_for_a_library(file.path)) continue;
    if (!file.text.starts_with("// "))
      out.push_back(file.path + ":1: a header opens with what it is and why");
    if (file.text.find("\n#pragma once\n") == std::string::npos)
      out.push_back(file.path + ": no #pragma once");
  }
  return out;
}

Violations check_file_length(const Tree& tree, std::size_t lines_max) {
  Violations out;
  for (const SourceFile& file : tree) {
    const auto count = static_cast<std::size_t>(std::ranges::count(file.text, '\n'));
    if (is_cpp(file.path) && count > lines_max) {
      out.push_back(file.path + ": " + std::to_string(count) + " lines, at most " +
                    std::to_string(lines_max));
    }
  }
  return out;
}

// A folder of one machine's user, as an absolute path.
bool names_a_users_folder(const std::string& line) {
  for (const char* folder : {"/home/", "/root/", "/work/", "/Users/", "/mnt/", "/srv/"}) {
    for (auto i = line.find(folder); i != std::string::npos; i = line.find(folder, i + 1)) {
      const bool absolute =
          i == 0 || std::string_view(" \t\"'`=(:").find(line[i - 1]) != std::string_view::npos;
      if (absolute) return true;
    }
  }
  return false;
}

// "deb http...", also with options in brackets.
bool names_a_package_source(const std::string& line) {
  const bool deb =
      line.find("deb http") != std::string::npos ||
      (line.find("deb [") != std::string::npos && line.find("] http") != std::string::npos);
  return deb || line.find("-index-url") != std::string::npos ||
         line.find("--trusted-host") != std::string::npos;
}

bool names_a_ticket(const std::string& line) {
  for (const char* word : {"issue ", "Issue ", "ticket ", "Ticket "}) {
    const auto at = line.find(word);
    if (at == std::string::npos) continue;
    const std::string_view rest = std::string_view(line).substr(at + std::string_view(word).size());
    if (!rest.empty() && (rest[0] == '#' || std::isdigit(static_cast<unsigned char>(rest[0])) != 0))
      return true;
  }
  return false;
}

Violations check_speaks_of_itself_only(const Tree& tree) {
  Violations out;
  for (const SourceFile& file : tree) {
    if (file.path.starts_with("tests/house/")) continue;  // its planted mistakes
    const auto lines = lines_of(file.text);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (names_a_users_folder(lines[i])) out.push_back(at(file, i, "a folder of one machine"));
      if (names_a_package_source(lines[i]))
        out.push_back(at(file, i, "a package mirror: it belongs to the machine"));
      if (names_a_ticket(lines[i]))
        out.push_back(at(file, i, "a ticket's number: say what it was about"));
    }
  }
  return out;
}

Violations check_readmes(const Tree& tree) {
  Violations out;
  std::vector<std::string> folders = kRooms;
  folders.insert(folders.end(), {"docker", "tests"});
  for (const std::string& folder : folders) {
    const auto is_it = [&](const SourceFile& f) { return f.path == folder + "/README.md"; };
    if (std::ranges::none_of(tree, is_it)) out.push_back(folder + ": no README.md");
  }
  return out;
}

}  // namespace kith::house
