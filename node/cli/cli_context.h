// What every `kith` command gets, and the list of commands' functions. A command returns its exit
// code, or an error whose code becomes one. Results go to `out`, everything else to `err`.
#pragma once

#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/config/config.h"

namespace kith::node {

struct CliContext {
  std::ostream& out;
  std::ostream& err;
  std::map<std::string, std::string> environment;
  std::string at;     // --at or KITH_AT, empty: not given
  bool json = false;  // -o json
  bool err_is_terminal = false;
  bool out_is_terminal = false;
};

// Reads, over HTTP or the socket.
Result<int> status_command(CliContext& context);
Result<int> members_command(CliContext& context);
Result<int> health_command(CliContext& context);

struct TopArguments {
  double interval_seconds = 1;
  bool once = false;
  bool alone = false;  // asks no other member
  std::string sort = "name";
};
Result<int> top_command(CliContext& context, const TopArguments& arguments);

inline constexpr char kDefaultAt[] = "127.0.0.1:7480";  // node.http's default

// Changes, over the socket only.
Result<int> checkpoint_now_command(CliContext& context);
Result<int> leave_command(CliContext& context);
Result<int> join_command(CliContext& context, const std::string& address);

// Files.
struct ExportArguments {
  std::string to;
  std::string from;  // a checkpoint, a model or a data_dir; empty: the daemon at --at
  bool averaged = false;
};
Result<int> checkpoint_export_command(CliContext& context, const ExportArguments& arguments);
Result<int> checkpoint_show_command(CliContext& context, const std::string& file);
Result<int> keygen_command(CliContext& context, const std::string& file);

struct ConfigArguments {
  std::string file;
  std::vector<std::string> settings;  // table.key=value
};
// As kithd would read them.
Result<Config> load_config_for(CliContext& context, const ConfigArguments& arguments);
Result<int> config_show_command(CliContext& context, const ConfigArguments& arguments);
Result<int> config_check_command(CliContext& context, const ConfigArguments& arguments);
Result<int> config_keys_command(CliContext& context);

// The network, without a daemon.
struct DoctorArguments {
  std::string address;
  std::string listen;  // where this side would be dialled back
  ConfigArguments config;
};
Result<int> doctor_command(CliContext& context, const DoctorArguments& arguments);

// What can be chosen.
Result<int> methods_command(CliContext& context);
Result<int> models_command(CliContext& context);
Result<int> topologies_command(CliContext& context);
Result<int> codecs_command(CliContext& context);

// Flags of `kith simulate` by their names without dashes.
Result<int> simulate_command(CliContext& context, const std::map<std::string, std::string>& flags);

}  // namespace kith::node
