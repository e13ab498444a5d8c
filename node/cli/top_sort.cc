// The order of the rows of `kith top`.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "node/cli/top_view.h"

namespace kith::node {
namespace {

// Unknown values count as the least.
double known(double value) { return std::isnan(value) ? -1e300 : value; }

double key_of(const TopRow& row, TopSort sort) {
  switch (sort) {
    case TopSort::kStep:
      return known(row.member.step);
    case TopSort::kSpeed:
      return known(row.member.steps_per_second);
    case TopSort::kLoss:
      return known(row.member.loss);
    case TopSort::kLag:
      return known(row.member.lag);
    case TopSort::kBytes:
      return known(row.bytes_in_per_second + row.bytes_out_per_second);
    case TopSort::kRoundTrip:
      return known(row.member.rtt_ms);
    case TopSort::kName:
    case TopSort::kState:
      break;
  }
  return 0;
}

}  // namespace

std::string_view name_of(TopSort sort) {
  constexpr std::string_view kNames[kTopSorts] = {"name", "state", "step",  "speed",
                                                  "loss", "lag",   "bytes", "rtt"};
  return kNames[static_cast<std::size_t>(sort)];
}

// Names from a to z; numbers from the greatest.
std::vector<TopRow> sorted(std::vector<TopRow> rows, TopSort sort, bool reverse) {
  const auto before = [sort](const TopRow& a, const TopRow& b) {
    if (sort == TopSort::kState && a.shown_state() != b.shown_state())
      return a.shown_state() < b.shown_state();
    const double left = key_of(a, sort), right = key_of(b, sort);
    return left != right
               ? left > right
               : std::tie(a.member.name, a.member.id) < std::tie(b.member.name, b.member.id);
  };
  std::ranges::sort(rows, before);
  if (reverse) std::ranges::reverse(rows);
  return rows;
}

}  // namespace kith::node
