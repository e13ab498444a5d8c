// What several boards ask.
#include "monitoring/dashboards/boards.h"

namespace kith::boards {

using std::string;

string maximum(const string& expression) { return "max(" + named(expression) + ")"; }
string mean(const string& expression) { return "avg(" + named(expression) + ")"; }
string total(const string& expression) { return "sum(" + named(expression) + ")"; }
string total_by(const string& label, const string& expression) {
  return "sum by (" + label + ") (" + named(expression) + ")";
}
string highest_by(const string& label, const string& expression) {
  return "max by (" + label + ") (" + named(expression) + ")";
}

string quantile(const string& q, const string& histogram, const string& by) {
  return "histogram_quantile(" + q + ", sum by (le" + (by.empty() ? "" : ", " + by) + ") (" +
         named(rate(histogram + "_bucket")) + "))";
}

string age(const string& timestamp) { return "time() - " + of(timestamp); }

string failure_ratio() {
  const string failed = "sum by (job, instance) (" + rate("kith_exchanges_failed_total") + ")";
  const string done = "sum by (job, instance) (" + rate("kith_exchanges_total") + ")";
  return failed + " / (" + failed + " + " + done + " > 0)";
}

Panel distance_curves(int width) {
  return {"Distance between nodes",
          "kith_consensus_distance_relative: how far the models of two nodes that exchange are "
          "apart, over the norm of their mean. It should stay flat or fall.",
          "percentunit",
          {{named(of("kith_consensus_distance_relative"))}},
          "timeseries",
          width,
          9};
}

}  // namespace kith::boards
