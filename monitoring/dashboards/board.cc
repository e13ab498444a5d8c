#include "monitoring/dashboards/board.h"

#include <algorithm>

namespace kith::boards {
namespace {

constexpr const char* kFilter = R"(job=~"$job",instance=~"$instance")";

// The schema of Grafana 13; older versions read it as well, since nothing newer is used.
constexpr int kSchemaVersion = 42;

Json data_source() { return {{"type", "prometheus"}, {"uid", "${datasource}"}}; }

Json target(const Query& query, std::size_t index) {
  Json out = {
      {"datasource", data_source()},  {"editorMode", "code"},
      {"expr", query.expression},     {"format", query.format},
      {"legendFormat", query.legend}, {"refId", std::string(1, static_cast<char>('A' + index))}};
  const bool instant = query.format == "table";
  out["instant"] = instant;
  out["range"] = !instant;
  return out;
}

Json defaults_of(const Panel& panel) {
  Json out = {{"unit", panel.unit}};
  if (panel.type == "timeseries") {
    out["custom"] = {{"drawStyle", "line"},
                     {"lineWidth", 1},
                     {"fillOpacity", 5},
                     {"showPoints", "never"},
                     {"spanNulls", false}};
  }
  out.merge_patch(panel.field);
  return out;
}

Json options_of(const Panel& panel) {
  Json out = Json::object();
  if (panel.type == "timeseries") {
    out = {{"legend", {{"displayMode", "list"}, {"placement", "bottom"}, {"showLegend", true}}},
           {"tooltip", {{"mode", "multi"}, {"sort", "desc"}}}};
  }
  out.merge_patch(panel.options);
  return out;
}

Json panel_json(const Panel& panel, int id, int x, int y) {
  Json out = {{"id", id},
              {"type", panel.type},
              {"title", panel.title},
              {"description", panel.description},
              {"datasource", data_source()},
              {"gridPos", {{"h", panel.height}, {"w", panel.width}, {"x", x}, {"y", y}}},
              {"fieldConfig", {{"defaults", defaults_of(panel)}, {"overrides", panel.overrides}}},
              {"options", options_of(panel)},
              {"targets", Json::array()}};
  for (std::size_t i = 0; i < panel.queries.size(); ++i)
    out["targets"].push_back(target(panel.queries[i], i));
  if (!panel.transformations.empty()) out["transformations"] = panel.transformations;
  return out;
}

Json row_json(const Row& row, int id, int y) {
  return {{"id", id},
          {"type", "row"},
          {"title", row.title},
          {"collapsed", false},
          {"gridPos", {{"h", 1}, {"w", 24}, {"x", 0}, {"y", y}}},
          {"panels", Json::array()}};
}

// Left to right, a new line when the next one does not fit.
Json panels_json(const Board& board) {
  Json out = Json::array();
  int id = 0, y = 0;
  for (const Row& row : board.rows) {
    out.push_back(row_json(row, ++id, y++));
    int x = 0, line_height = 0;
    for (const Panel& panel : row.panels) {
      if (x + panel.width > 24) {
        y += line_height;
        x = line_height = 0;
      }
      out.push_back(panel_json(panel, ++id, x, y));
      x += panel.width;
      line_height = std::max(line_height, panel.height);
    }
    y += line_height;
  }
  return out;
}

// All values are chosen at first; "all" also matches what comes later.
Json variable(const std::string& name, const std::string& label, const std::string& query) {
  return {{"name", name},
          {"label", label},
          {"type", "query"},
          {"datasource", data_source()},
          {"query", {{"query", query}, {"refId", "Variable"}}},
          {"definition", query},
          {"refresh", 2},
          {"sort", 1},
          {"multi", true},
          {"includeAll", true},
          {"allValue", ".+"},
          {"current", {{"text", Json::array({"All"})}, {"value", Json::array({"$__all"})}}}};
}

Json variables() {
  return Json::array(
      {{{"name", "datasource"},
        {"label", "Data source"},
        {"type", "datasource"},
        {"query", "prometheus"},
        {"current", Json::object()}},
       variable("job", "Job", "label_values(kith_node_info, job)"),
       variable("run", "Run", "label_values(kith_node_info{job=~\"$job\"}, run)"),
       variable("instance", "Instance",
                "label_values(kith_node_info{job=~\"$job\",run=~\"$run\"}, instance)")});
}

Json links() {
  return Json::array({{{"type", "dashboards"},
                       {"title", "kith"},
                       {"tags", Json::array({"kith"})},
                       {"asDropdown", false},
                       {"includeVars", true},
                       {"keepTime", true}}});
}

}  // namespace

std::string of(const std::string& metric, const std::string& labels) {
  return metric + "{" + kFilter + (labels.empty() ? "" : "," + labels) + "}";
}

std::string rate(const std::string& metric, const std::string& labels) {
  return "rate(" + of(metric, labels) + "[$__rate_interval])";
}

std::string increase(const std::string& metric, const std::string& labels) {
  return "increase(" + of(metric, labels) + "[$__range])";
}

std::string named(const std::string& expression) {
  return "(" + expression + ") * on (job, instance) group_left (node, run) " +
         of("kith_node_info", "run=~\"$run\"");
}

Panel stat(const std::string& title, const std::string& description, const std::string& unit,
           const std::string& expression,
           const std::vector<std::pair<double, std::string>>& thresholds) {
  Json steps = Json::array({{{"color", "green"}, {"value", nullptr}}});
  if (!thresholds.empty()) steps = Json::array();
  for (const auto& [value, color] : thresholds)
    steps.push_back({{"color", color}, {"value", steps.empty() ? Json(nullptr) : Json(value)}});
  Panel out{title, description, unit, {{expression, title}}, "stat", 4, 4};
  out.field = {{"thresholds", {{"mode", "absolute"}, {"steps", steps}}}};
  out.options = {{"reduceOptions", {{"calcs", Json::array({"lastNotNull"})}, {"values", false}}},
                 {"colorMode", "value"},
                 {"graphMode", "area"}};
  return out;
}

Panel table(const std::string& title, const std::string& description,
            const std::vector<std::pair<std::string, std::string>>& expression_and_column,
            const std::vector<std::pair<std::string, std::string>>& column_and_unit) {
  Panel out{title, description, "none", {}, "table", 24, 9};
  Json renamed = Json::object();
  for (const auto& [expression, column] : expression_and_column) {
    const std::string id(1, static_cast<char>('A' + out.queries.size()));
    out.queries.push_back({expression, "", "table"});
    renamed[expression_and_column.size() == 1 ? "Value" : "Value #" + id] = column;
  }
  for (const auto& [column, unit] : column_and_unit) {
    out.overrides.push_back({{"matcher", {{"id", "byName"}, {"options", column}}},
                             {"properties", Json::array({{{"id", "unit"}, {"value", unit}}})}});
  }
  out.transformations = Json::array(
      {{{"id", "merge"}, {"options", Json::object()}},
       {{"id", "organize"},
        {"options", {{"excludeByName", {{"Time", true}}}, {"renameByName", renamed}}}}});
  return out;
}

Panel heatmap(const std::string& title, const std::string& description, const std::string& unit,
              const std::string& histogram) {
  const std::string buckets =
      "sum by (le) (" + named("increase(" + of(histogram + "_bucket") + "[$__rate_interval])") +
      ")";
  Panel out{title, description, unit, {{buckets, "{{le}}", "heatmap"}}, "heatmap", 12, 8};
  out.options = {{"calculate", false},
                 {"yAxis", {{"unit", unit}}},
                 {"color", {{"mode", "scheme"}, {"scheme", "Oranges"}, {"steps", 64}}},
                 {"cellGap", 1},
                 {"tooltip", {{"mode", "single"}}}};
  return out;
}

Panel stacked(Panel panel) {
  panel.field.merge_patch(
      {{"custom", {{"fillOpacity", 30}, {"stacking", {{"mode", "normal"}, {"group", "A"}}}}}});
  return panel;
}

Json to_json(const Board& board) {
  return {{"id", nullptr},
          {"uid", board.uid},
          {"title", board.title},
          {"description", board.description},
          {"tags", Json::array({"kith"})},
          {"schemaVersion", kSchemaVersion},
          {"version", 1},
          {"editable", false},
          {"graphTooltip", 1},
          {"refresh", "5s"},
          {"time", {{"from", "now-15m"}, {"to", "now"}}},
          {"timezone", "browser"},
          {"annotations", {{"list", Json::array()}}},
          {"links", links()},
          {"templating", {{"list", variables()}}},
          {"panels", panels_json(board)}};
}

std::string to_text(const Board& board) { return to_json(board).dump(2) + "\n"; }

}  // namespace kith::boards
