#include "tests/boards/metric_table.h"

#include <regex>
#include <sstream>

#include "tests/boards/board_files.h"

namespace kith::boards::testing {
namespace {

std::set<std::string> words(const std::string& text, const std::regex& pattern) {
  std::set<std::string> out;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), pattern);
       it != std::sregex_iterator(); ++it)
    out.insert((*it)[1]);
  return out;
}

}  // namespace

MetricTable listed_metrics() {
  static const std::regex kRow(
      R"re(^\| `([a-z0-9_]+)` \| (counter|gauge|histogram) \|([^|]*)\| (.*) \|$)re");
  static const std::regex kLabel("`([a-z_]+)`");
  MetricTable out;
  std::istringstream lines(read_text(KITH_SOURCE_DIR "/monitoring/README.md"));
  for (std::string line; std::getline(lines, line);) {
    std::smatch row;
    if (std::regex_match(line, row, kRow)) out[row[1]] = {row[2], words(row[3], kLabel), row[4]};
  }
  return out;
}

MetricTable scraped_metrics(const std::string& text) {
  static const std::regex kLabel("([a-z_]+)=\"");
  static const std::regex kPart("_(bucket|sum|count)$");
  MetricTable out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream parts(line);
    std::string hash, keyword, name, rest;
    parts >> hash >> keyword >> name;
    std::getline(parts >> std::ws, rest);
    if (hash == "#" && keyword == "HELP") out[name].meaning = rest;
    if (hash == "#" && keyword == "TYPE") out[name].type = rest;
    if (hash == "#" || line.empty()) continue;
    std::string family = line.substr(0, line.find_first_of("{ "));
    if (!out.contains(family)) family = std::regex_replace(family, kPart, "");
    const auto open = line.find('{');
    if (open != std::string::npos)
      out[family].labels.merge(words(line.substr(open, line.rfind('}') - open), kLabel));
    out[family].labels.erase("le");
  }
  return out;
}

}  // namespace kith::boards::testing
