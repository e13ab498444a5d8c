// Rules about who includes and builds what.
#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/house/tidy.h"
#include "tests/house/tidy_text.h"

namespace kith::house {
namespace {

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

// Which folders of its own room a folder may include; one that is not named sees the whole room.
bool part_may_include(const std::string& part, const std::string& target) {
  using Parts = std::set<std::string>;
  static const std::map<std::string, Parts> kAllowed = {
      {"node/text", {"node/text"}},
      {"node/identity", {"node/identity", "node/text"}},
      {"node/mesh", {"node/mesh", "node/identity", "node/text"}},
      {"node/config", {"node/config", "node/text"}},
      {"node/setup", {"node/setup", "node/config", "node/text"}},
      {"node/store", {"node/store"}},
      {"node/cli",
       {"node/cli", "node/config", "node/identity", "node/mesh", "node/setup", "node/store",
        "node/text"}},
      {"node/daemon",
       {"node/daemon", "node/config", "node/identity", "node/mesh", "node/setup", "node/store",
        "node/text"}},
      {"gossip/membership", {"gossip/membership"}},
      {"gossip/exchange", {"gossip/exchange", "gossip"}},
      {"gossip/transfer", {"gossip/transfer", "gossip/exchange"}},
      {"gossip", {"gossip"}},
  };
  const auto found = kAllowed.find(part);
  if (found == kAllowed.end() || room_of(part) != room_of(target)) return true;
  return found->second.contains(folder_of(target));
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

}  // namespace

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
      const std::string part = folder_of(file.path);
      if (!part_may_include(part, include.target))
        out.push_back(at(file, include.line, part + " may not include " + include.target));
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

}  // namespace kith::house
