// Tables for terminals: aligned columns, two blanks between them, nothing that a terminal would
// obey. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kith::node {

class CliTable {
 public:
  explicit CliTable(std::vector<std::string> header) : rows_{std::move(header)} {}
  // A header without names is left out of the text.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // Columns that hold only numbers (and "-") are set to the right.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Text that another machine chose, for a terminal: control characters as \xNN.
std::string printable(std::string_view text);

}  // namespace kith::node
