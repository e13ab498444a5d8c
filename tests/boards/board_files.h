// The boards as they are checked in, and what they ask: every query of every panel, every variable.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kith::boards::testing {

std::string read_text(
    const std::string& path);  // fails the running test when there is no such file

// monitoring/dashboards/*.json by file name without ".json".
std::map<std::string, nlohmann::json> checked_in_boards();

// Panels that ask something: all but rows.
std::vector<nlohmann::json> panels_of(const nlohmann::json& board);

struct Asked {
  std::string where;  // "kith-node / Threads"
  std::string expression;
};
std::vector<Asked> queries_of(const std::string& name, const nlohmann::json& board);

// What Grafana asks for when everything is chosen and the shown time is five minutes.
std::string filled_in(std::string expression);

// Names of metrics (kith_..., process_..., up) that an expression asks for, histograms without
// _bucket.
std::vector<std::string> metrics_in(const std::string& expression);

}  // namespace kith::boards::testing
