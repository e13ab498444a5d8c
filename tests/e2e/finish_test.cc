// The end of a run: what takes long there is nobody's business but the node's own.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/e2e/cluster.h"

namespace kith::e2e {
namespace {

namespace fs = std::filesystem;

TEST(Finish, ANodeWhoseDiskIsSlowIsAliveToTheOthersWhileItWritesTheFinalModel) {
  Cluster cluster(digits_config("linear", 5));
  const std::vector<std::string> sets = {"run.epochs=0.5", "checkpoint.every_seconds=0",
                                         "train.min_step_ms=10", "run.start_members=2"};
  // The first file is the checkpoint at the start, the second the final model.
  NodeOptions slow = with(sets);
  slow.environment["KITH_FAULTS"] = "checkpoint-written=wait@2";
  cluster.add(slow);
  cluster.add(with(sets));
  EXPECT_TRUE(cluster.all_exit_zero(seconds(60)));
  EXPECT_NE(cluster[0].log().find("final model written"), std::string::npos);
  EXPECT_EQ(cluster[0].log().find("did not run for a while"), std::string::npos)
      << cluster[0].log();
  EXPECT_EQ(cluster[1].log().find("suspect"), std::string::npos) << cluster[1].log();
  EXPECT_EQ(bytes_of(cluster[0].folder() + "/data/model.safetensors"),
            bytes_of(cluster[1].folder() + "/data/model.safetensors"));
}

// All were restarted and one has lost its disk: to the node that it became, what it did before is
// unknown.
TEST(Finish, WhoNeverHeardOfSomeOfTheWorkRestsWithTheOthers) {
  Cluster cluster(digits_config("linear", 3));
  const NodeOptions options =
      with({"run.epochs=12", "train.min_step_ms=4", "checkpoint.every_seconds=0.2"});
  cluster.add(options);
  cluster.add(options);
  const auto has_step = [](const Node& node, double step) {
    return node.metric("kith_train_steps_total") >= step;
  };
  ASSERT_TRUE(cluster.wait(seconds(30), "300 steps of both", [&] {
    return has_step(cluster[0], 300) && has_step(cluster[1], 300) &&
           cluster[1].metric("kith_run_progress_samples") > 600 * 32;
  }));
  cluster[0].kill_now();
  cluster[1].kill_now();
  fs::remove_all(cluster[0].folder() + "/data");
  cluster.restart(1);
  cluster.restart(0);
  ASSERT_TRUE(cluster.all_exit_zero(seconds(60)));
  const std::string log = cluster[0].log(), words = "the run's length is reached  progress=";
  const auto at = log.find(words);
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_LT(std::stod(log.substr(at + words.size())), 12 * 9000 - 100 * 32)
      << "it made up alone for what it had not heard of";
  EXPECT_EQ(bytes_of(cluster[0].folder() + "/data/model.safetensors"),
            bytes_of(cluster[1].folder() + "/data/model.safetensors"));
}

}  // namespace
}  // namespace kith::e2e
