// The page with two hundred members and an hour behind it, and what must hold on any page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>

#include "tests/page/browser.h"
#include "tests/page/fake_cluster.h"
#include "tests/page/page_checks.h"

namespace kith::page::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Lt;
using ::testing::SizeIs;

class PageOfMany : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!Browser::installed()) return;
    const std::string folder = std::string(KITH_BINARY_DIR) + "/page";
    std::filesystem::remove_all(folder);
    browser_ = std::make_unique<Browser>(folder);
  }
  static void TearDownTestSuite() { browser_.reset(); }
  void SetUp() override {
    if (!browser_) GTEST_SKIP() << "chromium and chromium-driver are not installed";
    ASSERT_TRUE(browser_->started()) << browser_->log();
    // What the page of the test before complained of when its node was gone.
    browser_->open("about:blank");
    browser_->console();
    browser_->prefer_dark(false);
    browser_->resize(1440, 900);
  }
  void open(const FakeCluster& cluster, std::size_t rows) {
    browser_->open(cluster.url());
    ASSERT_TRUE(browser_->wait("return document.querySelectorAll('#members tr').length === " +
                               std::to_string(rows)));
  }
  static Browser& browser() { return *browser_; }

 private:
  static inline std::unique_ptr<Browser> browser_;
};

TEST_F(PageOfMany, FitsIntoTwoMegabytesAndKeepsItsRows) {
  FakeCluster cluster(200, 1.0);
  open(cluster, 200);
  const char* kBytes =
      "return [...performance.getEntriesByType('resource'), "
      "...performance.getEntriesByType('navigation')].map(e => [e.name, e.transferSize])";
  const json loads = browser().ask(kBytes);
  std::size_t bytes = 0;
  for (const json& load : loads) bytes += load[1].get<std::size_t>();
  EXPECT_GT(bytes, 250'000U) << loads;
  EXPECT_LT(bytes, 2'000'000U) << loads;
  EXPECT_GE(browser().ask("return kith.charts.list[0].input.rows.length").get<int>(), 890);
  std::cout << "bytes at first: " << bytes << " " << loads << "\n";

  // Rows are filled anew, never made anew.
  browser().ask(R"js(
window.added = 0; window.longest = 0; window.firstRow = document.querySelector('#members tr');
new MutationObserver(list => list.forEach(m => window.added +=
    m.addedNodes.length)).observe(document.getElementById('members'), {childList: true});
new PerformanceObserver(list => list.getEntries().forEach(e => window.longest =
    Math.max(window.longest, e.duration))).observe({type: 'longtask'});
window.step = document.querySelector('#members tr').cells[3].textContent;
window.changes = 0;
window.gaps = []; let last = performance.now();
const tick = now => { window.gaps.push(now - last); last = now; requestAnimationFrame(tick); };
requestAnimationFrame(tick);
new MutationObserver(() => { const now = document.querySelector('#members tr').cells[3].textContent;
  if (now !== window.step) { window.step = now; ++window.changes; }
    }).observe(document.getElementById('members'), {childList: true, subtree: true,
    characterData: true});
)js");
  ASSERT_TRUE(browser().wait("return window.changes >= 1"));
  EXPECT_EQ(browser().ask("return window.added"), 0);
  EXPECT_EQ(browser().ask("return window.firstRow.isConnected"), true);
  std::cout << "longest task with 200 members, ms: " << browser().ask("return window.longest")
            << "; frames over 50 ms: "
            << browser().ask(
                   "return window.gaps.filter(g => g > 50).length + ' of ' + window.gaps.length")
            << "\n";
  const json later = browser().ask(kBytes);
  std::cout << "bytes of a later look: " << later[later.size() - 2] << "\n";
  browser().screenshot("many");
  EXPECT_THAT(browser().console(), IsEmpty());
}

TEST_F(PageOfMany, IsNeverWiderThanItsWindow) {
  FakeCluster cluster(200, 0.1);
  cluster.rename(3, std::string(128, 'W'));
  open(cluster, 200);
  for (const int width : {320, 375, 768, 1024, 1440, 2560}) {
    browser().resize(width, 800, width < 500);
    EXPECT_LE(overflow(browser()), 0) << width;
    if (width == 375) browser().screenshot("phone");
  }
}

TEST_F(PageOfMany, CanBeReadInLightAndDark) {
  FakeCluster cluster(200, 0.1);
  cluster.set_state(5, "left");
  open(cluster, 200);
  EXPECT_THAT(poor_contrast(browser()), IsEmpty());
  browser().prefer_dark(true);
  ASSERT_TRUE(browser().wait("return document.documentElement.dataset.theme === 'dark'"));
  EXPECT_THAT(poor_contrast(browser()), IsEmpty());
}

// The browser of one who prefers light stays light until dark is chosen, and the other way round.
TEST_F(PageOfMany, IsAsDarkAsWasChosenWhateverTheBrowserPrefers) {
  FakeCluster cluster(5, 0.1);
  open(cluster, 5);
  const std::string look =
      "return [document.getElementById('theme').textContent, "
      "getComputedStyle(document.body).backgroundColor, "
      "getComputedStyle(document.documentElement).colorScheme]";
  const json light = {"rgb(244, 246, 249)", "light"}, dark = {"rgb(14, 18, 24)", "dark"};
  const auto is = [&](const char* theme, const json& colors) {
    EXPECT_EQ(browser().ask(look), json({std::string("Theme: ") + theme, colors[0], colors[1]}));
  };
  for (const bool prefers_dark : {false, true}) {
    browser().prefer_dark(prefers_dark);
    const char* wanted = prefers_dark ? "dark" : "light";
    ASSERT_TRUE(browser().wait(std::string("return document.documentElement.dataset.theme === '") +
                               wanted + "'"));
    is("auto", prefers_dark ? dark : light);
    browser().ask("document.getElementById('theme').click()");
    is("light", light);
    browser().ask("document.getElementById('theme').click()");
    is("dark", dark);
    browser().ask("document.getElementById('theme').click()");
    is("auto", prefers_dark ? dark : light);
  }
}

// In one script, so that no frame passes in between.
TEST_F(PageOfMany, HasNoChartInTheThemeBefore) {
  FakeCluster cluster(5, 0.1);
  open(cluster, 5);
  ASSERT_TRUE(browser().wait("return kith.charts.list.every(c => c.input)"));
  const json counts = browser().ask(R"js(
const line = () => getComputedStyle(document.documentElement).getPropertyValue("--line").trim();
const light = [1, 3, 5].map(i => parseInt(line().slice(i, i + 2), 16));
const lines = figure => {
  const c = figure.querySelector("canvas");
  const have = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
  let count = 0;
  for (let i = 0; i < have.length; i += 4)
    if (have[i + 3] > 200 && light.every((v, k) => Math.abs(have[i + k] - v) < 12)) ++count;
  return count;
};
kith.charts.list.forEach(c => c.draw());
const curves = kith.charts.list.filter(c => c.series).map(c => c.figure);
const before = curves.map(lines), theme = document.getElementById("theme");
while (document.documentElement.dataset.theme !== "dark") theme.click();
const after = curves.map(lines);
while (!theme.textContent.includes("auto")) theme.click();
return {before, after};
)js");
  EXPECT_THAT(counts["before"].get<std::vector<int>>(), AllOf(SizeIs(6), Each(Gt(100)))) << counts;
  EXPECT_THAT(counts["after"].get<std::vector<int>>(), Each(Lt(20))) << counts;
}

TEST_F(PageOfMany, HasNamesAndRolesForThoseWhoListen) {
  FakeCluster cluster(5, 0.1);
  open(cluster, 5);
  EXPECT_THAT(nameless(browser()), IsEmpty());
  EXPECT_THAT(roles(browser()), IsSupersetOf({"banner", "main", "contentinfo", "heading", "table",
                                              "columnheader", "rowheader", "row", "cell", "button",
                                              "searchbox", "status", "list", "listitem", "link"}));
  EXPECT_TRUE(
      browser().wait("return document.querySelector('#loss canvas').getAttribute('aria-label')"
                     ".includes('this node now')"));
}

TEST_F(PageOfMany, IsReachedAndUsedByKeyboard) {
  FakeCluster cluster(5, 0.1);
  open(cluster, 5);
  EXPECT_THAT(unreachable(browser()), IsEmpty());
  browser().ask(
      "[...document.querySelectorAll('#columns button')].find(b => b.textContent === "
      "'Step').focus()");
  browser().press("Enter", 13);
  EXPECT_EQ(browser().ask("return document.querySelector('th[aria-sort]').textContent"), "Step");
  browser().ask("document.querySelector('[data-span=run]').focus()");
  browser().press("Enter", 13);
  EXPECT_EQ(
      browser().ask("return document.querySelector('[data-span][aria-pressed=true]').textContent"),
      "Whole run");
}

TEST_F(PageOfMany, ShowsNamesOfOthersAsText) {
  FakeCluster cluster(5, 0.0);
  const std::string name = "<img src=x onerror=\"document.title='taken'\"><b>bold</b>";
  cluster.rename(2, name);
  cluster.journal().events().log(LogLevel::kWarn, "node", "member dead",
                                 {{"name", name}, {"why", name}});
  open(cluster, 5);
  EXPECT_EQ(browser().ask("return document.querySelectorAll('#members img, #members b, #events "
                          "img, #events b').length"),
            0);
  EXPECT_TRUE(browser()
                  .ask("return document.getElementById('members').textContent")
                  .get<std::string>()
                  .find(name) != std::string::npos);
  EXPECT_NE(browser().ask("return document.title"), "taken");
  EXPECT_THAT(browser().console(), IsEmpty());
}

TEST_F(PageOfMany, FollowsMembersThatGoAndCome) {
  FakeCluster cluster(5, 0.0);
  open(cluster, 5);
  cluster.remove(4);
  EXPECT_TRUE(browser().wait("return document.querySelectorAll('#members tr').length === 4"));
  cluster.set_state(1, "dead");
  EXPECT_TRUE(browser().wait("return document.querySelectorAll('.mark.dead').length === 1"));
  browser().ask(
      "[...document.querySelectorAll('#filters button')].find(b => "
      "b.textContent.startsWith('dead')).click()");
  EXPECT_EQ(browser().ask("return document.querySelectorAll('#members tr').length"), 1);
}

TEST_F(PageOfMany, SaysWhenItsNodeRefusesAndGoesOnByItself) {
  FakeCluster cluster(5, 0.0);
  open(cluster, 5);
  cluster.refuse_with(503);
  EXPECT_TRUE(browser().wait(
      "return document.getElementById('link').textContent.includes('too many pages')", true));
  EXPECT_EQ(browser().ask("return document.querySelectorAll('#members tr').length"), 5)
      << "its last word stays";
  cluster.refuse_with(0);
  EXPECT_TRUE(
      browser().wait("return document.getElementById('link').textContent === 'live'", true));
}

}  // namespace
}  // namespace kith::page::testing
