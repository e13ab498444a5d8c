#include "tests/e2e/demo.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace kith::e2e {

std::string demo_script() { return std::string(KITH_SOURCE_DIR) + "/demo.sh"; }

std::vector<std::string> demo_options(const std::string& folder,
                                      const std::vector<std::string>& more) {
  std::vector<std::string> all = {"--programs", std::string(KITH_BINARY_DIR) + "/bin", "--folder",
                                  folder};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string demo_folder() {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder =
      std::string(KITH_BINARY_DIR) + "/e2e/" + info->test_suite_name() + "." + info->name();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path());
  return folder;
}

}  // namespace kith::e2e
