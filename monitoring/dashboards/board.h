// Grafana boards as code: panels are made from a title, a description and queries, and everything
// that must be the same on each panel (data source, filters, legends, sizes) is written once. The
// JSON beside this file is what these functions make: `kith_make_boards FOLDER` writes it anew.
//
// Queries: every metric is filtered by the variables $job, $instance and $run. named() adds the
// labels `node` and `run` of kith_node_info, so that legends show names instead of addresses.
// Thread: plain functions on values.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kith::boards {

using Json = nlohmann::ordered_json;

// `metric` with the filters of all boards and `labels` besides: kith_members{job=~"$job",...}.
std::string of(const std::string& metric, const std::string& labels = "");
// rate() and increase() of such a counter, over an interval that Grafana picks.
std::string rate(const std::string& metric, const std::string& labels = "");
std::string increase(const std::string& metric, const std::string& labels = "");
// The same values with the labels `node` and `run`, of the chosen runs only.
std::string named(const std::string& expression);

struct Query {
  std::string expression;
  std::string legend = "{{node}}";
  std::string format = "time_series";  // "table": instant; "heatmap"
};

struct Panel {
  std::string title, description;
  std::string unit;
  std::vector<Query> queries;
  std::string type = "timeseries";
  int width = 8, height = 8;      // of 24 columns
  Json field = Json::object();    // joins fieldConfig.defaults
  Json options = Json::object();  // joins options
  Json overrides = Json::array();
  Json transformations = Json::array();
};

struct Row {
  std::string title;
  std::vector<Panel> panels;
};

struct Board {
  std::string uid, title, description;
  std::vector<Row> rows;
};

// One number, large: the last value, coloured by thresholds {value, colour}, the first without
// value.
Panel stat(const std::string& title, const std::string& description, const std::string& unit,
           const std::string& expression,
           const std::vector<std::pair<double, std::string>>& thresholds = {});
// A table of the newest values: one query and one column each; `columns` names them.
Panel table(const std::string& title, const std::string& description,
            const std::vector<std::pair<std::string, std::string>>& expression_and_column,
            const std::vector<std::pair<std::string, std::string>>& column_and_unit);
// Buckets of a histogram over time.
Panel heatmap(const std::string& title, const std::string& description, const std::string& unit,
              const std::string& histogram);
// Lines piled up on each other.
Panel stacked(Panel panel);

Json to_json(const Board& board);
// As it is written to a file: indented, with a newline at the end.
std::string to_text(const Board& board);

// The five boards, in the order in which they are listed (boards.h).
std::vector<Board> all_boards();

}  // namespace kith::boards
