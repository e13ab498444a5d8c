// What an operator types and sees: a dry run, a reload by SIGHUP, the line of a node that joined.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "tests/e2e/cluster.h"

namespace kith::e2e {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

constexpr auto kPatience = seconds(30);

std::string slow_config() { return digits_config("linear", 7, "min_step_ms = 50\n"); }

void rewrite(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

TEST(DryRun, TellsSizeMemoryBytesAndShareAndStartsNothing) {
  Cluster cluster(slow_config());
  const std::string folder = cluster.folder() + "/none";
  const Finished run =
      run_program({kithd_path(), "-c", cluster.config_file(), "--data-dir", folder, "--dry-run"});
  EXPECT_EQ(run.exit.code, 0);
  EXPECT_THAT(run.output, HasSubstr("linear, 7850 parameters, 31.4 kB"));
  EXPECT_THAT(run.output, HasSubstr("31.4 kB each way for one averaging"));
  EXPECT_THAT(run.output, HasSubstr("memory"));
  // At most 20 steps/s by min_step_ms, two averagings a step.
  EXPECT_THAT(run.output, HasSubstr("20.0 steps/s"));
  EXPECT_THAT(run.output, HasSubstr("at most 1.3 MB/s each way (1 % of a link of 1 Gbit/s)"));
  EXPECT_FALSE(std::ifstream(folder + "/identity.key").good());
  const Finished wrong = run_program({kithd_path(), "-c", cluster.config_file(), "--set",
                                      "data.train=[\"gone\", \"gone\"]", "--dry-run"});
  EXPECT_NE(wrong.exit.code, 0);
  EXPECT_THAT(wrong.output, HasSubstr("gone"));
}

TEST(Reload, AppliesWhatItCanNamesWhatNeedsARestartAndRefusesWhatIsWrong) {
  Cluster cluster(slow_config());
  Node& node = cluster.add(with({"run.epochs=0"}));
  const std::string good = slow_config() +
                           "[log]\nlevel = \"debug\"\n[checkpoint]\nevery_seconds = 7\nkeep = "
                           "2\n[exchange]\nmax_lag = \"20%\"\n";
  rewrite(cluster.config_file(), good);
  node.signal(SIGHUP);
  ASSERT_TRUE(cluster.wait(kPatience, "the reload",
                           [&] { return node.log().find("need a restart") != std::string::npos; }));
  EXPECT_THAT(node.log(), HasSubstr("log.level: info -> debug"));
  EXPECT_THAT(node.log(), HasSubstr("checkpoint.every_seconds: 30 -> 7"));
  EXPECT_THAT(node.log(), HasSubstr("exchange.max_lag: 10% -> 20%"));
  EXPECT_EQ(node.metric("kith_checkpoint_interval_seconds"), 7);
  EXPECT_EQ(node.metric("kith_config_last_reload_successful"), 1);

  rewrite(cluster.config_file(), slow_config() + "[checkpoint]\nevry_seconds = 7\n");
  node.signal(SIGHUP);
  ASSERT_TRUE(cluster.wait(kPatience, "the refusal",
                           [&] { return node.metric("kith_config_last_reload_successful") == 0; }));
  EXPECT_THAT(node.log(), HasSubstr("checkpoint.every_seconds"));
  EXPECT_EQ(node.metric("kith_checkpoint_interval_seconds"), 7);

  rewrite(cluster.config_file(), good);
  node.signal(SIGHUP);
  EXPECT_TRUE(cluster.wait(kPatience, "the way back",
                           [&] { return node.metric("kith_config_last_reload_successful") == 1; }));
  EXPECT_TRUE(node.running());
}

TEST(Stopping, BeforeTheDataIsLoadedEndsAtOnceWithZero) {
  Cluster cluster(slow_config());
  const std::string pipe = cluster.folder() + "/images";  // whoever opens it waits for a writer
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  NodeOptions options = with({"data.train=[\"" + pipe + "\", \"" + pipe + "\"]"});
  options.wait_ready = false;
  Node& node = cluster.add(options);
  ASSERT_TRUE(cluster.wait(kPatience, "it waits for signals", [&] {
    const std::string status = bytes_of("/proc/" + std::to_string(node.pid()) + "/status");
    const auto at = status.find("SigBlk:");
    return at != std::string::npos &&
           (std::stoull(status.substr(at + 7), nullptr, 16) >> (SIGTERM - 1) & 1) == 1;
  }));
  node.signal(SIGTERM);
  const auto exit = node.wait_exit(kPatience);
  ASSERT_TRUE(exit.has_value()) << node.log();
  EXPECT_EQ(exit->code, 0);
  EXPECT_EQ(exit->signal, 0);
  EXPECT_THAT(node.log(), HasSubstr("stopped before it had begun"));
}

TEST(Joining, IsSaidInOneLineWithWhatPeopleAskFor) {
  Cluster cluster(slow_config());
  Node& first = cluster.add(with({"run.epochs=0"}));
  ASSERT_TRUE(
      cluster.wait(kPatience, "steps", [&] { return first.get("/status").value("step", 0) > 5; }));
  Node& second = cluster.add(with({"run.epochs=0"}));
  ASSERT_TRUE(cluster.wait(kPatience, "the join",
                           [&] { return second.log().find("joined run") != std::string::npos; }));
  std::istringstream lines(second.log());
  std::string line;
  while (std::getline(lines, line) && line.find("joined run") == std::string::npos) {
  }
  EXPECT_THAT(line, MatchesRegex(".*joined run digits-1 via n1: 2 members, synced model \\([0-9.]+ "
                                 "kB\\) in [0-9.]+ s, starting at step [0-9]+.*"));
  const Finished members = run_program({kith_path(), "members", "--at", first.folder() + "/data"});
  EXPECT_THAT(members.output, HasSubstr("NAME  ID        ADDRESS"));
  for (const char* column : {"STATE", "STEP", "LAG", "LOSS", "RTT-MS", "LAST-EXCHANGE"})
    EXPECT_THAT(members.output, HasSubstr(column));
}

TEST(Joining, ByAWrongSeedSaysWhatWasTriedWhyItFailedAndWhenAgainAndEndsWithFour) {
  Cluster cluster(slow_config());
  const Finished run =
      run_program({kithd_path(), "-c", cluster.config_file(), "--listen", loopback() + ":0",
                   "--http", loopback() + ":0", "--data-dir", cluster.folder() + "/lost", "--join",
                   "no-such-host.invalid:7946", "--join-timeout", "3s"});
  EXPECT_EQ(run.exit.code, 4);
  EXPECT_THAT(run.output, HasSubstr("no seed reached yet, each is tried again within 4 s: "
                                    "no-such-host.invalid:7946: name 'no-such-host.invalid'"));
}

TEST(Health, IsTheSameForStatusAndHealthAlsoOfANodeThatIsCutOff) {
  Cluster cluster(slow_config());
  Node& node = cluster.add(with({"run.epochs=0"}));
  cluster.add(with({"run.epochs=0"}));
  const auto ask = [&](const std::string& command) {
    return run_program({kith_path(), command, "--at", node.folder() + "/data"});
  };
  ASSERT_TRUE(cluster.wait(kPatience, "both",
                           [&] { return node.get("/status").value("members", 0) == 2; }));
  EXPECT_THAT(ask("status").output, HasSubstr("healthy                 true\n"));
  EXPECT_EQ(ask("health").exit.code, 0);
  cluster[1].kill_now();
  ASSERT_TRUE(cluster.wait(kPatience, "it is alone",
                           [&] { return !node.get("/status").value("healthy", true); }));
  EXPECT_THAT(ask("status").output, HasSubstr("unhealthy_because       members: isolated: "));
  EXPECT_EQ(ask("health").exit.code, 10);
  const auto members = node.get("/members")["members"];
  for (const auto& member : members)
    EXPECT_EQ(member["lag_steps"].is_null(), member["state"] == "dead") << member;
}

TEST(Export, OntoADiskThatHangsHoldsUpNeitherExchangesNorCheckpointsNorTheEnd) {
  Cluster cluster(slow_config());
  const std::vector<std::string> sets = {"run.epochs=0", "checkpoint.every_seconds=0.2"};
  NodeOptions hanging = with(sets);
  hanging.environment["KITH_FAULTS"] = "export-opened=hang@1";
  Node& node = cluster.add(hanging);
  cluster.add(with(sets));
  const auto begin_export = [&](const std::string& file) {
    return run_program({kith_path(), "checkpoint", "export", "-o", cluster.folder() + "/" + file,
                        "--at", node.folder() + "/data"});
  };
  const auto grow_by_ten = [&](const std::string& series) {
    const double before = node.metric(series);
    return cluster.wait(kPatience, series + " grows",
                        [&] { return node.metric(series) >= before + 10; });
  };
  const std::string exchanges = "kith_exchanges_total{role=\"initiator\"}";
  ASSERT_TRUE(cluster.wait(kPatience, "exchanges", [&] { return node.metric(exchanges) > 0; }));
  std::thread asking([&] {
    while (begin_export("first").output.find("try again in a moment") != std::string::npos) {
    }  // a checkpoint was under way
  });
  EXPECT_TRUE(cluster.wait(kPatience, "the export begins", [&] {
    return node.log().find("exporting  path=") != std::string::npos;
  }));
  EXPECT_TRUE(grow_by_ten(exchanges));
  EXPECT_TRUE(grow_by_ten("kith_checkpoints_total"));
  const Finished second = begin_export("second");
  EXPECT_NE(second.exit.code, 0);
  EXPECT_THAT(second.output, HasSubstr("/first is being written: one at a time"));
  node.signal(SIGTERM);
  const auto exit = node.wait_exit(kPatience);
  asking.join();
  ASSERT_TRUE(exit.has_value()) << node.log();
  EXPECT_EQ(exit->code, 0) << node.log();
  EXPECT_THAT(node.log(), HasSubstr("ending without an export that its disk holds up"));
}

TEST(Export, OfARunningNodeLoadsInPython) {
  const std::string load =
      "import sys; from safetensors.numpy import load_file; t = load_file(sys.argv[1]); "
      "print(sorted((k, v.shape) for k, v in t.items()))";
  if (run_program({"/usr/bin/python3", "-c", "import safetensors.numpy"}).exit.code != 0)
    GTEST_SKIP() << "needs Python's safetensors and numpy";
  Cluster cluster(slow_config());
  Node& node = cluster.add(with({"run.epochs=0"}));
  const std::string file = cluster.folder() + "/model.safetensors";
  const Finished exported = run_program({kith_path(), "checkpoint", "export", "--averaged", "-o",
                                         file, "--at", node.folder() + "/data"});
  EXPECT_EQ(exported.exit.code, 0) << exported.output;
  EXPECT_EQ(run_program({"/usr/bin/python3", "-c", load, file}).output,
            "[('bias', (10,)), ('weight', (10, 784))]\n");
}

}  // namespace
}  // namespace kith::e2e
