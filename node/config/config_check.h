// Checks that look at several keys together, and at the files that the configuration names. Pure
// apart from check_files; any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "node/config/config.h"

namespace kith::node {

// "run.toml:12", "command line", "KITH_TRAIN_MOMENTUM" or "default": where a key got its value.
std::string where_of(const Config& config, std::string_view key);

// kUsage, with where the value stands: epochs and steps both set, an optimiser without what it
// needs, chunk larger than fragment, unknown method, and so on. load_config() calls it.
Status check_together(const Config& config);

// Keys that were set and do not apply: "run.toml:9: train.momentum does not apply to adam:
// ignored".
std::vector<std::string> find_unused_keys(const Config& config);

// What a daemon needs beyond a valid configuration: training files named and readable, key file
// readable. kUsage without data.train or key; kDataRefused names the file that cannot be read.
Status check_files(const Config& config);

}  // namespace kith::node
