// What SIGHUP does: the configuration is read again, from the same file, environment and flags.
// Keys that can change while a node runs are applied (kLiveKeys); others that differ are named as
// needing a restart. One that is refused changes nothing and is said.
//
// LiveSettings are what running parts look at. Thread: reload() on one (the signals'), the settings
// on any.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "node/config/config.h"

namespace kith::node {

struct LiveSettings {
  explicit LiveSettings(const Config& config)
      : checkpoint_every_seconds(config.checkpoint.every_seconds),
        checkpoint_keep(config.checkpoint.keep) {}
  std::atomic<double> checkpoint_every_seconds;  // 0: only when leaving, and at the end
  std::atomic<unsigned> checkpoint_keep;
  std::atomic<bool> reload_successful{true};
};

// What the program knows and the daemon does not: where its configuration came from, and its log.
struct ReloadHooks {
  std::function<Result<Config>()> read;  // empty: SIGHUP changes nothing
  std::function<void(LogLevel)> set_log_level;
};

struct ConfigChange {
  std::vector<std::string> live;     // "log.level: info -> debug"
  std::vector<std::string> restart;  // the same, of keys that a running node cannot change
};
// Pure: by the table of keys.
ConfigChange compare(const Config& running, const Config& fresh);

class Reloader {
 public:
  // `applied` is told after the settings have changed.
  Reloader(Config running, ReloadHooks hooks, LiveSettings& live, std::function<void()> applied,
           LogSink& log);
  void reload();

 private:
  void apply(const Config& fresh);

  Config running_;  // as last applied, keys that need a restart as they were
  const ReloadHooks hooks_;
  LiveSettings& live_;
  const std::function<void()> applied_;
  LogSink& log_;
};

}  // namespace kith::node
