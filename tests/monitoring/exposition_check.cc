#include "tests/monitoring/exposition_check.h"

#include <gtest/gtest.h>

#include <charconv>
#include <regex>
#include <set>
#include <sstream>

namespace kith::monitoring::testing {
namespace {

const std::regex kSampleLine(
    R"re(([a-zA-Z_][a-zA-Z0-9_]*)(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\]|\\.)*",?)*\})? ([^ ]+))re");

bool parse_number(const std::string& text, double& value) {
  if (text == "+Inf" || text == "-Inf" || text == "Nan" || text == "NaN") return true;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

std::string family_of(const std::string& name, const std::map<std::string, std::string>& types) {
  for (const char* suffix : {"_bucket", "_sum", "_count"}) {
    const std::string end = suffix;
    if (!name.ends_with(end)) continue;
    const std::string base = name.substr(0, name.size() - end.size());
    const auto type = types.find(base);
    if (type != types.end() && type->second == "histogram") return base;
  }
  return name;
}

void check_names(Scrape& out) {
  const std::regex units("_(seconds|bytes|ratio|timestamp_seconds)$");
  for (const auto& [name, type] : out.types) {
    const bool total = name.ends_with("_total");
    if (type == "counter" && !total) out.problems.push_back(name + ": a counter ends in _total");
    if (type != "counter" && total)
      out.problems.push_back(name + ": only a counter ends in _total");
    if (std::regex_search(name,
                          std::regex("_(ms|milliseconds|percent|kb|mb|mib|minutes|age)(_|$)"))) {
      out.problems.push_back(name + ": not a base unit");
    }
    if (!name.starts_with("kith_") && !name.starts_with("process_"))
      out.problems.push_back(name + ": prefix");
  }
}

void sample_line(const std::string& line, const std::set<std::string>& helped, Scrape& out) {
  std::smatch match;
  double value = 0;
  if (!std::regex_match(line, match, kSampleLine) || !parse_number(match[5], value)) {
    out.problems.push_back("not a sample: " + line);
    return;
  }
  const std::string family = family_of(match[1], out.types);
  if (!out.types.contains(family)) out.problems.push_back("no TYPE before: " + line);
  if (!helped.contains(family)) out.problems.push_back("no HELP before: " + line);
  if (!out.samples.emplace(match[1].str() + match[2].str(), value).second) {
    out.problems.push_back("twice: " + line);
  }
}

}  // namespace

double Scrape::value(const std::string& series) const {
  const auto found = samples.find(series);
  if (found == samples.end()) ADD_FAILURE() << "no series " << series;
  return found == samples.end() ? 0.0 : found->second;
}

std::size_t Scrape::count(const std::string& name) const {
  std::size_t count = 0;
  for (const auto& [series, value] : samples)
    count += series == name || series.starts_with(name + "{");
  return count;
}

Scrape parse_exposition(const std::string& text) {
  Scrape out;
  std::set<std::string> helped;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string hash, what, name, rest;
    words >> hash >> what >> name >> rest;
    if (hash == "#" && what == "HELP") {
      if (rest.empty()) out.problems.push_back("empty help: " + line);
      if (!helped.insert(name).second) out.problems.push_back("family twice: " + name);
    } else if (hash == "#" && what == "TYPE") {
      out.types[name] = rest;
    } else {
      sample_line(line, helped, out);
    }
  }
  if (!text.ends_with('\n')) out.problems.push_back("no newline at the end");
  check_names(out);
  return out;
}

}  // namespace kith::monitoring::testing
