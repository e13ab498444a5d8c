// kith doctor: the checks as lines or JSON.
#include <nlohmann/json.hpp>

#include "node/cli/cli_context.h"
#include "node/cli/cli_table.h"
#include "node/cli/doctor.h"

namespace kith::node {
namespace {

using Json = nlohmann::ordered_json;

const char* word_of(CheckResult result) {
  switch (result) {
    case CheckResult::kOk:
      return "ok";
    case CheckResult::kFailed:
      return "FAIL";
    case CheckResult::kSkipped:
      return "-";
  }
  return "?";
}

std::string lines_of(const std::vector<DoctorCheck>& checks) {
  std::string text;
  const auto column = [](std::string cell, std::size_t width) {
    cell.resize(std::max(width, cell.size() + 1), ' ');
    return cell;
  };
  for (const DoctorCheck& check : checks) {
    text +=
        column(word_of(check.result), 6) + column(check.name, 12) + printable(check.text) + "\n";
    if (!check.remedy.empty()) text += column("", 6) + "-> " + printable(check.remedy) + "\n";
  }
  return text;
}

Json json_of(const std::string& address, const std::vector<DoctorCheck>& checks) {
  Json list = Json::array();
  for (const DoctorCheck& check : checks) {
    const char* result = check.result == CheckResult::kOk       ? "ok"
                         : check.result == CheckResult::kFailed ? "failed"
                                                                : "skipped";
    list.push_back(
        {{"name", check.name}, {"result", result}, {"text", check.text}, {"remedy", check.remedy}});
  }
  return {{"address", address}, {"healthy", healthy(checks)}, {"checks", list}};
}

// Where others would dial this side: --listen, else the configuration's node.listen, if it is set.
std::string listen_of(const DoctorArguments& arguments, const Config& config) {
  if (!arguments.listen.empty()) return arguments.listen;
  const auto origin = config.origin.find("node.listen");
  const bool set = origin != config.origin.end() && origin->second != "default";
  return set || !arguments.config.file.empty() ? config.node.listen : "";
}

}  // namespace

Result<int> doctor_command(CliContext& context, const DoctorArguments& arguments) {
  DoctorRequest request;
  request.address = arguments.address;
  KITH_ASSIGN(request.config, load_config_for(context, arguments.config));
  request.listen = listen_of(arguments, request.config);
  KITH_ASSIGN(const auto checks, diagnose(request));
  if (context.json)
    context.out
        << json_of(arguments.address, checks).dump(2, ' ', false, Json::error_handler_t::replace)
        << "\n";
  else
    context.out << lines_of(checks);
  return healthy(checks) ? 0 : exit_code(ErrorCode::kUnhealthy);
}

}  // namespace kith::node
