// Debian's docker-compose is 1.29: every combination of our files must be taken by it, and by what
// `docker compose` calls the same subset. No engine is needed for that.
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/e2e/cluster.h"

namespace kith::docker {
namespace {

e2e::Finished config(const std::vector<std::string>& files,
                     const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"/usr/bin/docker-compose", "--env-file",
                                  KITH_SOURCE_DIR "/docker/env.example"};
  for (const std::string& file : files)
    all.insert(all.end(), {"-f", KITH_SOURCE_DIR "/docker/" + file});
  all.push_back("config");
  all.insert(all.end(), arguments.begin(), arguments.end());
  return e2e::run_program(all);
}

class ComposeFiles : public testing::TestWithParam<std::vector<std::string>> {
 protected:
  void SetUp() override {
    if (::access("/usr/bin/docker-compose", X_OK) != 0)
      GTEST_SKIP() << "/usr/bin/docker-compose is missing: scripts/setup.sh --test --containers";
  }
};

TEST_P(ComposeFiles, AreTakenWithoutAWord) {
  const e2e::Finished checked = config(GetParam(), {"-q"});
  EXPECT_EQ(checked.exit.code, 0) << checked.output;
  EXPECT_EQ(checked.output, "");
}

TEST_P(ComposeFiles, PublishOnLoopbackOnly) {
  const std::string text = config(GetParam(), {}).output;
  std::size_t ports = 0;
  for (auto at = text.find(" ports:"); at != std::string::npos; at = text.find(" ports:", at + 1)) {
    ++ports;
    EXPECT_EQ(text.compare(text.find("- ", at), 12, "- 127.0.0.1:"), 0) << text.substr(at, 80);
  }
  EXPECT_EQ(ports, 3U);
}

TEST_P(ComposeFiles, PinEveryImage) {
  const std::string text = config(GetParam(), {}).output;
  std::size_t images = 0;
  for (auto at = text.find(" image: "); at != std::string::npos;
       at = text.find(" image: ", at + 1)) {
    ++images;
    const std::string name = text.substr(at + 8, text.find('\n', at) - at - 8);
    EXPECT_NE(name.find(':'), std::string::npos) << name;
    EXPECT_EQ(name.find(":latest"), std::string::npos) << name;
  }
  EXPECT_EQ(images, 4U);
}

INSTANTIATE_TEST_SUITE_P(
    Combinations, ComposeFiles,
    testing::Values(std::vector<std::string>{"compose.yaml"},
                    std::vector<std::string>{"compose.yaml", "compose.gpu.yaml"},
                    std::vector<std::string>{"compose.yaml", "compose.secret.yaml"},
                    std::vector<std::string>{"compose.yaml", "compose.gpu.yaml",
                                             "compose.secret.yaml"}));

}  // namespace
}  // namespace kith::docker
