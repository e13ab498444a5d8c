#include "tests/boards/board_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

namespace kith::boards::testing {

using nlohmann::json;
namespace fs = std::filesystem;

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.is_open()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

std::map<std::string, json> checked_in_boards() {
  std::map<std::string, json> out;
  for (const auto& entry : fs::directory_iterator(KITH_SOURCE_DIR "/monitoring/dashboards")) {
    if (entry.path().extension() != ".json") continue;
    out[entry.path().stem()] = json::parse(read_text(entry.path()), nullptr, false);
  }
  return out;
}

std::vector<json> panels_of(const json& board) {
  std::vector<json> out;
  for (const json& panel : board["panels"])
    if (panel["type"] != "row") out.push_back(panel);
  return out;
}

std::vector<Asked> queries_of(const std::string& name, const json& board) {
  std::vector<Asked> out;
  for (const json& panel : panels_of(board))
    for (const json& target : panel["targets"])
      out.push_back({name + " / " + panel["title"].get<std::string>(), target["expr"]});
  return out;
}

std::string filled_in(std::string expression) {
  static const std::pair<const char*, const char*> kValues[] = {{"$__rate_interval", "1m"},
                                                                {"$__range", "5m"},
                                                                {"$job", ".+"},
                                                                {"$instance", ".+"},
                                                                {"$run", ".+"}};
  for (const auto& [name, value] : kValues) {
    for (auto at = expression.find(name); at != std::string::npos; at = expression.find(name))
      expression.replace(at, std::string_view(name).size(), value);
  }
  return expression;
}

std::vector<std::string> metrics_in(const std::string& expression) {
  static const std::regex kName(R"re(\b(kith_[a-z0-9_]+|process_[a-z0-9_]+|up\b))re");
  static const std::regex kPart("_(bucket|sum|count)$");
  std::vector<std::string> out;
  for (auto it = std::sregex_iterator(expression.begin(), expression.end(), kName);
       it != std::sregex_iterator(); ++it)
    out.push_back(std::regex_replace(it->str(), kPart, ""));
  return out;
}

}  // namespace kith::boards::testing
