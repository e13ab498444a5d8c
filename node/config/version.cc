#include "node/config/version.h"

#include "kith_git_version.h"

namespace kith::node {

std::string version() { return KITH_VERSION; }

std::string version_line(const std::string& program) {
  return program + " " + version() + " (git " + KITH_GIT_HASH + ", " + KITH_TORCH_TEXT + ")";
}

}  // namespace kith::node
