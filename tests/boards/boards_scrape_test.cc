// The whole way: four nodes that learn, Debian's Prometheus that scrapes them, and every question
// that a board asks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <regex>

#include "tests/boards/board_files.h"
#include "tests/boards/metric_table.h"
#include "tests/boards/prometheus_server.h"
#include "tests/e2e/cluster.h"

namespace kith::boards::testing {
namespace {

using e2e::Cluster;
using e2e::seconds;
using nlohmann::json;
using ::testing::IsEmpty;

// Long, light, with an end (so that there is a share done), and with graphics cards that the fake
// library invents.
class FourNodes : public ::testing::Test {
 protected:
  FourNodes()
      : cluster_(e2e::digits_config(
            "linear", 5, "[log]\nsteps = \"steps.jsonl\"\n[checkpoint]\nevery_seconds = 2\n")) {
    for (int i = 0; i < 4; ++i) {
      e2e::NodeOptions options = e2e::with({"run.epochs=100000", "train.min_step_ms=20"});
      options.environment["LD_LIBRARY_PATH"] = KITH_FAKE_NVML_FOLDER;
      cluster_.add(options);
      const std::string ready = e2e::bytes_of(cluster_[i].folder() + "/out");
      const auto at = ready.find("http=") + 5;
      targets_.push_back(ready.substr(at, ready.find_first_of(" \n", at) - at));
    }
  }

  Cluster cluster_;
  std::vector<std::string> targets_;
};

TEST_F(FourNodes, ShowExactlyTheListedMetrics) {
  ASSERT_TRUE(cluster_.wait(seconds(60), "a node has exchanged, evaluated and saved", [&] {
    return cluster_[0].metric("kith_eval_loss{params=\"local\"}") > 0 &&
           cluster_[0].metric("kith_checkpoints_total") > 0 &&
           cluster_[0].metric("kith_consensus_distance_relative") >= 0 &&
           cluster_[0].get_text("/metrics").find("kith_peer_last_exchange") != std::string::npos;
  }));
  const std::string text = cluster_[0].get_text("/metrics");
  if (std::system("command -v promtool >/dev/null 2>&1") == 0) {
    const std::string file = cluster_.folder() + "/scrape.txt";
    std::ofstream(file) << text;
    EXPECT_EQ(std::system(("promtool check metrics < '" + file + "'").c_str()), 0);
  }
  const MetricTable listed = listed_metrics();
  const MetricTable scraped = scraped_metrics(text);
  for (const auto& [name, row] : listed)
    EXPECT_TRUE(scraped.contains(name)) << name << " is listed but not there";
  for (const auto& [name, row] : scraped) {
    ASSERT_TRUE(listed.contains(name)) << name << " is not listed in monitoring/README.md";
    EXPECT_EQ(row.type, listed.at(name).type) << name;
    EXPECT_EQ(row.labels, listed.at(name).labels) << name;
    EXPECT_EQ(row.meaning, listed.at(name).meaning) << name;
  }
}

TEST_F(FourNodes, AnswerEveryQuestionOfTheBoards) {
  if (!PrometheusServer::installed())
    GTEST_SKIP() << "prometheus is not installed: no board was asked anything";
  PrometheusServer prometheus(cluster_.folder() + "/prometheus", targets_,
                              KITH_SOURCE_DIR "/monitoring/alerts/kith.rules.yaml");
  ASSERT_TRUE(prometheus.ready()) << prometheus.log();

  std::vector<Asked> open;
  for (const auto& [name, board] : checked_in_boards())
    for (const Asked& asked : queries_of(name, board)) open.push_back(asked);
  ASSERT_GT(open.size(), 90U);
  const auto all = open.size();
  cluster_.wait(seconds(60), "every query finds a number", [&] {
    std::erase_if(open, [&](const Asked& asked) {
      return prometheus.finite_series(filled_in(asked.expression)) > 0;
    });
    return open.empty();
  });
  for (const Asked& asked : open)
    ADD_FAILURE() << asked.where << " shows nothing: " << filled_in(asked.expression);
  std::cout << all << " queries\n";

  static const std::regex kValues(R"re(label_values\((.*), ([a-z]+)\))re");
  for (const auto& [name, board] : checked_in_boards()) {
    for (const json& variable : board["templating"]["list"]) {
      if (variable["type"] != "query") continue;
      std::smatch parts;
      const std::string text = variable["query"]["query"];
      ASSERT_TRUE(std::regex_match(text, parts, kValues)) << text;
      const json values = prometheus.label_values(filled_in(parts[1]), parts[2]);
      EXPECT_EQ(values.size(), variable["name"] == "instance" ? 4U : 1U) << text << " " << values;
    }
  }
}

TEST_F(FourNodes, RaiseNoAlertUntilOneIsKilled) {
  if (!PrometheusServer::installed())
    GTEST_SKIP() << "prometheus is not installed: no alert was tried";
  // The rules with shorter patience: a minute is too long for a test.
  std::string rules = read_text(KITH_SOURCE_DIR "/monitoring/alerts/kith.rules.yaml");
  rules = std::regex_replace(rules, std::regex("for: [0-9]+m"), "for: 3s");
  const std::string file = cluster_.folder() + "/rules.yaml";
  std::ofstream(file) << rules;
  ASSERT_TRUE(cluster_.wait(seconds(30), "all see four", [&] {
    for (std::size_t i = 0; i < cluster_.size(); ++i)
      if (cluster_[i].metric("kith_members{state=\"alive\"}") != 4) return false;
    return true;
  }));
  PrometheusServer prometheus(cluster_.folder() + "/prometheus", targets_, file);
  ASSERT_TRUE(prometheus.ready()) << prometheus.log();
  ASSERT_TRUE(cluster_.wait(seconds(60), "the rules have been looked at", [&] {
    return prometheus.finite_series("kith:train_steps:rate5m") == 4;
  }));
  EXPECT_THAT(prometheus.query("ALERTS{alertstate=\"firing\"}"), IsEmpty());

  cluster_[3].kill_now();
  EXPECT_TRUE(cluster_.wait(seconds(60), "both alerts", [&] {
    return prometheus
                   .query("ALERTS{alertstate=\"firing\",alertname=\"KithNodeGone\",instance=\"" +
                          targets_[3] + "\"}")
                   .size() == 1 &&
           prometheus.query("ALERTS{alertstate=\"firing\",alertname=\"KithMemberDead\"}").size() ==
               1;
  }));
  EXPECT_THAT(
      prometheus.query("ALERTS{alertstate=\"firing\",alertname!~\"KithNodeGone|KithMemberDead\"}"),
      IsEmpty());
}

TEST_F(FourNodes, WriteALineForEveryStep) {
  ASSERT_TRUE(cluster_.wait(seconds(60), "two hundred steps",
                            [&] { return cluster_[0].metric("kith_train_steps_total") >= 200; }));
  EXPECT_EQ(cluster_[0].metric("kith_step_log_lost_lines_total"), 0);
  cluster_[0].signal(SIGTERM);
  ASSERT_TRUE(cluster_[0].wait_exit(seconds(30)).has_value());
  std::istringstream lines(e2e::bytes_of(cluster_[0].folder() + "/data/steps.jsonl"));
  std::uint64_t steps = 0, exchanges = 0;
  double first_loss = 0.0, loss = 0.0;
  for (std::string line; std::getline(lines, line);) {
    const json entry = json::parse(line, nullptr, false);
    ASSERT_TRUE(entry.is_object()) << line;
    ASSERT_EQ(entry["step"], ++steps);
    EXPECT_GE(entry["exchanges"].get<std::uint64_t>(), exchanges);
    exchanges = entry["exchanges"];
    ASSERT_TRUE(entry["loss"].is_number()) << line;
    EXPECT_EQ(entry["learning_rate"], 0.05);
    loss = entry["loss"];
    if (steps == 1) first_loss = loss;
  }
  EXPECT_GE(steps, 200U);
  EXPECT_GT(exchanges, 0U);
  EXPECT_NEAR(first_loss, 2.4, 0.5) << "ten classes, and the first node knows nothing";
  EXPECT_LT(loss, 1.5);
}

}  // namespace
}  // namespace kith::boards::testing
