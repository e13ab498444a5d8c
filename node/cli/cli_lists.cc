// Commands of `kith` that list what can be chosen, straight from the tables that the daemon chooses
// from.
#include <nlohmann/json.hpp>

#include "compute/model.h"
#include "gossip/method.h"
#include "gossip/topology.h"
#include "node/cli/cli_context.h"
#include "node/cli/cli_table.h"
#include "node/config/config_value.h"

namespace kith::node {
namespace {

using Json = nlohmann::ordered_json;

// Rows of equal keys, as a table or as a JSON list.
int show(CliContext& context, const std::vector<std::string>& keys,
         const std::vector<std::vector<Json>>& rows) {
  Json list = Json::array();
  std::vector<std::string> header;
  for (std::string key : keys) {
    for (char& c : key)
      c = c == '_' ? '-' : (c >= 'a' && c <= 'z') ? static_cast<char>(c - 'a' + 'A') : c;
    header.push_back(std::move(key));
  }
  CliTable table(header);
  for (const auto& row : rows) {
    Json object;
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      object[keys[i]] = row[i];
      cells.push_back(row[i].is_string()    ? row[i].get<std::string>()
                      : row[i].is_boolean() ? (row[i].get<bool>() ? "yes" : "no")
                                            : row[i].dump());
    }
    list.push_back(std::move(object));
    table.add(std::move(cells));
  }
  context.out << (context.json ? list.dump(2) + "\n" : table.text());
  return 0;
}

}  // namespace

Result<int> methods_command(CliContext& context) {
  std::vector<std::vector<Json>> rows;
  for (const auto& m : gossip::methods())
    rows.push_back({m.name, m.summary, gossip::describe(m.preset), m.source});
  return show(context, {"name", "summary", "choices", "source"}, rows);
}

Result<int> models_command(CliContext& context) {
  std::vector<std::vector<Json>> rows;
  for (const auto& m : compute::model_kinds())
    rows.push_back({m.kind, m.summary, m.keys, m.needs_torch});
  return show(context, {"kind", "summary", "keys", "needs_libtorch"}, rows);
}

Result<int> topologies_command(CliContext& context) {
  std::vector<std::vector<Json>> rows;
  for (const auto& t : gossip::topologies())
    rows.push_back({t.name, t.summary, t.matching, t.source});
  return show(context, {"name", "summary", "pair_deltas", "source"}, rows);
}

Result<int> codecs_command(CliContext& context) {
  std::vector<std::vector<Json>> rows;
  for (const auto& c : gossip::codecs()) rows.push_back({c.name, c.bytes_per_value, c.summary});
  return show(context, {"name", "bytes_per_value", "summary"}, rows);
}

}  // namespace kith::node
