#include "gossip/topology_names.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace kith::gossip {

// Row by row (Wagner and Fischer 1974).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

std::string unknown_name(std::string_view kind, std::string_view name,
                         std::span<const std::string_view> known) {
  std::string text =
      "unknown " + std::string(kind) + " \"" + std::string(name.substr(0, 64)) + "\"";
  std::string_view nearest;
  std::size_t best = std::max<std::size_t>(2, name.size() / 2) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(name.substr(0, 64), candidate);
    if (distance >= best) continue;
    best = distance;
    nearest = candidate;
  }
  if (!nearest.empty()) text += ": did you mean \"" + std::string(nearest) + "\"?";
  text += nearest.empty() ? ": known are " : " known: ";
  for (std::size_t i = 0; i < known.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::string(known[i]);
  }
  return text;
}

}  // namespace kith::gossip
