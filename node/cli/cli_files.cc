// Commands of `kith` about files: checkpoints, cluster keys, the configuration.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "node/cli/cli_context.h"
#include "node/cli/control_client.h"
#include "node/config/config.h"
#include "node/config/config_keys.h"
#include "node/config/config_value.h"
#include "node/config/daemon_flags.h"
#include "node/mesh/cluster_key.h"
#include "node/store/checkpoint.h"

namespace kith::node {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void say(CliContext& context, const std::string& message, const Json& more = Json::object()) {
  if (!context.json) {
    context.out << message << "\n";
    return;
  }
  Json json = {{"ok", true}, {"message", message}};
  json.update(more);
  context.out << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

// A file as it is; of a data_dir its final model, else (unless only that will do) its newest
// checkpoint.
Result<std::string> file_in(const std::string& path, bool only_averaged) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return path;
  const std::string model = (fs::path(path) / "model.safetensors").string();
  if (fs::exists(model, error)) return model;
  NullLog log;
  const auto files = CheckpointStore((fs::path(path) / "checkpoints").string(), 1, log).files();
  if (only_averaged)
    return fail(
        path +
        " has no final model (model.safetensors) and no daemon runs there: nothing averaged "
        "to export; without --averaged the newest checkpoint is taken");
  if (files.empty()) return fail(path + " has neither a final model nor a checkpoint");
  return files.front();
}

Result<int> export_file(CliContext& context, const std::string& from,
                        const ExportArguments& arguments) {
  KITH_ASSIGN(const std::string file, file_in(from, arguments.averaged));
  KITH_TRY(export_checkpoint(file, arguments.to));
  say(context, "exported " + file + " to " + arguments.to,
      {{"from", file}, {"file", arguments.to}});
  return 0;
}

// The whole command, with what was given in its place.
std::string full_export(const CliContext& context, const ExportArguments& arguments) {
  const std::string from = !arguments.from.empty() ? arguments.from
                           : context.at.empty()    ? "--at DATA_DIR"
                                                   : "--at " + context.at;
  return "kith checkpoint export " + std::string(arguments.averaged ? "--averaged " : "") + from +
         " -o " + (arguments.to.empty() ? "model.safetensors" : arguments.to);
}

}  // namespace

Result<Config> load_config_for(CliContext& context, const ConfigArguments& arguments) {
  std::vector<const char*> argv = {"kith"};
  for (const std::string& setting : arguments.settings)
    argv.insert(argv.end(), {"--set", setting.c_str()});
  KITH_ASSIGN(ParsedFlags flags, parse_kithd_flags(static_cast<int>(argv.size()), argv.data()));
  flags.file = arguments.file;
  return config_from_flags(flags, context.environment);
}

Result<int> checkpoint_export_command(CliContext& context, const ExportArguments& arguments) {
  if (arguments.to.empty())
    return fail(ErrorCode::kUsage, "say where to: " + full_export(context, arguments));
  if (!arguments.from.empty()) return export_file(context, arguments.from, arguments);
  if (context.at.empty())
    return fail(
        ErrorCode::kUsage,
        "say what to export, a checkpoint, a model, a data directory, or the directory of a "
        "running kithd: " +
            full_export(context, arguments));
  const auto client = ControlClient::at(context.at);
  const auto absolute =
      fs::absolute(arguments.to).string();  // the daemon has another current folder
  auto message = client ? client->command("export", {{"path", absolute},
                                                     {"averaged", arguments.averaged ? "1" : "0"}})
                        : Result<std::string>(fail(Error(client.error())));
  std::error_code error;
  const bool is_absent = !message && message.error().code == ErrorCode::kNoDaemon;
  if (is_absent && fs::is_directory(context.at, error))
    return export_file(context, context.at, arguments);
  if (!message) return fail(std::move(message.error()));
  say(context, *message, {{"file", absolute}});
  return 0;
}

Result<int> checkpoint_show_command(CliContext& context, const std::string& file) {
  KITH_ASSIGN(const std::string path, file_in(file, false));
  KITH_ASSIGN(const std::string text, show_checkpoint(path, context.json));
  context.out << text;
  return 0;
}

Result<int> keygen_command(CliContext& context, const std::string& file) {
  KITH_TRY(ClusterKey::generate().save(file));
  say(context,
      "wrote " + file +
          " (mode 0600): copy it to every node of the cluster and set cluster.key_file",
      {{"file", file}});
  return 0;
}

Result<int> config_show_command(CliContext& context, const ConfigArguments& arguments) {
  KITH_ASSIGN(const Config config, load_config_for(context, arguments));
  context.out << show_config(config, context.json);
  return 0;
}

Result<int> config_check_command(CliContext& context, const ConfigArguments& arguments) {
  KITH_ASSIGN(const Config config, load_config_for(context, arguments));
  KITH_ASSIGN(const std::string report, check_report(config));
  if (context.json)
    say(context, std::string(trimmed(report.substr(0, report.find('\n')))),
        {{"notes", config.notes}});
  else
    context.out << report << "\n";
  return 0;
}

Result<int> config_keys_command(CliContext& context) {
  if (!context.json) {
    context.out << describe_keys();
    return 0;
  }
  Json list = Json::array();
  const Config defaults;
  for (const KeyInfo& key : config_keys())
    list.push_back({{"key", key.name},
                    {"default", value_text(key, defaults)},
                    {"expected", expected_of(key)},
                    {"environment", environment_name(key.name)},
                    {"unit", key.unit},
                    {"help", key.help}});
  context.out << list.dump(2) << "\n";
  return 0;
}

}  // namespace kith::node
