// The page of a real node in a cluster of four, in a real browser.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/cluster.h"
#include "tests/page/browser.h"
#include "tests/page/page_checks.h"

namespace kith::page::testing {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::IsEmpty;

// Points of a curve that can be drawn, as [[x, y], ...].
std::string points_of(const std::string& chart, int dataset) {
  return "kith.charts.list.find(c => c.title === '" + chart + "').chart.data.datasets[" +
         std::to_string(dataset) + "].data.filter(p => Number.isFinite(p.y)).map(p => [p.x, p.y])";
}

// Whether a canvas has so many pixels in a colour of the page.
std::string drawn(const std::string& figure, const std::string& color, int least) {
  return R"js(return (() => {
const c = document.querySelector("#)js" +
         figure + R"js( canvas"), copy = document.createElement("canvas");
copy.width = c.width; copy.height = c.height;
const probe = copy.getContext("2d", {willReadFrequently: true});
probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--)js" +
         color + R"js(");
probe.fillRect(0, 0, 1, 1);
const want = probe.getImageData(0, 0, 1, 1).data, have = (probe.clearRect(0, 0, 1, 1),
    probe.drawImage(c, 0, 0), probe.getImageData(0, 0, c.width, c.height).data);
let count = 0;
for (let i = 0; i < have.length; i += 4)
  if (have[i + 3] > 200 && [0, 1, 2].every(k => Math.abs(have[i + k] - want[k]) < 24)) ++count;
return count;
})() > )js" + std::to_string(least);
}

const char* kStateOf4 =
    "return [...document.querySelectorAll('#members tr')].filter(r => "
    "r.cells[0].textContent.includes('n4')).map(r => r.cells[1].textContent)[0]";

TEST(Page, ShowsARealClusterLearnAndAMemberDie) {
  if (!Browser::installed()) GTEST_SKIP() << "chromium and chromium-driver are not installed";
  e2e::Cluster cluster(
      e2e::digits_config("linear", 3, "min_step_ms = 20\n[checkpoint]\nevery_seconds = 2\n"));
  for (int k = 1; k <= 4; ++k)
    cluster.add(e2e::with(
        {"run.epochs=0", "run.start_members=4", "data.shard=" + std::to_string(k) + "/4"}));
  Browser browser(cluster.folder() + "/browser");
  ASSERT_TRUE(browser.started()) << browser.log();
  browser.resize(1440, 900);
  std::string address = e2e::bytes_of(cluster[0].folder() + "/data/http");
  address.resize(address.find('\n'));
  browser.open("http://" + address + "/");

  // Curves: drawn, and what the node itself says.
  ASSERT_TRUE(browser.wait("return " + points_of("Training loss", 0) + ".length >= 6"));
  ASSERT_TRUE(browser.wait("return " + points_of("Accuracy on the test set", 1) + ".length >= 2"));
  ASSERT_TRUE(browser.wait("return " + points_of("Consensus distance", 0) + ".length >= 2"));
  const json points = browser.ask("return " + points_of("Training loss", 0));
  const json rows = cluster[0].get("/history")["rows"];
  int same = 0;
  for (const json& point : points)
    for (const json& row : rows) same += row[1] == point[1] ? 1 : 0;
  EXPECT_GE(same, 5) << points << rows;
  EXPECT_LT(points.back()[1].get<double>(), points.front()[1].get<double>()) << "it learns";
  EXPECT_TRUE(browser.wait(drawn("loss", "own", 50)));
  EXPECT_TRUE(browser.wait(drawn("traffic", "own", 50)));
  EXPECT_TRUE(browser.wait(drawn("pairs", "good", 100)))
      << "three members that are alive";

  // Who is there, and who exchanges with whom.
  EXPECT_EQ(browser.ask("return document.querySelectorAll('#members tr').length"), 4);
  EXPECT_EQ(browser.ask(kStateOf4), "alive");
  ASSERT_TRUE(
      browser.wait("return [...document.querySelectorAll('#members tr:not(.self)')].every(r => "
                   "parseInt(r.cells[8].textContent) > 0)"));
  EXPECT_TRUE(
      browser.wait("return [...document.querySelectorAll('#events li')].some(e => "
                   "e.textContent.includes('checkpoint'))"));
  browser.screenshot("light");

  // A killed node turns dead, in the table, in the picture, among the events, and for those who
  // listen.
  cluster[3].kill_now();
  ASSERT_TRUE(browser.wait(std::string("return (() => { ") + kStateOf4 + " })() === 'dead'"));
  EXPECT_TRUE(
      browser.wait("return [...document.querySelectorAll('#events li')].some(e => "
                   "e.textContent.includes('dead') && e.textContent.includes('n4'))"));
  EXPECT_TRUE(browser.wait(
      "return document.getElementById('announce').textContent.includes('n4 is dead')"));
  ASSERT_TRUE(
      browser.wait("return kith.charts.list.find(c => c.placed).placed.some(p => p.member.name === "
                   "'n4' && p.member.state === 'dead')"));
  EXPECT_TRUE(browser.wait(drawn("pairs", "bad", 20)));
  browser.prefer_dark(true);
  ASSERT_TRUE(browser.wait("return document.documentElement.dataset.theme === 'dark'"));
  browser.screenshot("dark");

  // A node that ends is said to have ended.
  EXPECT_THAT(browser.console(), IsEmpty());
  cluster[0].signal(SIGTERM);
  EXPECT_TRUE(browser.wait("return !document.getElementById('link').className.includes('good')"));
}

}  // namespace
}  // namespace kith::page::testing
