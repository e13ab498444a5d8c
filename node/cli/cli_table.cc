#include "node/cli/cli_table.h"

#include <algorithm>

#include "node/config/config_value.h"
#include "node/text/text.h"

namespace kith::node {
namespace {

// Columns on the terminal, taking every code point for one.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool is_number(std::string_view text) { return text == "-" || parse_number(text).has_value(); }

std::string cell(const std::string& text, std::size_t width, bool right) {
  const std::string blanks(width - std::min(width, width_of(text)), ' ');
  return right ? blanks + text : text + blanks;
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string CliTable::text() const {
  const std::size_t columns = rows_.front().size();
  std::vector<std::size_t> widths(columns, 0);
  std::vector<bool> right(columns, rows_.size() > 1);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      widths[c] = std::max(widths[c], width_of(rows_[r][c]));
      if (r > 0 && !is_number(rows_[r][c])) right[c] = false;
    }
  }
  std::string text;
  const bool has_header =
      std::ranges::any_of(rows_.front(), [](const auto& h) { return !h.empty(); });
  for (std::size_t r = has_header ? 0 : 1; r < rows_.size(); ++r) {
    std::string line;
    for (std::size_t c = 0; c < columns; ++c)
      line += (c == 0 ? "" : "  ") + cell(rows_[r][c], widths[c], has_header && right[c]);
    text += without_trailing_blanks(line) + "\n";
  }
  return text;
}

std::string printable(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    const std::size_t control = control_bytes(text);
    for (const char c : text.substr(0, control)) {
      const auto byte = static_cast<unsigned char>(c);
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
    if (control == 0) out += text.front();
    text.remove_prefix(std::max<std::size_t>(control, 1));
  }
  return out;
}

}  // namespace kith::node
