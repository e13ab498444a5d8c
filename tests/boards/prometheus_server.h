// Debian's Prometheus as a process of the test: on a free loopback port, data in the test's folder,
// ended with the object.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/cluster.h"

namespace kith::boards::testing {

// Text as a part of a URL's query.
std::string encoded(const std::string& text);

class PrometheusServer {
 public:
  static bool installed();

  // Scrapes `targets` (host:port) each second as job "kith", with the rules in `rules_file`.
  PrometheusServer(const std::string& folder, const std::vector<std::string>& targets,
                   const std::string& rules_file);

  [[nodiscard]] bool ready();

  // The series that an instant query finds; null with a failed test when the query is refused.
  [[nodiscard]] nlohmann::json query(const std::string& expression);
  // How many of these have a value that is a number.
  [[nodiscard]] std::size_t finite_series(const std::string& expression);
  // What Grafana makes of label_values(selector, label).
  [[nodiscard]] nlohmann::json label_values(const std::string& selector, const std::string& label);
  [[nodiscard]] nlohmann::json get(const std::string& path_and_query);
  [[nodiscard]] std::string log() const { return process_.log(); }

 private:
  e2e::Node process_;
};

}  // namespace kith::boards::testing
