// Browser: a headless Chromium, driven by its own chromedriver over WebDriver (W3C) and, where that
// has no word for it, the DevTools protocol. Both are ended with the object. Answers are what the
// page's own script says, so tests ask the page what it shows instead of guessing from pictures.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/e2e/cluster.h"

namespace kith::page::testing {

class Browser {
 public:
  static bool installed();

  // `folder`: for its log and screenshots.
  explicit Browser(const std::string& folder);
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  // False when chromedriver or Chromium did not start: log() says why.
  [[nodiscard]] bool started() const { return !session_.empty(); }
  [[nodiscard]] std::string log() const;

  void open(const std::string& url);
  // What `return ...` in the script returns; null with a failed test when it throws.
  nlohmann::json ask(const std::string& script);
  // Until the script returns true; a failed test when the bound passes. The page is made to look
  // again for each try, so that no test waits for its timer, unless that is what it tests.
  bool wait(const std::string& script, bool by_itself = false);
  void press(const std::string& key, int code);  // "Tab", 9
  void resize(int width, int height, bool phone = false);
  void prefer_dark(bool dark);
  void screenshot(const std::string& name);  // the whole page, as folder/name.png
  nlohmann::json devtools(const std::string& command, const nlohmann::json& parameters);
  // What the page has complained of since the last time: errors and refused loads.
  nlohmann::json console();

 private:
  nlohmann::json execute(const std::string& script);
  nlohmann::json request(const std::string& method, const std::string& path,
                         const nlohmann::json& body = {});

  const std::string folder_;
  e2e::Node driver_;
  std::string address_, session_, why_;
};

}  // namespace kith::page::testing
