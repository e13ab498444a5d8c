#include "node/config/reload.h"

#include <algorithm>
#include <utility>

#include "node/config/config_keys.h"
#include "node/config/log_format.h"

namespace kith::node {
namespace {

constexpr std::string_view kLiveKeys[] = {"log.level", "checkpoint.every_seconds",
                                          "checkpoint.keep"};

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

// Without TOML's quotes, which a log line would escape.
std::string shown(std::string value) {
  std::erase(value, '"');
  return value.empty() ? "not set" : value;
}

}  // namespace

ConfigChange compare(const Config& running, const Config& fresh) {
  ConfigChange change;
  for (const KeyInfo& key : config_keys()) {
    const std::string before = value_text(key, running), after = value_text(key, fresh);
    if (before == after) continue;
    auto& list = std::ranges::find(kLiveKeys, key.name) != std::end(kLiveKeys) ? change.live
                                                                               : change.restart;
    list.push_back(std::string(key.name) + ": " + shown(before) + " -> " + shown(after));
  }
  return change;
}

Reloader::Reloader(Config running, ReloadHooks hooks, LiveSettings& live,
                   std::function<void()> applied, LogSink& log)
    : running_(std::move(running)),
      hooks_(std::move(hooks)),
      live_(live),
      applied_(std::move(applied)),
      log_(log) {}

void Reloader::reload() {
  if (!hooks_.read) return;
  const auto fresh = hooks_.read();
  live_.reload_successful = fresh.has_value();
  if (!fresh) {
    log_.log(LogLevel::kError, "config",
             "reload refused, nothing was changed: " + fresh.error().message);
    return;
  }
  const ConfigChange change = compare(running_, *fresh);
  apply(*fresh);
  if (!change.live.empty())
    log_.log(LogLevel::kInfo, "config", "reloaded", {{"applied", joined(change.live)}});
  if (!change.restart.empty())
    log_.log(LogLevel::kWarn, "config", "these keys need a restart and stay as they were",
             {{"keys", joined(change.restart)}});
  if (change.live.empty() && change.restart.empty())
    log_.log(LogLevel::kInfo, "config", "reloaded: nothing has changed");
}

void Reloader::apply(const Config& fresh) {
  const auto level = parse_log_level(fresh.log.level);
  if (level && hooks_.set_log_level) hooks_.set_log_level(*level);
  running_.log.level = fresh.log.level;
  running_.checkpoint = fresh.checkpoint;
  live_.checkpoint_every_seconds = fresh.checkpoint.every_seconds;
  live_.checkpoint_keep = fresh.checkpoint.keep;
  if (applied_) applied_();
}

}  // namespace kith::node
