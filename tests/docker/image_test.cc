// The image as its users build it: compiled inside a container, from the project's own scripts.
// Takes as long as a build.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "tests/docker/engine.h"

namespace kith::docker {
namespace {

class Image : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    engine_.emplace(KITH_BINARY_DIR "/docker");
    why_not_ = engine_->why_not();
    if (why_not_.empty()) why_not_ = engine_->import_base();
    if (!why_not_.empty()) return;
    const auto start = std::chrono::steady_clock::now();
    const Finished built = engine_->build(KITH_SOURCE_DIR,
                                          {"-f", KITH_SOURCE_DIR "/docker/Dockerfile", "-t",
                                           "kith:test", "--build-arg", "KITH_COMMIT=0123456789"},
                                          seconds(3000));
    std::cout << "built in "
              << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()
              << " s\n";
    if (built.exit.code != 0)
      error_ = built.output.substr(built.output.size() > 4000 ? built.output.size() - 4000 : 0);
  }
  static void TearDownTestSuite() { engine_.reset(); }
  void SetUp() override {
    if (!why_not_.empty()) GTEST_SKIP() << "no image was built: " << why_not_;
    ASSERT_EQ(error_, "");
  }

  [[nodiscard]] static std::string label(const std::string& format) {
    return engine_->ask({"image", "inspect", "-f", "{{" + format + "}}", "kith:test"});
  }
  [[nodiscard]] static double mebibytes(const std::string& image) {
    return std::strtod(engine_->ask({"image", "inspect", "-f", "{{.Size}}", image}).c_str(),
                       nullptr) /
           (1 << 20);
  }
  [[nodiscard]] static std::string in_image(const std::string& command) {
    return engine_->ask({"run", "--rm", "--entrypoint", "sh", "kith:test", "-c", command});
  }

  static inline std::optional<Engine> engine_;
  static inline std::string why_not_, error_;
};

TEST_F(Image, IsSmallAndHoldsNothingThatIsNotNeeded) {
  const double whole = mebibytes("kith:test");
  const double added = whole - mebibytes("debian:bookworm-slim");
  std::cout << "image " << whole << " MiB, " << added << " MiB of it above its base\n";
  EXPECT_LT(added, 450) << "LibTorch for the CPU is 350";
  EXPECT_EQ(in_image("command -v python3 gcc g++ cmake curl git pip; true"), "");
  EXPECT_EQ(in_image("find / -xdev \\( -name 'libtorch_cuda*' -o -name 'libcublas*' -o -name "
                     "'libcudnn*' -o -name 'libnccl*' "
                     "-o -name 'libtorch_python*' \\) 2>/dev/null; true"),
            "");
}

TEST_F(Image, SaysWhatItIsAndRunsAsNobodySpecial) {
  EXPECT_EQ(label(".Config.User"), "kith");
  EXPECT_EQ(label(".Config.StopSignal"), "SIGTERM");
  EXPECT_EQ(label("json .Config.Entrypoint"), "[\"tini\",\"--\",\"kithd\"]");
  EXPECT_EQ(label("json .Config.Healthcheck.Test"), "[\"CMD\",\"kith\",\"health\"]");
  EXPECT_EQ(label("index .Config.Labels \"org.opencontainers.image.revision\""), "0123456789");
  EXPECT_EQ(in_image("id -u"), "10001");
  EXPECT_NE(in_image("kithd --version").find("0123456789"), std::string::npos)
      << in_image("kithd --version");
}

TEST_F(Image, TrainsIsHealthyAndStopsInOrder) {
  const std::string id = engine_->ask(
      {"run", "-d", "-v", KITH_SOURCE_DIR "/docker/run.toml:/etc/kith/run.toml:ro", "-v",
       KITH_SOURCE_DIR "/data/mnist:/data:ro", "-e", "KITH_RUN_EPOCHS=100000", "-e",
       "KITH_RUN_START_MEMBERS=1", "kith:test", "-c", "/etc/kith/run.toml", "--standalone"});
  EXPECT_TRUE(e2e::wait_until(seconds(60), [&] {
    return engine_->docker({"inspect", "-f", "{{.State.Health.Status}}", id}).output == "healthy\n";
  })) << engine_->docker({"logs", id}).output;
  engine_->ask({"stop", "--time", "30", id});
  EXPECT_EQ(engine_->ask({"inspect", "-f", "{{.State.ExitCode}}", id}), "0");
  EXPECT_NE(engine_->docker({"logs", id}).output.find("left  step="), std::string::npos);
}

TEST_F(Image, AMirrorIsUsedWhenOneIsNamed) {
  const std::string file = "/etc/apt/sources.list.d/debian.sources";
  const std::string sources =
      engine_->ask({"run", "--rm", "-v", KITH_SOURCE_DIR "/docker/use_mirror.sh:/use_mirror.sh:ro",
                    "debian:bookworm-slim", "sh", "-c",
                    "rm -f /etc/apt/sources.list.d/*; "
                    "echo 'URIs: http://deb.debian.org/debian' > " +
                        file +
                        "; "
                        "echo 'URIs: http://security.debian.org/debian-security' >> " +
                        file +
                        "; "
                        "sh /use_mirror.sh '' && cat " +
                        file +
                        " && "
                        "sh /use_mirror.sh http://mirror.invalid/ && cat " +
                        file});
  EXPECT_EQ(sources,
            "URIs: http://deb.debian.org/debian\n"
            "URIs: http://security.debian.org/debian-security\n"
            "URIs: http://mirror.invalid/debian\n"
            "URIs: http://mirror.invalid/debian-security");
}

}  // namespace
}  // namespace kith::docker
