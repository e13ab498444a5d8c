// The checked-in boards: they are what the generator makes, and they keep the rules of the public
// dashboard linter of Grafana (github.com/grafana/dashboard-linter, docs/rules), written anew here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>

#include "monitoring/dashboards/board.h"
#include "tests/boards/board_files.h"
#include "tests/boards/metric_table.h"

namespace kith::boards::testing {
namespace {

using nlohmann::json;
using ::testing::AnyOfArray;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Those of Grafana's units that are used here.
const std::set<std::string> kUnits = {"none", "percentunit", "s",    "ops",   "cps",    "bytes",
                                      "Bps",  "flops",       "watt", "joule", "celsius"};

template <typename Check>
void each_board(Check check) {
  for (const auto& [name, board] : checked_in_boards()) {
    SCOPED_TRACE(name);
    check(board);
  }
}
template <typename Check>
void each_panel(Check check) {
  each_board([&](const json& board) {
    for (const json& panel : panels_of(board)) {
      SCOPED_TRACE(panel.value("title", "a panel without a title"));
      check(panel);
    }
  });
}
template <typename Check>
void each_query(Check check) {
  for (const auto& [name, board] : checked_in_boards())
    for (const Asked& asked : queries_of(name, board)) {
      SCOPED_TRACE(asked.where + ": " + asked.expression);
      check(asked.expression);
    }
}

json variable(const json& board, const std::string& name) {
  for (const json& v : board["templating"]["list"])
    if (v["name"] == name) return v;
  return nullptr;
}

// Every {...} of an expression with the name before it.
std::vector<std::pair<std::string, std::string>> selectors(const std::string& expression) {
  static const std::regex kSelector(R"re(([a-z_0-9]+)(\{[^}]*\})?)re");
  std::vector<std::pair<std::string, std::string>> out;
  for (auto it = std::sregex_iterator(expression.begin(), expression.end(), kSelector);
       it != std::sregex_iterator(); ++it) {
    const std::string name = (*it)[1];
    if (name.starts_with("kith_") || name.starts_with("process_")) out.emplace_back(name, (*it)[2]);
  }
  return out;
}

TEST(Boards, AreWhatTheGeneratorMakes) {
  std::set<std::string> made;
  for (const Board& board : all_boards()) {
    made.insert(board.uid);
    EXPECT_EQ(read_text(KITH_SOURCE_DIR "/monitoring/dashboards/" + board.uid + ".json"),
              to_text(board))
        << "run kith_make_boards monitoring/dashboards";
  }
  std::set<std::string> there;
  for (const auto& [name, board] : checked_in_boards()) there.insert(name);
  EXPECT_EQ(there, made);
  EXPECT_EQ(made.size(), 5U);
}

TEST(Boards, AreWrittenByTheTool) {
  const std::string folder = KITH_BINARY_DIR "/boards-made";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  ASSERT_EQ(std::system(("'" KITH_MAKE_BOARDS "' '" + folder + "'").c_str()), 0);
  for (const Board& board : all_boards())
    EXPECT_EQ(read_text(folder + "/" + board.uid + ".json"), to_text(board));
  EXPECT_NE(std::system(("'" KITH_MAKE_BOARDS "' '" + folder + "/nowhere' 2>/dev/null").c_str()),
            0);
}

TEST(Boards, KeepTheirAddresses) {
  std::set<std::string> titles;
  each_board([&](const json& board) {
    EXPECT_TRUE(board["id"].is_null());
    EXPECT_TRUE(titles.insert(board["title"]).second);
    EXPECT_FALSE(board["description"].get<std::string>().empty());
    EXPECT_FALSE(board.contains("__inputs"));
    EXPECT_FALSE(board.contains("__requires"));
    EXPECT_EQ(board["schemaVersion"], 42);
    EXPECT_EQ(board["editable"], false);
    EXPECT_EQ(board["links"][0]["tags"][0], board["tags"][0]);
  });
  for (const auto& [name, board] : checked_in_boards()) EXPECT_EQ(board["uid"], name);
}

TEST(Boards, LetOneChooseSourceJobRunAndInstance) {
  each_board([](const json& board) {
    const json source = variable(board, "datasource");
    EXPECT_EQ(source["type"], "datasource");
    EXPECT_EQ(source["query"], "prometheus");
    EXPECT_EQ(source["label"], "Data source");
    for (const char* name : {"job", "instance", "run"}) {
      const json v = variable(board, name);
      ASSERT_TRUE(v.is_object()) << name;
      EXPECT_EQ(v["type"], "query");
      EXPECT_EQ(v["datasource"]["uid"], "${datasource}");
      EXPECT_EQ(v["multi"], true);
      EXPECT_EQ(v["includeAll"], true);
      EXPECT_EQ(v["allValue"], ".+");
      EXPECT_EQ(v["refresh"], 2) << "when the shown time changes";
      EXPECT_THAT(v["query"]["query"].get<std::string>(), HasSubstr("label_values(kith_node_info"));
    }
    EXPECT_EQ(variable(board, "job")["label"], "Job");
    EXPECT_EQ(variable(board, "instance")["label"], "Instance");
  });
}

TEST(Panels, SayWhatTheyShowAndInWhichUnit) {
  each_panel([](const json& panel) {
    EXPECT_FALSE(panel.value("title", "").empty());
    EXPECT_FALSE(panel.value("description", "").empty());
    EXPECT_TRUE(kUnits.contains(panel["fieldConfig"]["defaults"].value("unit", "")))
        << panel["fieldConfig"]["defaults"];
    for (const json& change : panel["fieldConfig"]["overrides"])
      EXPECT_TRUE(kUnits.contains(change["properties"][0]["value"])) << change;
  });
}

TEST(Panels, AskTheChosenSource) {
  each_panel([](const json& panel) {
    EXPECT_EQ(panel["datasource"]["uid"], "${datasource}");
    ASSERT_FALSE(panel["targets"].empty());
    std::set<std::string> letters;
    for (const json& target : panel["targets"]) {
      EXPECT_EQ(target["datasource"]["uid"], "${datasource}");
      EXPECT_TRUE(letters.insert(target["refId"]).second);
    }
  });
}

TEST(Panels, AreOfKindsThatGrafanaStillHas) {
  each_panel([](const json& panel) {
    EXPECT_THAT(
        panel["type"].get<std::string>(),
        AnyOfArray({"timeseries", "stat", "table", "heatmap", "nodeGraph", "state-timeline"}));
  });
}

TEST(Panels, LieInTheGridAndDoNotOverlap) {
  each_board([](const json& board) {
    std::set<std::pair<int, int>> taken;
    std::set<int> ids;
    for (const json& panel : board["panels"]) {
      EXPECT_TRUE(ids.insert(panel["id"].get<int>()).second);
      const json& at = panel["gridPos"];
      ASSERT_LE(at["x"].get<int>() + at["w"].get<int>(), 24) << panel["title"];
      for (int x = at["x"]; x < at["x"].get<int>() + at["w"].get<int>(); ++x)
        for (int y = at["y"]; y < at["y"].get<int>() + at["h"].get<int>(); ++y)
          ASSERT_TRUE(taken.insert({x, y}).second) << panel["title"];
    }
  });
}

TEST(Queries, AreFilteredByJobAndInstance) {
  each_query([](const std::string& expression) {
    EXPECT_FALSE(selectors(expression).empty());
    for (const auto& [name, selector] : selectors(expression)) {
      EXPECT_THAT(selector, HasSubstr("job=~\"$job\"")) << name;
      EXPECT_THAT(selector, HasSubstr("instance=~\"$instance\"")) << name;
    }
    EXPECT_THAT(expression, HasSubstr("run=~\"$run\""));
  });
}

// A raw counter says when the process was started, not how fast it counts.
TEST(Queries, TurnCountersIntoRates) {
  static const std::regex kRated(
      R"re((rate|irate|increase)\([a-z_0-9]+(_total|_bucket|_sum|_count)\{[^}]*\}\[[^\]]+\]\))re");
  each_query([](const std::string& expression) {
    const std::string rest = std::regex_replace(expression, kRated, "");
    for (const auto& [name, selector] : selectors(rest))
      EXPECT_FALSE(std::regex_search(name, std::regex("_(total|bucket)$"))) << name;
  });
}

TEST(Queries, LeaveTheIntervalToGrafana) {
  static const std::regex kRange(R"re(\[([^\]]+)\])re");
  each_query([](const std::string& expression) {
    for (auto it = std::sregex_iterator(expression.begin(), expression.end(), kRange);
         it != std::sregex_iterator(); ++it)
      EXPECT_THAT((*it)[1].str(), AnyOfArray({"$__rate_interval", "$__range"}));
  });
}

TEST(Queries, AskForMetricsThatAreListed) {
  const MetricTable listed = listed_metrics();
  ASSERT_GT(listed.size(), 60U);
  each_query([&](const std::string& expression) {
    for (const std::string& name : metrics_in(expression))
      EXPECT_TRUE(listed.contains(name)) << name;
  });
}

TEST(Queries, ShowAllThatIsListed) {
  MetricTable unseen = listed_metrics();
  each_query([&](const std::string& expression) {
    for (const std::string& name : metrics_in(expression)) unseen.erase(name);
  });
  unseen.erase("kith_config_last_reload_successful");  // nothing to plot: always 1
  unseen.erase("kith_checkpoint_interval_seconds");    // for the alert
  std::set<std::string> names;
  for (const auto& [name, row] : unseen) names.insert(name);
  EXPECT_THAT(names, IsEmpty());
}

// The panel derives its nodes from edges, and reads three fields by these names.
TEST(Topology, HasEdgesWithIdSourceAndTarget) {
  const json board = checked_in_boards()["kith-topology"];
  int graphs = 0, tables = 0;
  for (const json& panel : panels_of(board)) {
    tables += panel["type"] == "table";
    if (panel["type"] != "nodeGraph") continue;
    ++graphs;
    EXPECT_THAT(panel["targets"][0]["expr"].get<std::string>(),
                HasSubstr("by (id, source, target)"));
    EXPECT_EQ(panel["targets"][0]["format"], "table");
    EXPECT_FALSE(panel.contains("transformations")) << "the panel does not see renamed fields";
  }
  EXPECT_EQ(graphs, 2);
  EXPECT_EQ(tables, 1) << "for browsers that cannot draw the graph";
}

TEST(Provisioning, NamesTheFolderAndASourceThatIsAlwaysTheSame) {
  const std::string source =
      read_text(KITH_SOURCE_DIR "/monitoring/grafana/provisioning/datasources/prometheus.yaml");
  for (const char* line : {"apiVersion: 1", "uid: prometheus", "type: prometheus", "access: proxy",
                           "url: ${PROMETHEUS_URL}", "timeInterval: "})
    EXPECT_THAT(source, HasSubstr(line));
  const std::string boards =
      read_text(KITH_SOURCE_DIR "/monitoring/grafana/provisioning/dashboards/kith.yaml");
  for (const char* line : {"apiVersion: 1", "type: file", "allowUiUpdates: false", "path: "})
    EXPECT_THAT(boards, HasSubstr(line));
}

}  // namespace
}  // namespace kith::boards::testing
