// What users of other such systems reported, tried on this one: seeds, names, restarts, views.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "tests/faults/fault_row.h"

namespace kith::e2e {
namespace {

namespace fs = std::filesystem;

std::string pace(int step_ms) { return "min_step_ms = " + std::to_string(step_ms) + "\n"; }

// In a child: this file in place of a system's, for it alone.
std::function<void()> with_file(const std::string& own, const std::string& system) {
  return [own, system] {
    if (::unshare(CLONE_NEWNS) != 0) ::_exit(124);
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(124);
    if (::mount(own.c_str(), system.c_str(), nullptr, MS_BIND, nullptr) != 0) ::_exit(124);
  };
}

using CaseNames = FaultRow;

TEST_F(CaseNames, ANameWithDeadAddressesBeforeTheLivingOneLeadsInWithinTenSeconds) {
  start(2, {.spare = 1});
  const std::string hosts = cluster().folder() + "/hosts";
  std::ofstream(hosts) << "127.0.0.1 localhost\n10.77.0.201 seed.kith\n10.77.0.202 seed.kith\n"
                       << NetLab::address(0) << " seed.kith\n";
  NodeOptions by_name;
  by_name.flags = {"--join", "seed.kith:7400"};
  by_name.in_child = with_file(hosts, "/etc/hosts");
  add(by_name);
  const Stopwatch watch;
  ASSERT_TRUE(exchange({2}, 1, seconds(10)));
  note("exchanges " + std::to_string(watch.seconds()) + " s after it was ready");
}

TEST_F(CaseNames, ALookupThatNeverEndsStopsNeitherTrafficNorMetrics) {
  start(2, {.spare = 1});
  const std::string resolver = cluster().folder() + "/resolv.conf";
  std::ofstream(resolver) << "nameserver 127.0.0.1\noptions timeout:30 attempts:5\n";
  int deaf = -1;
  {
    const InNetns inside(lab().netns(2));
    deaf = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(53);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::bind(deaf, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  NodeOptions options;
  options.flags = {"--join", "never.answers.kith:7400," + NetLab::address(0) + ":7400"};
  options.in_child = with_file(resolver, "/etc/resolv.conf");
  options.wait_ready = false;
  const Stopwatch start_watch;
  add(options);
  ASSERT_TRUE(node(2).wait_ready(seconds(10))) << "the lookup holds up the start";
  ASSERT_TRUE(exchange({2}, 1, seconds(10)));
  note("exchanges " + std::to_string(start_watch.seconds()) + " s after its start");
  double longest_answer = 0.0, longest_quiet = 0.0, last = exchanges_of(node(2));
  Stopwatch quiet;
  wait_until(seconds(20), [&] {
    const Stopwatch answer;
    const double now = exchanges_of(node(2));
    longest_answer = std::max(longest_answer, answer.seconds());
    longest_quiet = std::max(longest_quiet, quiet.seconds());
    if (now > last) quiet = Stopwatch();
    last = now;
    return false;
  });
  ::close(deaf);
  note("longest answer " + std::to_string(longest_answer) +
       " s, longest time without an exchange " + std::to_string(longest_quiet) + " s");
  EXPECT_LT(longest_answer, 1.0);
  EXPECT_LT(longest_quiet, 1.0);
}

TEST(CaseSeeds, BlanksAreTrimmedAndEmptySeedsSkipped) {
  Cluster cluster(digits_config("linear", 1, pace(20)));
  cluster.add(with({"run.epochs=0"}));
  const std::string seed = cluster[0].address();
  for (const std::string& list : {" " + seed + " , 127.0.0.1:9,", "," + seed, seed + ", ,"}) {
    NodeOptions options = with({"run.epochs=0"});
    options.flags.insert(options.flags.end(), {"--join", list});
    Node& joiner = cluster.add(options);
    EXPECT_TRUE(cluster.wait(seconds(10), "'" + list + "' leads in",
                             [&] { return exchanges_of(joiner) >= 1; }));
  }
  for (const char* list : {"", ",", " , "}) {
    NodeOptions options = with({"run.epochs=0"});
    options.flags.insert(options.flags.end(), {"--join", list});
    Node& alone = cluster.add(options);
    EXPECT_TRUE(cluster.wait(seconds(10), "no seed at all: it trains alone",
                             [&] { return steps_of(alone) >= 5; }));
    EXPECT_EQ(view_of(alone).size(), 1U);
  }
}

TEST(CaseSeeds, ANodeThatIsItsOwnOnlySeedTrainsAloneAndMergesWhenAnotherComes) {
  Cluster cluster(digits_config("linear", 1, pace(20)));
  const std::string self = "127.77.1.1:7400", other = "127.77.1.2:7400";
  const auto options = [](const std::string& listen, const std::string& seeds) {
    NodeOptions made = with({"run.epochs=0"});
    made.flags.insert(made.flags.end(), {"--listen", listen, "--join", seeds});
    return made;
  };
  cluster.add(options(self, self + "," + self));
  ASSERT_TRUE(
      cluster.wait(seconds(10), "it trains alone", [&] { return steps_of(cluster[0]) >= 5; }));
  cluster[0].kill_now();
  cluster.add(options("127.77.1.3:7400", "127.77.1.3:7400,127.77.1.3:7400," + other));
  ASSERT_TRUE(
      cluster.wait(seconds(10), "it trains alone", [&] { return steps_of(cluster[1]) >= 5; }));
  cluster.add(options(other, other));  // which knows nobody: the first must go on asking
  ASSERT_TRUE(cluster.wait(seconds(30), "both are one cluster", [&] {
    return views_agree(cluster, {1, 2});
  }));
  EXPECT_TRUE(cluster.wait(seconds(10), "they exchange", [&] {
    return exchanges_of(cluster[1]) > 0 && exchanges_of(cluster[2]) > 0;
  }));
}

TEST(CaseReturn, ANodeThatLeftAndReturnsAtOnceElsewhereIsAliveThereWithinFiveSeconds) {
  Cluster cluster(digits_config("linear", 1, pace(50)));
  for (int i = 0; i < 2; ++i) cluster.add(with({"run.epochs=0"}));
  NodeOptions there = with({"run.epochs=0"});
  there.flags.insert(there.flags.end(), {"--listen", "127.0.0.2:0"});
  cluster.add(there);
  ASSERT_TRUE(cluster.wait(seconds(20), "three", [&] { return views_agree(cluster, {0, 1, 2}); }));
  const auto entries = [&](std::size_t observer) {
    std::vector<std::pair<std::string, std::string>> found;
    const auto reply = cluster[observer].get("/members");
    if (reply.is_object())
      for (const auto& member : reply["members"])
        if (member["name"] == "n3") found.emplace_back(member["state"], member["address"]);
    return found;
  };
  for (int life = 0; life < 3; ++life) {
    const std::string host = life % 2 == 0 ? "127.0.0.3" : "127.0.0.2";
    cluster[2].signal(SIGTERM);
    const auto exit = cluster[2].wait_exit(seconds(20));
    ASSERT_TRUE(exit && exit->code == 0);
    const Stopwatch watch;
    cluster.restart(2, {{"--listen", host + ":0"}, {}});
    ASSERT_TRUE(cluster.wait(seconds(5), "alive at " + host + " everywhere, once", [&] {
      for (const std::size_t i : {0, 1, 2}) {
        const auto found = entries(i);
        if (found.size() != 1 || found[0].first != "alive" || !found[0].second.starts_with(host))
          return false;
      }
      return true;
    }));
    std::cout << "alive at " << host << " " << watch.seconds() << " s after its start; ";
    ASSERT_TRUE(
        cluster.wait(seconds(5), "and used again", [&] { return exchanges_of(cluster[2]) >= 1; }));
  }
  std::cout << std::endl;
}

TEST(CaseViews, AfterOneOfThreeStoodStillBeyondItsDeathAllViewsAreEqualBothWays) {
  Cluster cluster(digits_config("linear", 1, pace(50)));
  for (int i = 0; i < 3; ++i) cluster.add(with({"run.epochs=0", "run.start_members=3"}));
  ASSERT_TRUE(cluster.wait(seconds(20), "three", [&] { return views_agree(cluster, {0, 1, 2}); }));
  cluster[2].signal(SIGSTOP);
  ASSERT_TRUE(cluster.wait(kSuspicionMax + seconds(4), "it is dead", [&] {
    return view_of(cluster[0])["n3"] == "dead" && view_of(cluster[1])["n3"] == "dead";
  }));
  cluster[2].signal(SIGCONT);
  const Stopwatch watch;
  ASSERT_TRUE(cluster.wait(seconds(30), "all views are equal", [&] {
    return views_agree(cluster, {0, 1, 2});
  }));
  std::cout << "equal " << watch.seconds() << " s after it went on" << std::endl;
}

}  // namespace
}  // namespace kith::e2e
