#include "tests/boards/prometheus_server.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace kith::boards::testing {

using nlohmann::json;

namespace {

constexpr const char* kProgram = "/usr/bin/prometheus";

json configuration(const std::vector<std::string>& targets, const std::string& rules_file) {
  return {{"global", {{"scrape_interval", "1s"}, {"evaluation_interval", "1s"}}},
          {"rule_files", json::array({rules_file})},
          {"scrape_configs",
           json::array({{{"job_name", "kith"},
                         {"static_configs", json::array({{{"targets", targets}}})}}})}};
}

}  // namespace

std::string encoded(const std::string& text) {
  std::string out;
  for (const unsigned char c : text) {
    char hex[4];
    std::snprintf(hex, sizeof hex, "%%%02X", c);
    if (std::isalnum(c) != 0)
      out += static_cast<char>(c);
    else
      out += hex;
  }
  return out;
}

bool PrometheusServer::installed() { return ::access(kProgram, X_OK) == 0; }

// JSON is YAML.
PrometheusServer::PrometheusServer(const std::string& folder,
                                   const std::vector<std::string>& targets,
                                   const std::string& rules_file)
    : process_("prometheus", folder) {
  std::ofstream(folder + "/prometheus.yaml") << configuration(targets, rules_file).dump(2);
  process_.set_program(kProgram);
  process_.start(
      {"--config.file=" + folder + "/prometheus.yaml", "--storage.tsdb.path=" + folder + "/tsdb",
       "--web.listen-address=127.0.0.1:0", "--log.format=json"},
      {});
}

// It says in its log which port it got.
bool PrometheusServer::ready() {
  return e2e::wait_until(e2e::seconds(60),
                         [this] {
                           std::istringstream lines(process_.log());
                           for (std::string line; std::getline(lines, line);) {
                             const json entry = json::parse(line, nullptr, false);
                             if (entry.is_object() && entry.value("msg", "") == "Listening on")
                               process_.set_http(entry.value("address", ""));
                           }
                           return process_.get_text("/-/ready").find("Ready") !=
                                      std::string::npos ||
                                  !process_.running();
                         }) &&
         process_.running();
}

json PrometheusServer::get(const std::string& path_and_query) {
  return process_.get(path_and_query);
}

json PrometheusServer::query(const std::string& expression) {
  const json reply = get("/api/v1/query?query=" + encoded(expression));
  if (reply.is_object() && reply.value("status", "") == "success") return reply["data"]["result"];
  ADD_FAILURE() << expression << "\n" << reply;
  return nullptr;
}

std::size_t PrometheusServer::finite_series(const std::string& expression) {
  std::size_t count = 0;
  for (const json& series : query(expression))
    count +=
        std::isfinite(std::strtod(series["value"][1].get<std::string>().c_str(), nullptr)) ? 1 : 0;
  return count;
}

json PrometheusServer::label_values(const std::string& selector, const std::string& label) {
  const json reply = get("/api/v1/label/" + label + "/values?match%5B%5D=" + encoded(selector));
  return reply.is_object() ? reply["data"] : json();
}

}  // namespace kith::boards::testing
