// demo.sh with real nodes, small: what it ends with, and that whoever ends it ends its nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <regex>

#include "tests/e2e/cluster.h"
#include "tests/e2e/demo.h"

namespace kith::e2e {
namespace {

using testing::HasSubstr;

constexpr seconds kBound{120};

// Started as a node would be; its files lie beside the run's folder.
class Demo {
 public:
  explicit Demo(const std::vector<std::string>& more)
      : run_(demo_folder()), script_("demo", run_ + ".script") {
    script_.set_program(demo_script());
    script_.start(demo_options(run_, more), {});
  }
  std::optional<Exit> end() { return script_.wait_exit(kBound); }
  [[nodiscard]] std::string output() const { return bytes_of(script_.folder() + "/out"); }
  bool wait_says(const std::string& what) {
    return wait_until(
        kBound, [&] { return output().find(what) != std::string::npos || !script_.running(); });
  }
  void signal(int number) { script_.signal(number); }
  [[nodiscard]] std::string file(const std::string& path) const { return run_ + "/" + path; }
  [[nodiscard]] bool node_answers() const {
    return run_program({kith_path(), "status", "--at", file("n1")}).exit.code == 0;
  }

 private:
  std::string run_;
  Node script_;
};

void expect_ended(const std::optional<Exit>& exit, int code, const Demo& demo) {
  ASSERT_TRUE(exit.has_value()) << demo.output();
  EXPECT_EQ(exit->code, code) << demo.output();
}

TEST(DemoRun, EndsWithOneModelForAllNodesAndWhatItGetsRight) {
  Demo demo({"--nodes", "2", "--epochs", "1"});
  expect_ended(demo.end(), 0, demo);
  const std::string output = demo.output();
  std::smatch line;
  ASSERT_TRUE(std::regex_search(
      output, line,
      std::regex("the averaged model gets ([0-9.]+) % of the 1,000 test digits right; "
                 "all 2 files are the same bytes")))
      << output;
  const std::string model = bytes_of(demo.file("n1/model.safetensors"));
  EXPECT_FALSE(model.empty());
  EXPECT_TRUE(model == bytes_of(demo.file("n2/model.safetensors")));
  char told[16];
  const double accuracy = std::stod(metadata_of(demo.file("n1/model.safetensors")).at("accuracy"));
  std::snprintf(told, sizeof told, "%.1f", 100 * accuracy);
  EXPECT_EQ(line[1], told);
  EXPECT_GT(accuracy, 0.5) << "each node has half of the digits";
  // One node with half of the digits cannot get more right than there are of those.
  std::smatch alone;
  ASSERT_TRUE(std::regex_search(output, alone, std::regex("n1 alone gets ([0-9.]+) % right")))
      << output;
  EXPECT_LT(std::stod(alone[1]), 100 * accuracy);
  EXPECT_THAT(output, HasSubstr("kith checkpoint show " + demo.file("n1/model.safetensors")));
}

TEST(DemoRun, ExportsTheModelWhenItsTimeIsUp) {
  Demo demo({"--nodes", "1", "--seconds", "2"});
  expect_ended(demo.end(), 0, demo);
  const std::string output = demo.output();
  EXPECT_THAT(output, HasSubstr("time is up: exporting the model and leaving"));
  EXPECT_THAT(output, HasSubstr("accuracy on the test digits when time was up: "));
  EXPECT_EQ(metadata_of(demo.file("model.safetensors")).count("progress"), 1U) << output;
  EXPECT_FALSE(demo.node_answers());
}

// The second way leaves the script no time for anything.
TEST(DemoRun, EndsItsNodesWhenItIsEnded) {
  for (const int number : {SIGTERM, SIGKILL}) {
    SCOPED_TRACE(number);
    Demo demo({"--nodes", "1", "--seconds", "600"});
    ASSERT_TRUE(demo.wait_says("in another terminal: ")) << demo.output();
    ASSERT_TRUE(demo.node_answers()) << demo.output();
    demo.signal(number);
    const auto exit = demo.end();
    ASSERT_TRUE(exit.has_value());
    EXPECT_EQ(exit->signal, number) << demo.output();
    if (number == SIGTERM) {
      EXPECT_THAT(demo.output(), HasSubstr("demo: stopped; logs are in "));
    }
    EXPECT_TRUE(wait_until(kBound, [&] { return !demo.node_answers(); }));
    EXPECT_THAT(bytes_of(demo.file("n1/log")), HasSubstr("leaving")) << "in order, not killed";
  }
}

}  // namespace
}  // namespace kith::e2e
