// docker/compose.yaml with a real engine: what a user types, and what one sees then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>

#include "tests/docker/stack.h"

namespace kith::docker {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Steady = std::chrono::steady_clock;

double seconds_since(Steady::time_point start) {
  return std::chrono::duration<double>(Steady::now() - start).count();
}

// The engine and the images serve all tests; each has containers and volumes of its own.
class Compose : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (::access("/usr/bin/docker-compose", X_OK) != 0) {
      why_not_ = "/usr/bin/docker-compose is missing: scripts/setup.sh --test --containers";
      return;
    }
    engine_.emplace(KITH_BINARY_DIR "/docker");
    why_not_ = engine_->why_not();
    if (why_not_.empty()) why_not_ = engine_->import_base();
    if (!why_not_.empty()) return;
    error_ = Stack(*engine_).make_images();
  }
  static void TearDownTestSuite() { engine_.reset(); }

  void SetUp() override {
    if (!why_not_.empty()) GTEST_SKIP() << "no container was started: " << why_not_;
    ASSERT_EQ(error_, "");
    stack_ = std::make_unique<Stack>(*engine_);
  }

  bool wait(seconds bound, const std::string& what, const std::function<bool()>& condition) {
    const bool held = e2e::wait_until(bound, condition);
    EXPECT_TRUE(held) << what;
    if (!held) stack_->print_logs();
    return held;
  }
  // `up`, until all are healthy and see each other.
  void up(int nodes) {
    const auto start = Steady::now();
    const Finished started = stack_->up(nodes);
    ASSERT_EQ(started.exit.code, 0) << started.output;
    const auto wanted = static_cast<std::size_t>(nodes);
    ASSERT_TRUE(wait(seconds(180), std::to_string(nodes) + " are healthy and see each other",
                     [&] { return stack_->settled(wanted); }));
    std::cout << nodes << " nodes healthy after " << seconds_since(start) << " s\n";
  }
  [[nodiscard]] std::size_t series(const std::string& expression) const {
    return stack_->query(expression).size();
  }

  static inline std::optional<Engine> engine_;
  static inline std::string why_not_, error_;
  std::unique_ptr<Stack> stack_;
};

TEST_F(Compose, FourNodesLearnAndAreSeen) {
  const auto start = Steady::now();
  up(4);
  ASSERT_TRUE(wait(seconds(180), "Prometheus sees four nodes that learn", [&] {
    return series("up{job=\"kith\"} == 1") == 4 && series("kith_eval_accuracy_ratio > 0.8") >= 4;
  }));
  std::cout << "seen by Prometheus and above 80 % after " << seconds_since(start) << " s\n";
  EXPECT_EQ(series("kith_members{state=\"alive\"} == 4"), 4U);
  EXPECT_THAT(stack_->page("/"), testing::HasSubstr("<title>kith"));
  EXPECT_THAT(stack_->published(), testing::SizeIs(5));
  EXPECT_THAT(stack_->published(), Each(StartsWith("127.0.0.1:")));
}

TEST_F(Compose, ReplicasComeAndGo) {
  up(4);
  up(8);
  ASSERT_TRUE(wait(seconds(180), "eight targets", [&] {
    return series("up{job=\"kith\"} == 1") == 8 && series("kith_train_steps_total > 0") == 8;
  }));
  EXPECT_EQ(series("count by (node) (kith_node_info)"), 8U) << "each has a name of its own";
  ASSERT_TRUE(wait(seconds(180), "eight counters that rise",
                   [&] { return series("increase(kith_train_steps_total[20s]) > 0") == 8; }));
  EXPECT_EQ(series("resets(kith_train_steps_total[10m]) == 0"), 8U);

  const Finished fewer = stack_->up(3);
  ASSERT_EQ(fewer.exit.code, 0) << fewer.output;
  ASSERT_TRUE(
      wait(seconds(180), "three remain, the others have left", [&] { return stack_->settled(3); }));
  for (const auto& [name, state] : stack_->members(stack_->replica(1)))
    EXPECT_THAT(state, testing::AnyOf("alive", "left")) << name;
  const std::string alarms =
      "{alertname=~\"KithNodeGone|KithMemberDead|KithClusterSplit|KithNodeIsolated\"";
  ASSERT_TRUE(wait(seconds(180), "three targets and no alarm that waits", [&] {
    return series("up{job=\"kith\"}") == 3 && stack_->query("ALERTS" + alarms + "}").empty();
  }));
  EXPECT_THAT(stack_->query("count_over_time(ALERTS" + alarms + ",alertstate=\"firing\"}[10m])"),
              IsEmpty());
}

TEST_F(Compose, AStoppedContainerHasSavedItsLastStepAndLeft) {
  up(4);
  const Replica one = stack_->replica(2);
  const auto start = Steady::now();
  engine_->ask({"stop", "--time", "30", one.container});
  std::cout << "stopped after " << seconds_since(start) << " s\n";
  const Replica stopped = stack_->replica(2);
  EXPECT_EQ(stopped.status, "exited");
  EXPECT_EQ(stopped.exit_code, 0);
  EXPECT_EQ(stopped.restarts, 0);

  const std::string log = stack_->log(stopped);
  const auto left = log.find("left  step=");
  ASSERT_NE(left, std::string::npos) << log;
  std::string step = std::to_string(std::stol(log.substr(left + 11)));
  step.insert(0, 12 - step.size(), '0');
  const Replica other = stack_->replica(1);
  EXPECT_EQ(engine_
                ->docker({"exec", other.container, "kith", "checkpoint", "show",
                          stopped.data_dir + "/checkpoints/step-" + step + ".safetensors"})
                .exit.code,
            0)
      << "no checkpoint of step " << step;
  const std::string name = std::filesystem::path(stopped.data_dir).filename();
  EXPECT_TRUE(wait(seconds(30), "the others see that it left", [&] {
    const auto all = stack_->replicas();
    return std::ranges::all_of(all, [&](const Replica& r) {
      return r.status != "running" || stack_->members(r)[name] == "left";
    });
  }));
}

TEST_F(Compose, AKilledContainerIsRestartedWithItsOwnDirectoryAndRejoins) {
  up(8);
  ASSERT_EQ(stack_->up(4).exit.code, 0);
  ASSERT_TRUE(wait(seconds(180), "four remain, and four free directories",
                   [&] { return stack_->settled(4); }));
  const Replica one = stack_->replica(3);
  const std::string name = std::filesystem::path(one.data_dir).filename();
  ASSERT_GT(one.pid, 1);
  ASSERT_EQ(::kill(one.pid, SIGKILL), 0);
  ASSERT_TRUE(wait(seconds(180), "it was restarted, and all four see each other", [&] {
    const Replica again = stack_->replica(3);
    return again.restarts == 1 && again.status == "running" && stack_->settled(4);
  }));
  const Replica again = stack_->replica(3);
  EXPECT_EQ(again.container, one.container);
  EXPECT_EQ(again.data_dir, one.data_dir);
  const std::string log = stack_->log(again);
  EXPECT_NE(log.find("resuming from a checkpoint"), std::string::npos) << log;
  EXPECT_EQ(stack_->members(stack_->replica(1))[name], "alive");
}

TEST_F(Compose, AFinishedRunEndsEveryContainerForGood) {
  stack_->set("KITH_RUN_EPOCHS", "6");
  ASSERT_EQ(stack_->up(4).exit.code, 0);
  ASSERT_TRUE(wait(seconds(180), "Prometheus has seen four that train", [&] {
    return series("up{job=\"kith\"} == 1") == 4 && series("kith_train_steps_total > 0") == 4;
  }));
  const auto all_done = [&] {
    const auto all = stack_->replicas();
    return all.size() == 4 && std::ranges::all_of(all, [](const Replica& r) {
             return r.status == "exited" && r.exit_code == 0;
           });
  };
  ASSERT_TRUE(wait(seconds(120), "all four exit 0", all_done));
  EXPECT_EQ(engine_->ask({"run", "--rm", "--entrypoint", "sh", "-v", "kithtest_state:/state",
                          "kith:0.1.0", "-c",
                          "sha256sum /state/node-*/model.safetensors | cut -d' ' -f1 | sort | uniq "
                          "-c | tr -s ' ' | cut -d' ' -f2"}),
            "4")
      << "one model, four times";
  ASSERT_TRUE(wait(seconds(180), "nobody has answered Prometheus for two rounds",
                   [&] { return series("max_over_time(up{job=\"kith\"}[12s]) > 0") == 0; }));
  // Finishing takes about as long as Prometheus looks away; who was seen at it tells that the run
  // is over.
  if (series("max_over_time(kith_node_state{state=~\"finishing|complete\"}[5m]) == 1") > 0) {
    EXPECT_THAT(stack_->query("ALERTS{alertname=~\"KithNodeGone|KithMemberDead\"}"), IsEmpty());
  }

  ASSERT_EQ(stack_->up(4).exit.code, 0);
  ASSERT_TRUE(wait(seconds(90), "started again, they find the run complete", [&] {
    const auto all = stack_->replicas();
    return all_done() && std::ranges::all_of(all, [&](const Replica& r) {
             return stack_->log(r).find("this run is complete") != std::string::npos;
           });
  }));
  for (const Replica& r : stack_->replicas()) EXPECT_EQ(r.restarts, 0) << "node " << r.number;
}

TEST_F(Compose, AKeyThatTheUserBringsIsASecret) {
  const std::string key = engine_->folder() + "/cluster.key";
  std::filesystem::remove(key);
  ASSERT_EQ(e2e::run_program({e2e::kith_path(), "keygen", key}).exit.code, 0);
  ASSERT_EQ(::chown(key.c_str(), 4321, 4321), 0);
  stack_->add_file("docker/compose.secret.yaml");
  stack_->set("KITH_KEY_FILE", key);
  stack_->set("KITH_USER", "4321:4321");
  up(2);
  EXPECT_NE(engine_->ask({"exec", stack_->replica(1).container, "id", "-u"}), "0");

  ASSERT_EQ(stack_->down().exit.code, 0);
  ASSERT_EQ(::chmod(key.c_str(), 0644), 0);
  ASSERT_EQ(stack_->up(1).exit.code, 0);
  EXPECT_TRUE(wait(seconds(90), "a key that others may read is refused", [&] {
    return stack_->log(stack_->replica(1)).find("can be read by others") != std::string::npos;
  }));
}

TEST_F(Compose, NothingRunsAsRootOrMayBecomeIt) {
  up(1);
  const Replica one = stack_->replica(1);
  const std::string status = engine_->ask({"exec", one.container, "cat", "/proc/1/status"});
  EXPECT_NE(status.find("Uid:\t10001\t10001"), std::string::npos) << status;
  EXPECT_NE(status.find("CapPrm:\t0000000000000000"), std::string::npos) << status;
  EXPECT_NE(status.find("NoNewPrivs:\t1"), std::string::npos) << status;
  EXPECT_NE(engine_->docker({"exec", one.container, "touch", "/opt/kith/x"}).exit.code, 0);
}

}  // namespace
}  // namespace kith::docker
