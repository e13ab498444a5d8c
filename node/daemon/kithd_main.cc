// kithd: one node of a training run.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/clock.h"
#include "node/config/config.h"
#include "node/config/daemon_flags.h"
#include "node/config/log_format.h"
#include "node/daemon/daemon.h"
#include "node/daemon/signal_watch.h"
#include "node/mesh/cluster_key.h"
#include "node/setup/dry_run.h"

namespace {

constexpr const char* kStartedAgain = "_KITHD_STARTED_AGAIN";

int refuse(const kith::Error& error) {
  std::fprintf(stderr, "kithd: %s\n", error.message.c_str());
  return kith::exit_code(error.code);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace kith::node;
  const auto flags = parse_kithd_flags(argc, argv);
  if (!flags) return refuse(flags.error());
  if (!flags->answer.empty()) {
    std::fputs(flags->answer.c_str(), stdout);
    return 0;
  }
  // From here on a SIGHUP means "read the configuration again", not the end.
  if (!flags->check && !flags->dry_run) SignalWatch::block();
  const auto config = config_from_flags(*flags, kith_environment());
  if (!config) return refuse(config.error());
  if (flags->check) {
    const auto report = check_report(*config);
    if (!report) return refuse(report.error());
    if (!config->cluster.key_file.empty()) {
      const auto key = ClusterKey::load(config->cluster.key_file);
      if (!key) return refuse(key.error());
    }
    std::printf("%s\n", report->c_str());
    return 0;
  }
  if (flags->dry_run) {
    const auto report = dry_run_report(*config);
    if (!report) return refuse(report.error());
    std::fputs(report->c_str(), stdout);
    return 0;
  }
  const auto format = parse_log_format(config->log.format);
  const auto level = parse_log_level(config->log.level);
  if (!format) return refuse(format.error());
  if (!level) return refuse(level.error());
  FormatLog log(log_settings(*format, *level));
  for (const std::string& note : config->notes) log.log(kith::LogLevel::kWarn, "config", note);
  ReloadHooks hooks;
  hooks.read = [&flags] { return config_from_flags(*flags, kith_environment()); };
  hooks.set_log_level = [&log](kith::LogLevel at) { log.set_level(at); };
  const int code = run_daemon(*config, log, hooks);
  if (code != kStartAgain) return code;
  // Once only: who remembers more and more of us each time is lying.
  if (::getenv(kStartedAgain) != nullptr)
    return refuse(
        {kith::ErrorCode::kFailed,
         "members remember ever later starts of this node: give it a new data directory"});
  ::setenv(kStartedAgain, "1", 1);
  ::execv("/proc/self/exe", argv);
  return refuse({kith::ErrorCode::kFailed,
                 "cannot start again: /proc is needed for that; start kithd once more"});
}
