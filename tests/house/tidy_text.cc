#include "tests/house/tidy_text.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string_view>

namespace kith::house {
namespace {

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool skipped(const std::filesystem::path& relative) {
  static const std::set<std::string> kFolders = {"build",  ".git",        "data",  "run",
                                                 ".cache", "__pycache__", "corpus"};
  return std::ranges::any_of(relative,
                             [](const auto& part) { return kFolders.contains(part.string()); });
}

}  // namespace

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

Tree read_tree(const std::string& root) {
  static const std::set<std::string> kText = {
      ".cc",   ".h",  ".js",  ".cmake", ".txt",  ".md",   ".sh", ".json",        ".capnp",
      ".toml", ".py", ".yml", ".yaml",  ".lock", ".supp", "",    ".clang-format"};
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

}  // namespace kith::house
