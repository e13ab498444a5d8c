// What this build is. Constant; any thread.
#pragma once

#include <string>

namespace kith::node {

// "0.1.0"
std::string version();
// "kith 0.1.0 (git 1a2b3c4, LibTorch 2.15.0 (cpu))"; what was not built in is said so.
std::string version_line(const std::string& program);

}  // namespace kith::node
