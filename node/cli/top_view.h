// The screen of `kith top` as lines of text, from a frame and what the user has chosen. Pure: no
// terminal, no clock. No line is wider than asked; where columns or parts of the header do not fit,
// the least needed go first, whole. Texts of other machines are escaped before they come here
// (top_model.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "node/cli/top_model.h"

namespace kith::node {

enum class TopSort : std::uint8_t { kName, kState, kStep, kSpeed, kLoss, kLag, kBytes, kRoundTrip };
inline constexpr std::size_t kTopSorts = 8;
std::string_view name_of(TopSort sort);

struct TopOptions {
  std::size_t width = 80, height = 24;
  bool colour = true;
  bool unicode = true;  // sparkline and bar of block characters, else of ASCII
  TopSort sort = TopSort::kName;
  bool reverse = false;
  std::size_t offset = 0;  // first row shown
  bool paused = false, help = false;
  std::string where;  // the node that is asked, as given
  std::string time;   // of the look
  // Not empty: the node does not answer.
  std::string trouble;
};

// Rows in the order chosen; equal ones by name.
std::vector<TopRow> sorted(std::vector<TopRow> rows, TopSort sort, bool reverse);
// How many rows fit on such a screen.
std::size_t rows_on_screen(const TopOptions& options);

// At most `height` lines.
std::vector<std::string> draw_top(const TopFrame& frame, const TopOptions& options);
// The same table without colours and limits, for --once.
std::string top_table(const TopFrame& frame, const TopOptions& options);
// One line, for where there is no terminal.
std::string top_line(const TopFrame& frame, const TopOptions& options);

// Losses as a line of `width` characters, the last at the right; scaled to their own range.
std::string sparkline(const std::vector<double>& values, std::size_t width, bool unicode);
// Characters that a terminal shows: code points, without the sequences that colour.
std::size_t shown_width(std::string_view text);

}  // namespace kith::node
