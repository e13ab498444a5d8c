// The border to toml++: the only header here that names its types, for the two files that read
// TOML.
#pragma once

#include <toml++/toml.h>

#include "node/config/config_value.h"

namespace kith::node {

ConfigValue to_config_value(const toml::node& node);

}  // namespace kith::node
