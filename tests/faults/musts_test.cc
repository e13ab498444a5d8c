// What a cluster must do, measured: joining underway, losing half, starting at once, keeping quiet.
// On loopback.
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <sstream>

#include "base/random.h"
#include "tests/faults/fault_row.h"

namespace kith::e2e {
namespace {

std::string pace(int step_ms) { return "min_step_ms = " + std::to_string(step_ms) + "\n"; }

Indices first(std::size_t count) {
  Indices all;
  for (std::size_t i = 0; i < count; ++i) all.insert(i);
  return all;
}

double phase(const Node& node, const std::string& which) {
  return node.metric("kith_train_step_phase_seconds_total{phase=\"" + which + "\"}");
}

double accuracy_of(const Node& node) {
  const auto status = node.get("/status");
  return status.is_object() && status["accuracy"].is_number() ? status["accuracy"].get<double>()
                                                              : std::nan("");
}

double epoch_of(const Node& node) {
  const auto status = node.get("/status");
  return status.is_object() ? status.value("epoch", 0.0) : 0.0;
}

// Lines of a node's log that name this member.
std::size_t lines_about(const Node& node, const std::string& name) {
  std::stringstream log(node.log());
  std::size_t count = 0;
  for (std::string line; std::getline(log, line);)
    count += line.find("name=" + name + " ") != std::string::npos ? 1 : 0;
  return count;
}

TEST(Must, AFifthNodeThatJoinsHalfwayContributesWithinTenSecondsAndNobodyWaits) {
  // At the usual rate of 0.05 a replica's accuracy moves by some points from one evaluation to the
  // next: then two of them tell nothing about who knows more.
  const std::string calm = "train.learning_rate=0.01";
  Cluster cluster(digits_config("linear", 1, pace(50)));
  for (int i = 0; i < 4; ++i) cluster.add(with({"run.epochs=0", "run.start_members=4", calm}));
  ASSERT_TRUE(cluster.wait(seconds(60), "halfway", [&] { return epoch_of(cluster[0]) >= 8; }));
  std::vector<double> waited, stepped;
  for (std::size_t i = 0; i < 4; ++i) {
    waited.push_back(phase(cluster[i], "wait"));
    stepped.push_back(steps_of(cluster[i]));
  }
  const Stopwatch watch;
  cluster.add(with({"run.epochs=0", calm}));
  ASSERT_TRUE(cluster.wait(seconds(10), "it contributes", [&] {
    return exchanges_of(cluster[4]) >= 1 && steps_of(cluster[4]) >= 1;
  }));
  std::cout << "contributes after " << watch.seconds() << " s";
  const double joined_at = epoch_of(cluster[4]);
  ASSERT_TRUE(cluster.wait(seconds(30), "an epoch later",
                           [&] { return epoch_of(cluster[4]) >= joined_at + 1; }));
  ASSERT_TRUE(cluster.wait(seconds(60), "all have evaluated", [&] {
    for (std::size_t i = 0; i < 5; ++i)
      if (std::isnan(accuracy_of(cluster[i]))) return false;
    return true;
  }));
  double others = 0.0;
  for (std::size_t i = 0; i < 4; ++i) others += accuracy_of(cluster[i]) / 4;
  std::cout << ", accuracy " << accuracy_of(cluster[4]) << " against " << others;
  EXPECT_NEAR(accuracy_of(cluster[4]), others, 0.01);
  const double span = watch.seconds();
  for (std::size_t i = 0; i < 4; ++i) {
    const double share = (phase(cluster[i], "wait") - waited[i]) / span;
    std::cout << ", n" << i + 1 << " waited " << share * 100 << " %";
    EXPECT_LT(share, 0.01);
    EXPECT_GE((steps_of(cluster[i]) - stepped[i]) / span, 0.9 * 20.0)
        << "n" << i + 1 << " was slowed down";
  }
  std::cout << std::endl;
}

TEST(Must, WithHalfKilledAtOnceAndRestartedTrainingNeverStopsAndViewsAreEqualWithinTenSeconds) {
#ifdef KITH_HAS_TORCH
  const std::string kind = "cnn";
  const double good_enough = 0.97;
  const std::string epochs = "run.epochs=16";
#else
  const std::string kind = "linear";  // its ceiling on these digits is lower
  const double good_enough = 0.86;
  const std::string epochs = "run.epochs=30";
#endif
  Cluster cluster(digits_config(kind, 1, pace(20) + "[checkpoint]\nevery_seconds = 1\n"));
  for (int i = 0; i < 6; ++i) cluster.add(with({epochs, "run.start_members=6"}));
  ASSERT_TRUE(
      cluster.wait(seconds(60), "training runs", [&] { return epoch_of(cluster[0]) >= 3; }));
  const Indices survivors = {0, 1, 2};
  for (const std::size_t i : {3, 4, 5}) cluster[i].signal(SIGKILL);
  for (const std::size_t i : {3, 4, 5}) cluster[i].kill_now();
  std::map<std::size_t, double> last;
  std::map<std::size_t, Stopwatch> since;
  double longest = 0.0;
  const auto watch_steps = [&] {
    for (const std::size_t i : survivors) {
      const double now = steps_of(cluster[i]);
      longest = std::max(longest, since[i].seconds());
      if (now > last[i]) since[i] = Stopwatch();
      last[i] = now;
    }
    return false;
  };
  wait_until(seconds(5), watch_steps);
  for (const std::size_t i : {3, 4, 5}) cluster.restart(i);
  const Stopwatch watch;
  ASSERT_TRUE(cluster.wait(seconds(10), "all views are equal", [&] {
    watch_steps();
    return views_agree(cluster, first(6));
  }));
  std::cout << "views equal " << watch.seconds()
            << " s after the last was ready; longest time without a step of a survivor " << longest
            << " s";
  EXPECT_LT(longest, 3.0);  // on a busy machine an evaluation takes a while
  ASSERT_TRUE(cluster.all_exit_zero(seconds(120)));
  const auto facts = metadata_of(cluster[0].folder() + "/data/model.safetensors");
  ASSERT_TRUE(facts.contains("accuracy"));
  std::cout << "; accuracy at the end " << facts.at("accuracy") << std::endl;
  EXPECT_GE(std::strtod(facts.at("accuracy").c_str(), nullptr), good_enough);
  for (std::size_t i = 1; i < 6; ++i)
    EXPECT_TRUE(bytes_of(cluster[i].folder() + "/data/model.safetensors") ==
                bytes_of(cluster[0].folder() + "/data/model.safetensors"));
}

// A port that was free a moment ago.
std::string free_address(const std::string& host) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  socklen_t length = sizeof address;
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  ::close(fd);
  return host + ":" + std::to_string(ntohs(address.sin_port));
}

// Control and bulk need neighbouring ports of their own: every node has a loopback address for
// itself.
std::string own_host(std::size_t index) { return "127.77.0." + std::to_string(index + 1); }

TEST(Must, SixteenThatStartAtOnceWithTheSameSeedsAreOneClusterTenTimes) {
  const char* text = std::getenv("KITH_SIXTEENS");
  const int rounds = text != nullptr ? std::atoi(text) : 10;
  constexpr std::size_t kNodes = 16, kSeeds = 3;
  Random random(16);
  double slowest = 0.0;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round + 1));
    Cluster cluster(digits_config("linear", 1, pace(50)));
    std::vector<std::string> addresses;
    for (std::size_t i = 0; i < kNodes; ++i) addresses.push_back(free_address(own_host(i)));
    for (std::size_t i = 0; i < kNodes; ++i) {
      std::vector<std::string> seeds(addresses.begin(), addresses.begin() + kSeeds);
      random.shuffle(std::span(seeds));
      std::string list;
      for (const auto& seed : seeds) list += (list.empty() ? "" : ",") + seed;
      NodeOptions options = with({"run.epochs=0"});
      options.flags.insert(options.flags.end(), {"--listen", addresses[i], "--join", list});
      options.wait_ready = false;
      cluster.add(options);
    }
    for (std::size_t i = 0; i < kNodes; ++i)
      ASSERT_TRUE(cluster[i].wait_ready(seconds(60))) << cluster[i].log();
    const Stopwatch watch;
    ASSERT_TRUE(cluster.wait(seconds(10), "one cluster of sixteen",
                             [&] { return views_agree(cluster, first(kNodes)); }));
    slowest = std::max(slowest, watch.seconds());
    ASSERT_TRUE(cluster.wait(seconds(30), "all train", [&] {
      for (std::size_t i = 0; i < kNodes; ++i)
        if (!(steps_of(cluster[i]) > 0)) return false;
      return true;
    }));
  }
  std::cout << rounds << " starts, one cluster at latest " << slowest
            << " s after the last ready line" << std::endl;
}

// Five minutes stand for: much longer than every retry interval before it has risen to its maximum.
TEST(Must, AMemberThatIsDeadForLongIsNamedInTenLinesAtMost) {
  const char* text = std::getenv("KITH_DEAD_SECONDS");
  const int dead_seconds = text != nullptr ? std::atoi(text) : 90;
  Cluster cluster(digits_config("linear", 1, pace(50)));
  for (int i = 0; i < 3; ++i) cluster.add(with({"run.epochs=0", "run.start_members=3"}));
  ASSERT_TRUE(
      cluster.wait(seconds(30), "all exchange", [&] { return exchanges_of(cluster[2]) > 3; }));
  cluster[2].kill_now();
  wait_until(seconds(dead_seconds), [] { return false; });
  for (const std::size_t i : {0, 1}) {
    const auto count = lines_about(cluster[i], "n3");
    std::cout << "n" << i + 1 << " names it in " << count << " lines; ";
    EXPECT_GE(count, 2U) << "neither its coming nor its death was said\n" << cluster[i].log();
    EXPECT_LE(count, 10U) << cluster[i].log();
  }
  std::cout << std::endl;
}

// A member that stands still for 10^5 proposals' worth of time is too long for a test: what grows
// would show in one minute.
TEST(Must, AStoppedMemberGrowsNobodysMemory) {
  Cluster cluster(digits_config("linear", 1, pace(2)));
  for (int i = 0; i < 3; ++i) cluster.add(with({"run.epochs=0", "run.start_members=3"}));
  ASSERT_TRUE(
      cluster.wait(seconds(30), "all exchange", [&] { return exchanges_of(cluster[2]) > 100; }));
  cluster[2].signal(SIGSTOP);
  wait_until(seconds(10), [] { return false; });
  std::vector<double> before;
  for (const std::size_t i : {0, 1}) before.push_back(usage_of(cluster[i].pid()).resident_mib);
  wait_until(seconds(50), [] { return false; });
  for (const std::size_t i : {0, 1}) {
    const double grown = usage_of(cluster[i].pid()).resident_mib - before[i];
    std::cout << "n" << i + 1 << " grew " << grown << " MiB; ";
    EXPECT_LT(grown, 4.0);
  }
  std::cout << std::endl;
  cluster[2].signal(SIGCONT);
}

}  // namespace
}  // namespace kith::e2e
