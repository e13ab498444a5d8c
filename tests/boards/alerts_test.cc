// The alerting rules: promtool runs their tests; here is what promtool does not ask.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <sstream>

#include "tests/boards/board_files.h"
#include "tests/boards/metric_table.h"

namespace kith::boards::testing {
namespace {

constexpr const char* kFolder = KITH_SOURCE_DIR "/monitoring/alerts";
const std::string kRules = std::string(kFolder) + "/kith.rules.yaml";
const std::string kTests = std::string(kFolder) + "/kith.rules.test.yaml";

bool promtool_is_there() { return std::system("command -v promtool >/dev/null 2>&1") == 0; }

std::set<std::string> names(const std::string& text, const char* pattern) {
  const std::regex kName(pattern);
  std::set<std::string> out;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), kName);
       it != std::sregex_iterator(); ++it)
    out.insert((*it)[1]);
  return out;
}

// The text of each alert, up to the next one.
std::map<std::string, std::string> alerts() {
  std::map<std::string, std::string> out;
  std::string name;
  std::istringstream lines(read_text(kRules));
  for (std::string line; std::getline(lines, line);) {
    if (const auto at = line.find("- alert: "); at != std::string::npos) name = line.substr(at + 9);
    if (!name.empty()) out[name] += line + "\n";
  }
  return out;
}

TEST(Alerts, AreRulesThatPrometheusTakes) {
  if (!promtool_is_there()) GTEST_SKIP() << "promtool is not installed (package prometheus)";
  EXPECT_EQ(std::system(("promtool check rules '" + kRules + "'").c_str()), 0);
}

TEST(Alerts, FireWhenTheyShouldAndOnlyThen) {
  if (!promtool_is_there()) GTEST_SKIP() << "promtool is not installed (package prometheus)";
  EXPECT_EQ(std::system(("promtool test rules '" + kTests + "'").c_str()), 0);
}

TEST(Alerts, CoverWhatGoesWrong) {
  std::set<std::string> there;
  for (const auto& [name, text] : alerts()) there.insert(name);
  EXPECT_EQ(there,
            (std::set<std::string>{"KithNodeGone", "KithMemberDead", "KithNodeIsolated",
                                   "KithClusterSplit", "KithLossNotFinite", "KithConsensusRising",
                                   "KithExchangesFail", "KithStraggler", "KithCheckpointStale"}));
}

TEST(Alerts, SayWhatIsWrongAndWhatToDo) {
  for (const auto& [name, text] : alerts()) {
    for (const char* part : {"summary", "description", "action"})
      EXPECT_TRUE(
          std::regex_search(text, std::regex(std::string("\n +") + part + ": \"[^\"]{20,}\"")))
          << name << ": " << part;
    EXPECT_TRUE(std::regex_search(text, std::regex("severity: (warning|critical)"))) << name;
  }
}

TEST(Alerts, AreEachSeenToFire) {
  const std::string tests = read_text(kTests);
  for (const auto& [name, text] : alerts())
    EXPECT_NE(tests.find("{labels: '{alertname=\"" + name + "\""), std::string::npos) << name;
}

TEST(Alerts, WatchMetricsThatAreListed) {
  const MetricTable listed = listed_metrics();
  for (const std::string& name : names(read_text(kRules), R"re((?:^|[^a-z_:])(kith_[a-z0-9_]+))re"))
    EXPECT_TRUE(listed.contains(name)) << name;
}

}  // namespace
}  // namespace kith::boards::testing
