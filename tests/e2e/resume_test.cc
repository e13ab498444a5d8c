// One node: stopped in order, killed, or not at all, it ends with the same bytes; and what a restart does.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "tests/e2e/cluster.h"

namespace kith::e2e {
namespace {

namespace fs = std::filesystem;

struct Optimiser {
  const char* name;
  std::vector<std::string> sets;
};

class Resume : public ::testing::TestWithParam<Optimiser> {};

NodeOptions alone(const std::vector<std::string>& sets) {
  NodeOptions options;
  options.flags = {"--standalone", "--set", "data.shard=all"};
  for (const auto& set : sets) options.flags.insert(options.flags.end(), {"--set", set});
  return options;
}

std::string final_bytes(Cluster& cluster, std::size_t index) {
  return bytes_of(cluster[index].folder() + "/data/model.safetensors");
}

double steps_of(const Node& node) {
  const auto status = node.get("/status");
  return status.is_object() ? status["step"].get<double>() : -1.0;
}

// 700 steps = 2 epochs and a half of the digits: the resumed run also crosses an epoch's edge.
TEST_P(Resume, StoppedAndResumedEndsWithTheSameBytesAsUnbroken) {
  std::vector<std::string> sets = GetParam().sets;
  sets.insert(sets.end(), {"run.epochs=0", "run.steps=700", "train.min_step_ms=2"});
  Cluster cluster(digits_config("linear", 3));
  cluster.add(alone(sets));
  ASSERT_TRUE(cluster.all_exit_zero(seconds(60)));
  const std::string unbroken = final_bytes(cluster, 0);
  ASSERT_FALSE(unbroken.empty());

  cluster.add(alone(sets));
  ASSERT_TRUE(cluster.wait(seconds(30), "100 steps", [&] { return steps_of(cluster[1]) >= 100; }));
  cluster[1].signal(SIGTERM);
  const auto exit = cluster[1].wait_exit(seconds(30));
  ASSERT_TRUE(exit && exit->code == 0) << cluster[1].log();
  ASSERT_TRUE(final_bytes(cluster, 1).empty()) << "it had not finished yet";
  cluster.restart(1);
  EXPECT_NE(cluster[1].log().find("resuming from a checkpoint"), std::string::npos);
  ASSERT_TRUE(cluster.all_exit_zero(seconds(60)));
  EXPECT_TRUE(final_bytes(cluster, 1) == unbroken) << "the resumed run ended with another model";
}

TEST_P(Resume, KilledAndResumedEndsWithTheSameBytesAsUnbroken) {
  std::vector<std::string> sets = GetParam().sets;
  sets.insert(sets.end(), {"run.epochs=0", "run.steps=700", "train.min_step_ms=2", "checkpoint.every_seconds=0.2"});
  Cluster cluster(digits_config("linear", 3));
  cluster.add(alone(sets));
  ASSERT_TRUE(cluster.all_exit_zero(seconds(60)));
  cluster.add(alone(sets));
  ASSERT_TRUE(cluster.wait(seconds(30), "300 steps", [&] { return steps_of(cluster[1]) >= 300; }));
  cluster[1].kill_now();
  cluster.restart(1);
  ASSERT_TRUE(cluster.all_exit_zero(seconds(60)));
  EXPECT_TRUE(final_bytes(cluster, 1) == final_bytes(cluster, 0));
}

INSTANTIATE_TEST_SUITE_P(Optimisers, Resume,
                         ::testing::Values(Optimiser{"momentum", {"train.momentum=0.9"}},
                                           Optimiser{"adam", {"train.optimizer=adam", "train.learning_rate=0.001"}}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Restart, OfAFinishedRunSaysSoAndExitsZero) {
  Cluster cluster(digits_config("linear", 3));
  cluster.add(alone({"run.epochs=0", "run.steps=20"}));
  ASSERT_TRUE(cluster.all_exit_zero(seconds(60)));
  const std::string before = final_bytes(cluster, 0);
  NodeOptions ends_at_once;
  ends_at_once.wait_ready = false;
  cluster.restart(0, ends_at_once);
  ASSERT_TRUE(cluster.all_exit_zero(seconds(60)));
  EXPECT_NE(cluster[0].log().find("this run is complete"), std::string::npos);
  EXPECT_TRUE(final_bytes(cluster, 0) == before);
}

TEST(Restart, FallsBackLoudlyFromABrokenNewestCheckpointAndNeverToZero) {
  Cluster cluster(digits_config("linear", 3));
  const std::vector<std::string> sets = {"run.epochs=0", "run.steps=100000", "train.min_step_ms=1",
                                         "checkpoint.every_seconds=0.2"};
  cluster.add(alone(sets));
  const std::string folder = cluster[0].folder() + "/data/checkpoints";
  const auto files = [&] {
    std::vector<std::string> names;
    if (fs::exists(folder))
      for (const auto& entry : fs::directory_iterator(folder))
        if (entry.path().extension() == ".safetensors") names.push_back(entry.path());
    std::sort(names.begin(), names.end());
    return names;
  };
  ASSERT_TRUE(cluster.wait(seconds(30), "three checkpoints, none of them the first", [&] {
    const auto names = files();
    return names.size() == 3 && names.front().find("000000000000") == std::string::npos;
  }));
  cluster[0].kill_now();
  const auto names = files();
  fs::resize_file(names.back(), fs::file_size(names.back()) / 2);
  cluster.restart(0);
  const std::string log = cluster[0].log();
  EXPECT_NE(log.find(fs::path(names.back()).filename().string()), std::string::npos) << log;
  EXPECT_NE(log.find(fs::path(*(names.end() - 2)).filename().string()), std::string::npos) << log;
  cluster[0].kill_now();
  for (const auto& name : files()) fs::resize_file(name, 0);
  Node& node = cluster[0];
  node.start({"-c", cluster.config_file(), "--name", "n1", "--http", "127.0.0.1:0", "--standalone", "--data-dir",
              node.folder() + "/data", "--set", "data.shard=all"},
             {});
  const auto exit = node.wait_exit(seconds(30));
  ASSERT_TRUE(exit.has_value());
  EXPECT_NE(exit->code, 0) << "none is usable: that is an error, not a fresh start";
}

TEST(Restart, FromACheckpointTooFarBehindTakesTheClustersState) {
  Cluster cluster(digits_config("linear", 3));
  for (int i = 0; i < 3; ++i)
    cluster.add(with({"run.epochs=0", "run.start_members=3", "train.min_step_ms=10", "exchange.max_lag=20",
                      "checkpoint.every_seconds=3600"}));
  ASSERT_TRUE(cluster.wait(seconds(30), "all train", [&] { return steps_of(cluster[2]) >= 20; }));
  cluster[2].kill_now();  // all it has on disk is its first step
  const auto progress = [&] { return cluster[0].get("/status").value("progress", 0.0); };
  ASSERT_TRUE(cluster.wait(seconds(60), "the others go far ahead", [&] { return progress() > 60000; }));
  cluster.restart(2);
  ASSERT_TRUE(cluster.wait(seconds(30), "it trains again", [&] {
    return cluster[2].get("/status").value("state", "") == "training";
  }));
  EXPECT_EQ(cluster[2].get("/status").value("adoptions", 0), 1) << cluster[2].log();
  EXPECT_NE(cluster[2].log().find("too far behind"), std::string::npos);
}

TEST(Restart, ASecondDaemonInTheSameFolderEndsWithSeven) {
  Cluster cluster(digits_config("linear", 3));
  cluster.add(alone({"run.epochs=0", "train.min_step_ms=5"}));
  const auto run = run_program({kithd_path(), "-c", cluster.config_file(), "--standalone", "--http", "127.0.0.1:0",
                                "--data-dir", cluster[0].folder() + "/data"});
  EXPECT_EQ(run.exit.code, 7) << run.output;
  EXPECT_NE(run.output.find(cluster[0].folder() + "/data"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find(std::to_string(cluster[0].pid())), std::string::npos) << "names the holder: " << run.output;
}

}  // namespace
}  // namespace kith::e2e
