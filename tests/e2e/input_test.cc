// Bad input from outside: one clear line, the documented exit code, before training starts, nothing half-written.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/e2e/cluster.h"

namespace kith::e2e {
namespace {

namespace fs = std::filesystem;

struct Case {
  const char* name;
  std::vector<std::string> flags;
  int code;
  const char* text;  // must appear in the message
};

std::string mnist(const std::string& file) { return std::string(KITH_SOURCE_DIR) + "/data/mnist/" + file; }

std::vector<std::string> base(const Cluster& cluster, const std::string& data_dir) {
  return {kithd_path(), "-c", cluster.config_file(), "--http", loopback() + ":0", "--listen", loopback() + ":0",
          "--data-dir", data_dir};
}

void expect_refused(const Cluster& cluster, const Case& c) {
  const std::string dir = cluster.folder() + "/" + c.name;
  auto arguments = base(cluster, dir);
  arguments.insert(arguments.end(), c.flags.begin(), c.flags.end());
  const Finished run = run_program(arguments, seconds(20));
  EXPECT_EQ(run.exit.code, c.code) << c.name << ": " << run.output;
  EXPECT_NE(run.output.find(c.text), std::string::npos) << c.name << ": " << run.output;
  EXPECT_FALSE(fs::exists(dir + "/checkpoints") && !fs::is_empty(dir + "/checkpoints")) << c.name;
  EXPECT_FALSE(fs::exists(dir + "/model.safetensors")) << c.name;
}

TEST(BadInput, FlagsAndKeysAreRefusedByName) {
  Cluster cluster(digits_config("linear", 1));
  const Case cases[] = {
      {"unknown-key", {"--set", "train.lerning_rate=1"}, 2, "learning_rate"},
      {"unknown-table", {"--set", "trian.momentum=1"}, 2, "train"},
      {"wrong-type", {"--set", "train.batch_size=\"many\""}, 2, "train.batch_size"},
      {"out-of-range", {"--set", "train.batch_size=0"}, 2, "train.batch_size"},
      {"method", {"--set", "method.name=ad-pgsd"}, 2, "ad-psgd"},
      {"topology", {"--set", "method.topology=rnig"}, 2, "ring"},
      {"codec", {"--set", "method.codec=fp23"}, 2, "fp32"},
      {"alpha", {"--set", "method.name=elastic-gossip", "--set", "method.alpha=0.9"}, 2, "alpha"},
      {"model", {"--set", "model.kind=lineer"}, 2, "linear"},
      {"shard", {"--set", "data.shard=5/4"}, 2, "data.shard"},
      {"seed-port", {"--join", "127.0.0.1:99999"}, 2, "99999"},
      {"listen", {"--listen", "nonsense"}, 2, "nonsense"},
      {"both-lengths", {"--set", "run.steps=10"}, 2, "run.steps"},
      {"flag", {"--lisen", "127.0.0.1:1"}, 2, "--lisen"},
      {"any-address", {"--listen", "0.0.0.0:0"}, 2, "key"},
      {"key-missing", {"--set", "cluster.key_file=absent.key"}, 2, "absent.key"},
  };
  for (const Case& c : cases) expect_refused(cluster, c);
}

TEST(BadInput, FilesAreRefusedByNameWithExitEight) {
  Cluster cluster(digits_config("linear", 1));
  const std::string cut = cluster.folder() + "/cut.gz";
  const std::string whole = bytes_of(mnist("train-images-idx3-ubyte.gz"));
  std::ofstream(cut, std::ios::binary) << whole.substr(0, whole.size() / 2);
  std::ofstream(cluster.folder() + "/text.csv") << "1,2,3\n4,x,6\n";
  const std::string images = mnist("train-images-idx3-ubyte.gz");
  const std::string labels = mnist("train-labels-idx1-ubyte.gz");
  const std::string cut_set = "data.train=[\"" + cut + "\",\"" + labels + "\"]";
  const std::string missing = "data.train=[\"/nowhere/images.gz\",\"" + labels + "\"]";
  const std::string swapped = "data.train=[\"" + labels + "\",\"" + images + "\"]";
  const std::string test_labels = "data.train=[\"" + images + "\",\"" + mnist("t10k-labels-idx1-ubyte.gz") + "\"]";
  const std::string csv = "data.train=[\"" + cluster.folder() + "/text.csv\"]";
  const Case cases[] = {
      {"truncated", {"--set", cut_set}, 8, "cut.gz"},
      {"missing-file", {"--set", missing}, 8, "/nowhere/images.gz"},
      {"swapped", {"--set", swapped}, 8, "train-labels"},
      {"counts-differ", {"--set", test_labels}, 8, "1000"},
      {"csv-word", {"--set", "data.format=csv", "--set", csv, "--set", "data.test=[]"}, 8, "text.csv:2"},
      {"labels-beyond", {"--set", "data.classes=5"}, 8, "label"},
  };
  for (const Case& c : cases) expect_refused(cluster, c);
}

TEST(BadInput, AKeyFileThatOthersMayReadIsRefusedWithTheRemedy) {
  Cluster cluster(digits_config("linear", 1));
  const std::string key = cluster.folder() + "/cluster.key";
  const Finished made = run_program({kith_path(), "keygen", key});
  ASSERT_EQ(made.exit.code, 0) << made.output;
  EXPECT_EQ(fs::status(key).permissions(), fs::perms(0600));
  fs::permissions(key, fs::perms(0644));
  const std::string set = "cluster.key_file=" + key;
  expect_refused(cluster, {"open-key", {"--set", set.c_str()}, 2, "chmod 600"});
  expect_refused(cluster, {"open-key-checked", {"--check", "--set", set.c_str()}, 2, "chmod 600"});
}

TEST(BadInput, AnOccupiedPortIsNamedWithExitSix) {
  Cluster cluster(digits_config("linear", 1));
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  socklen_t length = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  const std::string taken = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  expect_refused(cluster, {"listen-taken", {"--listen", taken}, 6, taken.c_str()});
  expect_refused(cluster, {"http-taken", {"--http", taken}, 6, taken.c_str()});
  ::close(fd);
}

TEST(BadInput, NoSeedWithinTheJoinTimeoutEndsWithFourAndSaysWhatWasTried) {
  Cluster cluster(digits_config("linear", 1));
  expect_refused(cluster, {"no-seed", {"--join", "127.0.0.1:9", "--join-timeout", "2s"}, 4, "127.0.0.1:9"});
}

TEST(BadInput, AnotherRunOrModelIsRefusedByEverySeedWithFive) {
  Cluster cluster(digits_config("linear", 1, "min_step_ms = 20\n"));
  NodeOptions endless;
  endless.flags = {"--set", "run.epochs=0"};
  cluster.add(endless);
  const std::string seed = cluster[0].address();
  const Case cases[] = {
      {"other-run", {"--join", seed, "--set", "run.epochs=0", "--set", "run.id=digits-2"}, 5, "digits-1"},
      {"other-cluster", {"--join", seed, "--set", "run.epochs=0", "--set", "cluster.name=x"}, 5, "cluster.name"},
      {"other-seed", {"--join", seed, "--set", "run.epochs=0", "--set", "run.seed=9"}, 5, "run.seed"},
      {"other-fragments", {"--join", seed, "--set", "run.epochs=0", "--set", "exchange.fragment_bytes=8192",
                           "--set", "exchange.chunk_bytes=4096"}, 5, "schema"},
      {"other-mean", {"--join", seed, "--set", "run.epochs=0", "--set", "data.mean=0.5", "--set", "data.std=0.3"}, 5, "data.mean"},
  };
  for (const Case& c : cases) expect_refused(cluster, c);
  EXPECT_TRUE(cluster[0].running());
}

TEST(Keys, AClusterWithAKeyTrainsAndANodeWithoutItReachesNothing) {
  Cluster cluster(digits_config("linear", 1, "min_step_ms = 5\n"));
  const std::string key = cluster.folder() + "/cluster.key";
  ASSERT_EQ(run_program({kith_path(), "keygen", key}).exit.code, 0);
  NodeOptions member;
  member.flags = {"--set", "cluster.key_file=" + key, "--set", "run.start_members=2"};
  cluster.add(member);
  const std::string seed = cluster[0].address();
  expect_refused(cluster, {"no-key", {"--join", seed, "--join-timeout", "3s"}, 4, seed.c_str()});
  const std::string other = cluster.folder() + "/other.key";
  ASSERT_EQ(run_program({kith_path(), "keygen", other}).exit.code, 0);
  const std::string set = "cluster.key_file=" + other;
  expect_refused(cluster, {"wrong-key", {"--join", seed, "--join-timeout", "3s", "--set", set}, 4, seed.c_str()});
  EXPECT_EQ(cluster[0].get("/members")["members"].size(), 1U) << "neither is known to the cluster";
  cluster.add(member);
  ASSERT_TRUE(cluster.all_exit_zero(seconds(60)));
  EXPECT_TRUE(bytes_of(cluster[0].folder() + "/data/model.safetensors") ==
              bytes_of(cluster[1].folder() + "/data/model.safetensors"));
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(cluster[i].log().find(bytes_of(key).substr(0, 64)), std::string::npos) << "the key is in a log";
}

TEST(Keys, ANodeWithAnotherKeySaysSoOnceAndItsHealthAndStatusToo) {
  Cluster cluster(digits_config("linear", 1, "min_step_ms = 5\n"));
  const std::string key = cluster.folder() + "/cluster.key", other = cluster.folder() + "/other.key";
  for (const std::string& file : {key, other}) ASSERT_EQ(run_program({kith_path(), "keygen", file}).exit.code, 0);
  cluster.add(with({"run.epochs=0", "cluster.key_file=" + key}));
  Node& stranger = cluster.add(with({"cluster.key_file=" + other}));
  const std::string warning = "a seed or member ends the key exchange: do the cluster keys differ?  peer=" +
                              cluster[0].address();
  ASSERT_TRUE(cluster.wait(seconds(20), "the warning", [&] { return stranger.log().find(warning) != std::string::npos; }));
  EXPECT_NE(stranger.log().find("cluster.key_file there and here must be the same"), std::string::npos);
  const auto ask = [&](const std::string& command) {
    return run_program({kith_path(), command, "--at", stranger.folder() + "/data"});
  };
  ASSERT_TRUE(cluster.wait(seconds(20), "its health", [&] { return ask("health").exit.code == 10; }));
  const std::string complaint = "key: the key exchange is ended by " + cluster[0].address();
  EXPECT_NE(ask("health").output.find("FAIL  " + complaint), std::string::npos) << ask("health").output;
  EXPECT_NE(ask("status").output.find(complaint), std::string::npos) << ask("status").output;
  EXPECT_EQ(run_program({kith_path(), "health", "--at", cluster[0].folder() + "/data"}).exit.code, 0);
  const std::string log = stranger.log();
  EXPECT_EQ(log.find(warning), log.rfind(warning)) << "said once:\n" << log;
}

TEST(NonFinite, ALonelyNodeFallsBackThreeTimesAndThenEndsWithOne) {
  Cluster cluster(digits_config("linear", 1, "min_step_ms = 1\n"));
  Node& node = cluster.add({{"--standalone", "--set", "data.mean=0.13", "--set", "data.std=1e-36"}, {}});
  const auto exit = node.wait_exit(seconds(30));
  ASSERT_TRUE(exit.has_value()) << node.log();
  EXPECT_EQ(exit->code, 1);
  EXPECT_NE(node.log().find("try=3"), std::string::npos) << node.log();
  EXPECT_NE(node.log().find("lower train.learning_rate"), std::string::npos) << node.log();
}

// Sixteen samples whose values overflow in the first forward pass.
void write_poison(const std::string& folder) {
  const std::vector<float> values(16 * 784, 3e38F);
  std::string labels(16, '\0');
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<char>(i % 10);
  write_npy(folder + "/x.npy", "<f4", "(16, 784)", std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4));
  write_npy(folder + "/y.npy", "|u1", "(16,)", labels);
}

TEST(NonFinite, InAClusterItIsContainedAndTheNodeTakesAHealthyState) {
  Cluster cluster(digits_config("linear", 1, "min_step_ms = 20\n"));
  write_poison(cluster.folder());
  const std::vector<std::string> common = {"--set", "run.epochs=0",     "--set", "data.mean=0.13",
                                           "--set", "data.std=0.3",     "--set", "data.classes=10",
                                           "--set", "exchange.max_lag=100000"};
  cluster.add({common, {}});
  std::vector<std::string> poisoned = common;
  poisoned.insert(poisoned.end(), {"--set", "data.format=npy", "--set", "data.train=[\"" + cluster.folder() + "/x.npy\",\"" +
                                       cluster.folder() + "/y.npy\"]", "--set", "data.test=[]"});
  cluster.add({poisoned, {}});
  ASSERT_TRUE(cluster.wait(seconds(30), "the poisoned node has taken a state twice", [&] {
    return cluster[1].get("/status").value("adoptions", 0) >= 3;
  }));
  EXPECT_NE(cluster[1].log().find("not finite"), std::string::npos);
  EXPECT_TRUE(cluster.wait(seconds(30), "the healthy node goes on learning", [&] {
    const auto healthy = cluster[0].get("/status");
    return healthy.is_object() && healthy["healthy"].get<bool>() && healthy["loss"].is_number() &&
           healthy["loss"].get<double>() < 1.0;
  }));
  EXPECT_TRUE(cluster[0].running() && cluster[1].running());
}

TEST(Identity, OfTwoNodesWithACopiedDataDirectoryTheOlderEndsWithSeven) {
  Cluster cluster(digits_config("linear", 1, "min_step_ms = 20\n"));
  NodeOptions endless;
  endless.flags = {"--set", "run.epochs=0", "--set", "run.start_members=3"};
  for (int i = 0; i < 3; ++i) cluster.add(endless);
  ASSERT_TRUE(cluster.wait(seconds(30), "they exchange",
                           [&] { return cluster[2].get("/status").value("exchanges_total", 0) > 5; }));
  const std::string original = cluster[1].folder() + "/data";
  const std::string copy = cluster.folder() + "/n4/data";
  fs::create_directories(copy);
  for (const char* file : {"identity.key", "incarnation"}) fs::copy_file(original + "/" + file, copy + "/" + file);
  cluster.add(endless);
  const auto exit = cluster[1].wait_exit(seconds(30));
  ASSERT_TRUE(exit.has_value()) << cluster[1].log();
  EXPECT_EQ(exit->code, 7) << cluster[1].log();
  EXPECT_TRUE(cluster[0].running() && cluster[2].running() && cluster[3].running());
}

TEST(Pauses, AStopOfThreeSecondsKillsNobody) {
  Cluster cluster(digits_config("linear", 1, "min_step_ms = 20\n"));
  NodeOptions endless;
  endless.flags = {"--set", "run.epochs=0", "--set", "run.start_members=3"};
  for (int i = 0; i < 3; ++i) cluster.add(endless);
  ASSERT_TRUE(cluster.wait(seconds(30), "they exchange",
                           [&] { return cluster[2].get("/status").value("exchanges_total", 0) > 5; }));
  cluster[1].signal(SIGSTOP);
  const auto state_at_first = [&] {
    const auto members = cluster[0].get("/members");
    for (const auto& m : members["members"])
      if (m["name"] == "n2") return m["state"].get<std::string>();
    return std::string("unknown");
  };
  ASSERT_TRUE(cluster.wait(seconds(10), "it is suspected", [&] { return state_at_first() == "suspect"; }));
  cluster[1].signal(SIGCONT);
  EXPECT_TRUE(cluster.wait(seconds(10), "it is alive again", [&] { return state_at_first() == "alive"; }));
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(cluster[i].log().find("member dead"), std::string::npos) << "n" << i + 1;
}

TEST(Ports, ZeroIsAnyAndTheRealOneIsPrintedAndWritten) {
  Cluster cluster(digits_config("linear", 1, "min_step_ms = 20\n"));
  cluster.add({{"--set", "run.epochs=0"}, {}});
  std::ifstream in(cluster[0].folder() + "/data/http");
  std::string written;
  std::getline(in, written);
  const auto status = cluster[0].get("/status");
  ASSERT_TRUE(status.is_object());
  EXPECT_EQ(status["http"], written);
  EXPECT_EQ(written.find(":0"), std::string::npos);
}

TEST(Signals, TermLeavesInOrderAndTheOthersShowItAsLeft) {
  Cluster cluster(digits_config("linear", 1, "min_step_ms = 20\n"));
  NodeOptions endless;
  endless.flags = {"--set", "run.epochs=0", "--set", "run.start_members=2"};
  cluster.add(endless);
  cluster.add(endless);
  ASSERT_TRUE(cluster.wait(seconds(30), "they exchange",
                           [&] { return cluster[1].get("/status").value("exchanges_total", 0) > 5; }));
  cluster[1].signal(SIGTERM);
  const auto exit = cluster[1].wait_exit(seconds(20));
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 0);
  EXPECT_TRUE(cluster.wait(seconds(5), "shown as left", [&] {
    const auto members = cluster[0].get("/members");
    for (const auto& m : members["members"])
      if (m["name"] == "n2") return m["state"] == "left";
    return false;
  }));
  EXPECT_EQ(cluster[0].log().find("member dead"), std::string::npos);
  EXPECT_FALSE(fs::is_empty(cluster[1].folder() + "/data/checkpoints"));
}

// No pause between steps: one is always under way when the signal comes.
TEST(Signals, TheStepOfTheLastCheckpointIsTheOneThatIsLeftWith) {
  Cluster cluster(digits_config("linear", 1));
  cluster.add({{"--standalone", "--set", "run.epochs=0", "--set", "train.batch_size=4096"}, {}});
  ASSERT_TRUE(cluster.wait(seconds(30), "it trains", [&] { return cluster[0].get("/status").value("step", 0) > 5; }));
  cluster[0].signal(SIGTERM);
  const auto exit = cluster[0].wait_exit(seconds(20));
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 0);
  const auto step_in = [&](const std::string& message) {
    std::istringstream lines(cluster[0].log());
    std::string step;
    for (std::string line; std::getline(lines, line);)
      if (line.find(message) != std::string::npos) step = line.substr(line.find("step=")).substr(5);
    return step.substr(0, step.find(' '));
  };
  const std::string written = step_in("info  checkpoint written");
  EXPECT_NE(written, "");
  EXPECT_EQ(step_in("leaving: checkpoint written"), written);
  EXPECT_EQ(step_in("node       left"), written);
}

// Both are sent while it is stopped, so that the second is there before the first has had its effect.
TEST(Signals, ASecondOneEndsAtOnceWith130AndWithoutACheckpoint) {
  Cluster cluster(digits_config("linear", 1, "min_step_ms = 20\n"));
  cluster.add({{"--set", "run.epochs=0"}, {}});
  ASSERT_TRUE(cluster.wait(seconds(30), "it trains", [&] { return cluster[0].get("/status").value("step", 0) > 5; }));
  for (const int signal : {SIGSTOP, SIGTERM, SIGINT, SIGCONT}) cluster[0].signal(signal);
  const auto exit = cluster[0].wait_exit(seconds(20));
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 130);
  for (const auto& file : fs::directory_iterator(cluster[0].folder() + "/data/checkpoints"))
    EXPECT_EQ(file.path().filename(), "step-000000000000.safetensors") << "only that of the start";
}

TEST(Commands, WorkOnARunningNode) {
  Cluster cluster(digits_config("linear", 1, "min_step_ms = 20\n"));
  cluster.add({{"--set", "run.epochs=0"}, {}});
  const std::string data = cluster[0].folder() + "/data";
  const std::string http = cluster[0].get("/status")["http"];
  const auto kith = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), kith_path());
    return run_program(arguments);
  };
  EXPECT_EQ(kith({"status", "--at", http}).exit.code, 0);
  const Finished status = kith({"status", "--at", data, "-o", "json"});
  ASSERT_EQ(status.exit.code, 0) << status.output;
  const auto json = nlohmann::json::parse(status.output, nullptr, false);
  ASSERT_TRUE(json.is_object()) << status.output;
  for (const char* key : {"name", "id", "run", "state", "step", "epoch", "loss", "accuracy", "learning_rate",
                          "steps_per_second", "members", "exchanges_total", "exchanges_failed_total",
                          "staleness_steps", "consensus_distance", "last_checkpoint_step", "version"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(kith({"members", "--at", http}).exit.code, 0);
  EXPECT_EQ(kith({"health", "--at", http}).exit.code, 0);
  const Finished checkpoint = kith({"checkpoint", "now", "--at", data});
  EXPECT_EQ(checkpoint.exit.code, 0) << checkpoint.output;
  const std::string exported = cluster.folder() + "/exported.safetensors";
  const auto checkpoints = [&] {
    std::set<std::string> names;
    for (const auto& file : fs::directory_iterator(data + "/checkpoints")) names.insert(file.path().filename());
    return names;
  };
  const auto before = checkpoints();
  for (int i = 0; i < 4; ++i) {  // more often than checkpoint.keep
    const Finished out = kith({"checkpoint", "export", "-o", exported, "--at", data});
    EXPECT_EQ(out.exit.code, 0) << out.output;
  }
  EXPECT_EQ(checkpoints(), before) << "an export costs no checkpoint";
  EXPECT_EQ(metadata_of(exported)["run_id"], "digits-1");
  EXPECT_EQ(kith({"leave", "--at", data}).exit.code, 0);
  const auto exit = cluster[0].wait_exit(seconds(20));
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 0);
  EXPECT_EQ(kith({"status", "--at", http}).exit.code, 3);
  EXPECT_EQ(kith({"status", "--at", data}).exit.code, 3);
  EXPECT_EQ(kith({"checkpoint", "now", "--at", data}).exit.code, 3);
  EXPECT_EQ(kith({"leave", "--at", data}).exit.code, 3);
}

}  // namespace
}  // namespace kith::e2e
