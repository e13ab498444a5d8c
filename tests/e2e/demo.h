// demo.sh as a user calls it, but with the programs of this build and a folder of the test's own:
// it installs and builds nothing.
#pragma once

#include <string>
#include <vector>

namespace kith::e2e {

std::string demo_script();
// `--programs`, `--folder` and what else the test says.
std::vector<std::string> demo_options(const std::string& folder,
                                      const std::vector<std::string>& more);
// build/e2e/<test name>, without anything of an earlier run.
std::string demo_folder();

}  // namespace kith::e2e
