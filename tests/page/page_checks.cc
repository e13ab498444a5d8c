#include "tests/page/page_checks.h"

namespace kith::page::testing {

using nlohmann::json;

namespace {

constexpr const char* kContrast = R"js(
const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
const rgba = color => {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
};
const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 -
    top[3])).concat(1);
const ground = e => {
  const layers = [];
  for (; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
  return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
};
const light = c => { const [r, g, b] = c.map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 :
    ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x
    + 0.05) / (y + 0.05); };
const poor = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const e = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || ["SCRIPT", "NOSCRIPT"].includes(e.tagName)) continue;
  if (!e.checkVisibility() || e.closest(".unseen") || e.closest(".skip")) continue;
  const behind = ground(e), ratio = contrast(over(rgba(getComputedStyle(e).color), behind), behind);
  if (ratio < 4.5) poor.push([walker.currentNode.data.trim(), ratio]);
}
const style = getComputedStyle(document.documentElement), panel =
    rgba(style.getPropertyValue("--panel"));
for (const [name, least] of [["own", 3], ["mean", 3], ["third", 3], ["good", 3], ["wait", 3],
    ["bad", 3], ["faint", 4.5]]) {
  const ratio = contrast(rgba(style.getPropertyValue("--" + name)), panel);
  if (ratio < least) poor.push(["--" + name, ratio]);
}
return poor;
)js";

json tree(Browser& browser) {
  return browser.devtools("Accessibility.getFullAXTree", json::object())
      .value("nodes", json::array());
}

std::string role_of(const json& node) {
  return node.contains("role") ? node["role"].value("value", "") : "";
}

constexpr const char* kUsable =
    "[...document.querySelectorAll('a[href], button, input, [tabindex=\"0\"]')].filter(e => "
    "e.checkVisibility())";

}  // namespace

int overflow(Browser& browser) {
  return browser
      .ask("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
      .get<int>();
}

json poor_contrast(Browser& browser) { return browser.ask(kContrast); }

json nameless(Browser& browser) {
  static const std::set<std::string> kNeedNames = {
      "button", "link",  "textbox",     "searchbox", "img",  "image", "table",
      "region", "group", "progressbar", "heading",   "list", "figure"};
  json out = json::array();
  for (const json& node : tree(browser)) {
    if (node.value("ignored", false) || !kNeedNames.contains(role_of(node))) continue;
    const bool named = node.contains("name") && !node["name"].value("value", "").empty();
    // A legend and a figure are named by the heading before them.
    if (!named && role_of(node) != "list" && role_of(node) != "figure") out.push_back(node);
  }
  return out;
}

std::set<std::string> roles(Browser& browser) {
  std::set<std::string> out;
  for (const json& node : tree(browser))
    if (!node.value("ignored", false)) out.insert(role_of(node));
  return out;
}

json unreachable(Browser& browser) {
  browser.ask(
      "document.activeElement.blur(); window.scrollTo(0, 0); window.reached = new Set(); "
      "window.dim = []");
  const int count = browser.ask(std::string("return ") + kUsable + ".length").get<int>();
  for (int i = 0; i < count + 3; ++i) {
    browser.press("Tab", 9);
    browser.ask(
        "const e = document.activeElement; window.reached.add(e);"
        "if (e !== document.body && getComputedStyle(e).outlineStyle === 'none') "
        "window.dim.push(e.outerHTML.slice(0, 90))");
  }
  return browser.ask(
      std::string("return ") + kUsable +
      ".filter(e => !window.reached.has(e)).map(e => e.outerHTML.slice(0, 90)).concat(window.dim)");
}

}  // namespace kith::page::testing
