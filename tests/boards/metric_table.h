// The list of metrics in monitoring/README.md, and what a scrape holds, in the same form.
#pragma once

#include <map>
#include <set>
#include <string>

namespace kith::boards::testing {

struct MetricRow {
  std::string type;  // counter | gauge | histogram
  std::set<std::string> labels;
  std::string meaning;
  bool operator==(const MetricRow&) const = default;
};
using MetricTable = std::map<std::string, MetricRow>;

MetricTable listed_metrics();
// Families in Prometheus' text format; `le` belongs to every histogram and is left out.
MetricTable scraped_metrics(const std::string& text);

}  // namespace kith::boards::testing
