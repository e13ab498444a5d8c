// The end of a run: what takes long there is nobody's business but the node's own.
#include <gtest/gtest.h>

#include "tests/e2e/cluster.h"

namespace kith::e2e {
namespace {

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

}  // namespace
}  // namespace kith::e2e
