// Commands of `kith` that talk to a running daemon.
#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "node/cli/cli_context.h"
#include "node/cli/cli_table.h"
#include "node/cli/control_client.h"
#include "node/config/config_value.h"
#include "node/text/address.h"

namespace kith::node {
namespace {

using Json = nlohmann::ordered_json;

Result<ControlClient> client_of(const CliContext& context) {
  return ControlClient::at(context.at.empty() ? kDefaultAt : context.at);
}

Result<Json> parsed(const std::string& body, const std::string& path) {
  Json json = Json::parse(body, nullptr, false);
  if (!json.is_object())
    return fail("the answer to " + path + " is not JSON: is that a kithd of this version?");
  return json;
}

std::string dumped(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// A JSON value for a table: six digits are enough for people.
std::string cell(const Json& json) {
  if (json.is_null()) return "-";
  if (json.is_string()) return printable(json.get<std::string>());
  if (json.is_number_float()) {
    std::array<char, 32> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), json.get<double>(),
                                   std::chars_format::general, 6);
    return {buffer.data(), end.ptr};
  }
  return json.dump();
}

std::string field(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? "-" : cell(*found);
}

// What people look for first, then whatever else the daemon says.
std::string status_table(const Json& status) {
  constexpr std::string_view kFirst[] = {"name",
                                         "id",
                                         "run",
                                         "state",
                                         "healthy",
                                         "unhealthy_because",
                                         "waiting_for",
                                         "last_error",
                                         "step",
                                         "epoch",
                                         "progress",
                                         "loss",
                                         "accuracy",
                                         "learning_rate",
                                         "steps_per_second",
                                         "members",
                                         "exchanges_total",
                                         "exchanges_failed_total",
                                         "staleness_steps",
                                         "consensus_distance",
                                         "last_checkpoint_step"};
  CliTable table({"", ""});
  for (const std::string_view key : kFirst)
    if (const auto found = status.find(key); found != status.end())
      table.add({std::string(key), cell(*found)});
  for (const auto& [key, value] : status.items())
    if (std::ranges::find(kFirst, key) == std::end(kFirst))
      table.add({printable(key), cell(value)});
  return table.text();
}

std::string seconds_since(const Json& member) {
  const auto found = member.find("last_exchange_seconds");
  if (found == member.end() || !found->is_number()) return "-";
  return std::to_string(static_cast<long long>(found->get<double>() + 0.5)) + " s";
}

constexpr char kMembersLegend[] =
    "\nSTEP: optimiser steps that the member itself has made; one that joins begins at 0.\n"
    "LAG: steps that its model is behind the deepest living one; - of members that are not here.\n";

std::string members_table(const Json& members) {
  CliTable table(
      {"NAME", "ID", "ADDRESS", "STATE", "STEP", "LAG", "LOSS", "RTT-MS", "LAST-EXCHANGE"});
  for (const Json& m : members) {
    if (!m.is_object()) continue;
    table.add({field(m, "name"), field(m, "id").substr(0, 8), field(m, "address"),
               field(m, "state"), field(m, "step"), field(m, "lag_steps"), field(m, "loss"),
               field(m, "rtt_ms"), seconds_since(m)});
  }
  return table.text();
}

std::string health_lines(const Json& report) {
  std::string text;
  for (const Json& check : report.value("checks", Json::array())) {
    const bool ok = check.is_object() && check.value("ok", false);
    const bool only_waits = check.is_object() && check.value("concern", "") == "readiness";
    text += std::string(ok           ? "ok    "
                        : only_waits ? "wait  "
                                     : "FAIL  ") +
            field(check, "name") + ": " + field(check, "text") + "\n";
  }
  return text;
}

Result<int> run_command(CliContext& context, const std::string& name,
                        const ControlClient::Parameters& parameters) {
  if (context.at.empty())
    return fail(ErrorCode::kUsage,
                "say which daemon: --at DATA_DIR (or KITH_AT), its data directory");
  KITH_ASSIGN(const ControlClient client, client_of(context));
  KITH_ASSIGN(const std::string message, client.command(name, parameters));
  context.out << (context.json ? dumped({{"ok", true}, {"message", message}})
                               : printable(message) + "\n");
  return 0;
}

}  // namespace

Result<int> status_command(CliContext& context) {
  KITH_ASSIGN(const ControlClient client, client_of(context));
  KITH_ASSIGN(const std::string body, client.read("/status"));
  KITH_ASSIGN(const Json status, parsed(body, "/status"));
  if (context.json) {
    context.out << dumped(status);
    return 0;
  }
  context.out << status_table(status);
  return 0;
}

Result<int> members_command(CliContext& context) {
  KITH_ASSIGN(const ControlClient client, client_of(context));
  KITH_ASSIGN(const std::string body, client.read("/members"));
  KITH_ASSIGN(const Json json, parsed(body, "/members"));
  const auto members = json.find("members");
  if (members == json.end() || !members->is_array())
    return fail("the answer to /members has no list of members");
  if (context.json) {
    context.out << dumped(json);
    return 0;
  }
  context.out << members_table(*members) << kMembersLegend;
  if (const auto shows = json.find("shows"); shows != json.end() && shows->is_string())
    context.out << "\n" << printable(shows->get<std::string>()) << "\n";
  return 0;
}

Result<int> health_command(CliContext& context) {
  KITH_ASSIGN(const ControlClient client, client_of(context));
  KITH_ASSIGN(const ControlClient::Reply reply, client.get("/healthz?format=json"));
  KITH_ASSIGN(const Json report, parsed(reply.body, "/healthz"));
  context.out << (context.json ? dumped(report) : health_lines(report));
  auto healthy = report.find("well");  // more than /healthz asks
  if (healthy == report.end()) healthy = report.find("healthy");
  const bool good = healthy != report.end() && healthy->is_boolean() && healthy->get<bool>();
  return good ? 0 : exit_code(ErrorCode::kUnhealthy);
}

Result<int> checkpoint_now_command(CliContext& context) {
  return run_command(context, "checkpoint", {});
}

Result<int> leave_command(CliContext& context) { return run_command(context, "leave", {}); }

Result<int> join_command(CliContext& context, const std::string& address) {
  KITH_ASSIGN(HostPort seed, parse_address(address, PortRule::kMayBeAbsent));
  if (seed.port == 0) seed.port = kDefaultPort;
  return run_command(context, "join", {{"address", seed.text()}});
}

}  // namespace kith::node
