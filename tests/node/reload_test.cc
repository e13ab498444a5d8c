#include "node/config/reload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/setup/dry_run.h"

namespace kith::node {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Config config_with(const std::vector<Flag>& flags) { return *load_config("", flags, {}); }

TEST(ReloadComparison, TellsLiveKeysFromThoseThatNeedARestart) {
  const ConfigChange change = compare(config_with({}), config_with({{"log.level", "debug"},
                                                                    {"checkpoint.keep", "5"},
                                                                    {"train.momentum", "0.5"},
                                                                    {"run.id", "x"}}));
  EXPECT_THAT(change.live, ElementsAre("checkpoint.keep: 3 -> 5", "log.level: info -> debug"));
  EXPECT_THAT(change.restart,
              ElementsAre("run.id: run -> x", testing::StartsWith("train.momentum: ")));
  const ConfigChange none = compare(config_with({}), config_with({}));
  EXPECT_THAT(none.live, IsEmpty());
  EXPECT_THAT(none.restart, IsEmpty());
}

struct Fixture {
  std::vector<Flag> next;
  bool refused = false;
  std::optional<LogLevel> level;
  int applied = 0;
  MemoryLog log;
  LiveSettings live{config_with({})};
  Reloader reloader{config_with({}),
                    {[this]() -> Result<Config> {
                       if (refused) return fail(ErrorCode::kUsage, "run.toml:3: unknown key");
                       return config_with(next);
                     },
                     [this](LogLevel to) { level = to; }},
                    live,
                    [this] { ++applied; },
                    log};
};

TEST(Reload, AppliesLiveKeysAndGoesOnNamingTheOthersUntilTheyAreAsTheyWere) {
  Fixture f;
  f.next = {{"log.level", "warn"}, {"checkpoint.every_seconds", "5"}, {"run.seed", "9"}};
  f.reloader.reload();
  EXPECT_EQ(f.level, LogLevel::kWarn);
  EXPECT_EQ(f.live.checkpoint_every_seconds, 5);
  EXPECT_EQ(f.applied, 1);
  EXPECT_TRUE(f.log.contains("need a restart"));
  const auto lines = f.log.lines().size();
  f.reloader.reload();
  EXPECT_EQ(f.log.lines().size(), lines + 1) << "the seed again, the applied ones not";
}

TEST(Reload, ThatIsRefusedChangesNothing) {
  Fixture f;
  f.refused = true;
  f.reloader.reload();
  EXPECT_FALSE(f.live.reload_successful);
  EXPECT_EQ(f.live.checkpoint_every_seconds, 30);
  EXPECT_EQ(f.applied, 0);
  EXPECT_TRUE(f.log.contains("run.toml:3"));
  f.refused = false;
  f.reloader.reload();
  EXPECT_TRUE(f.live.reload_successful);
}

TEST(DryRunArithmetic, CountsOwnAndOthersProposals) {
  EXPECT_DOUBLE_EQ(averaging_bytes_per_second(1000, 10, 1), 20000);
  EXPECT_DOUBLE_EQ(averaging_bytes_per_second(1000, 10, 4), 5000);
}

}  // namespace
}  // namespace kith::node
