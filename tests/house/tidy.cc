#include "tests/house/tidy.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>
#include <string>
#include <string_view>

#include "tests/house/tidy_text.h"

namespace kith::house {

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

Violations check_rulers(const Tree& tree) {
  static const std::regex kRuler(R"re(^\s*// ?-{5,}\s*$)re");
  Violations out;
  for (const SourceFile& file : tree) {
    if (!is_cpp(file.path)) continue;
    const auto lines = lines_of(file.text);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].find("---") != std::string::npos && std::regex_match(lines[i], kRuler))
        out.push_back(at(file, i, "a ruler that says nothing"));
    }
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

Violations check_script_width(const Tree& tree, std::size_t columns_max) {
  const auto starts_a_character = [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  };
  Violations out;
  for (const SourceFile& file : tree) {
    if (!file.path.ends_with(".js")) continue;
    const auto lines = lines_of(file.text);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const auto columns =
          static_cast<std::size_t>(std::ranges::count_if(lines[i], starts_a_character));
      if (columns > columns_max) out.push_back(at(file, i, std::to_string(columns) + " columns"));
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
