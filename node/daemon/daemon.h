// The daemon: builds every part from a configuration, wires them together and runs until the run is
// over or it is told to leave. Reading run_daemon() from top to bottom shows the whole system.
// Thread: the process's main thread. Returns the documented exit code; errors have been logged.
#pragma once

#include "base/log.h"
#include "node/config/config.h"
#include "node/config/reload.h"

namespace kith::node {

// Not an exit code: the same program is to be started again in this process's place (the data
// directory's boot counter was behind what other members remember, and has been raised).
inline constexpr int kStartAgain = -1;

int run_daemon(const Config& config, LogSink& log, ReloadHooks hooks = {});

}  // namespace kith::node
