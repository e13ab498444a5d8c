#include "node/daemon/health_checks.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace kith::node {
namespace {

using std::chrono::seconds;

constexpr Duration kEvery = seconds(30);

NodeStatus training() {
  NodeStatus status;
  status.self.run_state = schema::RunState::kTraining;
  status.checkpoints.written = 1;
  return status;
}

monitoring::HealthReport report(const NodeStatus& status, int now = 0) {
  compute::TrainerStats trainer;
  trainer.healthy = true;
  NodeStatus turning = status;
  turning.now = TimePoint{seconds(now)};
  return health_of(turning, trainer, kEvery, TimePoint{seconds(now)});
}

bool is_ok(const monitoring::HealthReport& report, const std::string& name) {
  const auto check = std::find_if(report.checks.begin(), report.checks.end(),
                                  [&](const auto& c) { return c.name == name; });
  return check != report.checks.end() && check->ok;
}

TEST(Health, OfANodeThatTrainsIsGoodForEverybody) {
  EXPECT_TRUE(report(training()).healthy() && report(training()).well() &&
              report(training()).ready());
}

TEST(Health, OfANodeThatWaitsForItsFirstMembersIsGoodButNotReady) {
  NodeStatus status;
  status.self.run_state = schema::RunState::kWaiting;
  status.waiting_for = "no seed reached yet";
  EXPECT_TRUE(report(status).healthy());
  EXPECT_TRUE(report(status).well());
  EXPECT_EQ(report(status).complaints(), "") << "what only takes its time is no complaint";
  EXPECT_FALSE(report(status).ready());
}

TEST(Health, OfANodeCutOffFromItsMembersIsForPeopleToSeeAndNoReasonToRestartIt) {
  NodeStatus status = training();
  status.isolated = true;
  EXPECT_FALSE(is_ok(report(status), "members"));
  EXPECT_FALSE(report(status).well());
  EXPECT_EQ(report(status).complaints().substr(0, 18), "members: isolated:");
  EXPECT_TRUE(report(status).healthy());
}

TEST(Health, OfANodeWhoseKeyNobodySharesIsForPeopleUnlessMembersAnswer) {
  NodeStatus status = training();
  status.key_refusals = {"10.0.0.1:7400", "b:7400 (10.0.0.2:7400)"};
  EXPECT_FALSE(report(status).well());
  EXPECT_TRUE(report(status).healthy());
  EXPECT_EQ(report(status).complaints(),
            "key: the key exchange is ended by 10.0.0.1:7400 and 1 more: compare cluster.key_file "
            "there and here (sha256sum)");
  gossip::SwimMember member;
  member.held = std::make_shared<const schema::MemberRecord>();
  status.members.push_back(member);
  EXPECT_TRUE(is_ok(report(status), "key")) << "those addresses are wrong, not this node";
}

TEST(Health, OfANodeWhoseDiskIsFullLikewise) {
  NodeStatus status = training();
  status.checkpoints.last_error = "no space left on device";
  EXPECT_FALSE(is_ok(report(status), "checkpoint"));
  EXPECT_FALSE(report(status).well());
  EXPECT_TRUE(report(status).healthy());
}

TEST(Health, OfANodeThatCannotWriteTheFinalModelLikewise) {
  NodeStatus status = training();
  status.self.run_state = schema::RunState::kFinishing;
  EXPECT_TRUE(is_ok(report(status), "final model"));
  status.final_error = "cannot write model.safetensors: no space left on device";
  EXPECT_FALSE(is_ok(report(status), "final model"));
  EXPECT_FALSE(report(status).well());
  EXPECT_TRUE(report(status).healthy());
}

TEST(Health, CheckpointsThatDoNotComeAreMissedAfterThreeIntervals) {
  EXPECT_TRUE(is_ok(report(training(), 90), "checkpoint"));
  EXPECT_FALSE(is_ok(report(training(), 91), "checkpoint"));
  NodeStatus finishing = training();
  finishing.self.run_state = schema::RunState::kFinishing;
  EXPECT_TRUE(is_ok(report(finishing, 1000), "checkpoint")) << "none is due any more";
}

TEST(Health, ATrainerThatIsNotFiniteOrALoopThatStandsStillIsUnsound) {
  compute::TrainerStats trainer;
  trainer.healthy = false;
  EXPECT_FALSE(health_of(training(), trainer, kEvery, {}).healthy());
  trainer.healthy = true;
  EXPECT_TRUE(health_of(training(), trainer, kEvery, TimePoint{seconds(9)}).healthy());
  EXPECT_FALSE(health_of(training(), trainer, kEvery, TimePoint{seconds(11)}).healthy());
}

}  // namespace
}  // namespace kith::node
