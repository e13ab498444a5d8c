// Comma-separated numbers, one sample a line, the label in the last column. Read without the locale
// (a decimal comma is never assumed); a byte order mark, CRLF, blank lines, a missing last newline
// and one header line are accepted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace kith::compute {

struct CsvTable {
  std::string path;
  std::size_t columns = 0;    // features
  std::vector<float> values;  // rows * columns
  std::vector<std::int64_t> labels;
  std::vector<std::uint32_t> lines;  // line number of each row, for messages
};

// kDataRefused with file:line.
Result<CsvTable> read_csv(const std::string& path);

}  // namespace kith::compute
