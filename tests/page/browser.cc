#include "tests/page/browser.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <unistd.h>

#include <fstream>
#include <regex>

namespace kith::page::testing {

using nlohmann::json;

namespace {

constexpr const char* kDriver = "/usr/bin/chromedriver";
constexpr const char* kChromium = "/usr/bin/chromium";

std::string decoded(const std::string& base64) {
  std::string out;
  unsigned bits = 0, count = 0;
  for (const char c : base64) {
    static const std::string kAlphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const auto value = kAlphabet.find(c);
    if (value == std::string::npos) break;
    bits = bits << 6 | static_cast<unsigned>(value);
    if ((count += 6) < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xff);
  }
  return out;
}

json capabilities(const std::string& folder) {
  const json arguments = {"--headless=new",
                          "--no-sandbox",
                          "--disable-dev-shm-usage",
                          "--hide-scrollbars",
                          "--no-first-run",
                          "--disable-background-networking",
                          "--user-data-dir=" + folder + "/profile"};
  return {{"capabilities",
           {{"alwaysMatch",
             {{"browserName", "chrome"},
              {"goog:loggingPrefs", {{"browser", "ALL"}}},
              {"goog:chromeOptions", {{"binary", kChromium}, {"args", arguments}}}}}}}};
}

}  // namespace

bool Browser::installed() { return ::access(kDriver, X_OK) == 0 && ::access(kChromium, X_OK) == 0; }

Browser::Browser(const std::string& folder) : folder_(folder), driver_("chromedriver", folder) {
  driver_.set_program(kDriver);
  driver_.start({"--port=0"}, {});
  // It says which port it got.
  static const std::regex kPort(R"(successfully on port (\d+)\.)");
  std::smatch port;
  std::string said;
  e2e::wait_until(e2e::seconds(30), [&] {
    said = e2e::bytes_of(folder + "/out");
    return std::regex_search(said, port, kPort) || !driver_.running();
  });
  if (port.empty()) return;
  address_ = "127.0.0.1:" + port[1].str();
  const json reply = request("POST", "/session", capabilities(folder));
  if (reply.is_object()) session_ = reply.value("sessionId", "");
}

Browser::~Browser() {
  if (started()) request("DELETE", "/session/" + session_);
}

std::string Browser::log() const {
  return why_ + "\n" + e2e::bytes_of(folder_ + "/out") + driver_.log();
}

json Browser::request(const std::string& method, const std::string& path, const json& body) {
  httplib::Client client("http://" + address_);
  client.set_read_timeout(60);
  const std::string text = body.is_null() ? "{}" : body.dump();
  const auto reply = method == "GET"      ? client.Get(path.c_str())
                     : method == "DELETE" ? client.Delete(path.c_str())
                                          : client.Post(path.c_str(), text, "application/json");
  if (!reply) {
    why_ = path + ": chromedriver does not answer";
    return {};
  }
  const json answer = json::parse(reply->body, nullptr, false);
  if (reply->status != 200) {
    why_ = path + ": " + reply->body;
    return {};
  }
  return answer.is_object() && answer.contains("value") ? answer["value"] : json();
}

void Browser::open(const std::string& url) {
  request("POST", "/session/" + session_ + "/url", {{"url", url}});
}

json Browser::execute(const std::string& script) {
  why_.clear();
  return request("POST", "/session/" + session_ + "/execute/sync",
                 {{"script", script}, {"args", json::array()}});
}

json Browser::ask(const std::string& script) {
  json answer = execute(script);
  if (!why_.empty()) ADD_FAILURE() << why_.substr(0, 400);
  return answer;
}

bool Browser::wait(const std::string& script, bool by_itself) {
  const std::string look =
      by_itself ? "" : "if (typeof kith === 'object' && kith.look) kith.look(); ";
  const bool held =
      e2e::wait_until(e2e::seconds(30), [&] { return execute(look + script) == true; });
  EXPECT_TRUE(held) << script << "\n" << why_.substr(0, 400);
  return held;
}

json Browser::devtools(const std::string& command, const json& parameters) {
  return request("POST", "/session/" + session_ + "/goog/cdp/execute",
                 {{"cmd", command}, {"params", parameters}});
}

void Browser::press(const std::string& key, int code) {
  for (const char* type : {"rawKeyDown", "keyUp"}) {
    json event = {{"type", type}, {"key", key}, {"code", key}, {"windowsVirtualKeyCode", code}};
    if (key == "Enter" && std::string(type) == "rawKeyDown")
      event.update({{"type", "keyDown"}, {"text", "\r"}});
    devtools("Input.dispatchKeyEvent", event);
  }
}

void Browser::resize(int width, int height, bool phone) {
  devtools("Emulation.setDeviceMetricsOverride",
           {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", phone}});
}

void Browser::prefer_dark(bool dark) {
  const json feature = {{"name", "prefers-color-scheme"}, {"value", dark ? "dark" : "light"}};
  devtools("Emulation.setEmulatedMedia", {{"features", json::array({feature})}});
}

void Browser::screenshot(const std::string& name) {
  const json picture =
      devtools("Page.captureScreenshot", {{"format", "png"}, {"captureBeyondViewport", true}});
  std::ofstream(folder_ + "/" + name + ".png", std::ios::binary)
      << decoded(picture.value("data", ""));
}

json Browser::console() {
  json out = json::array();
  for (const json& entry :
       request("POST", "/session/" + session_ + "/se/log", {{"type", "browser"}}))
    if (entry.value("level", "") != "DEBUG" && entry.value("level", "") != "INFO")
      out.push_back(entry);
  return out;
}

}  // namespace kith::page::testing
