// A strict reader of Prometheus' text format for tests, and the naming rules that `promtool check
// metrics` applies.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace kith::monitoring::testing {

struct Scrape {
  std::map<std::string, double> samples;     // "name{label="value"}" as written -> value
  std::map<std::string, std::string> types;  // family -> counter | gauge | histogram
  std::vector<std::string> problems;         // empty: well formed

  // The value of a series; fails the running test when there is none.
  [[nodiscard]] double value(const std::string& series) const;
  [[nodiscard]] bool has(const std::string& series) const { return samples.contains(series); }
  // Number of series of this name.
  [[nodiscard]] std::size_t count(const std::string& name) const;
};

Scrape parse_exposition(const std::string& text);

}  // namespace kith::monitoring::testing
