// Rows 26, 29, 30, 34 and 35: seeds, clocks, limits, streams and ports.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/faults/fault_row.h"
#include "tests/faults/limits.h"

namespace kith::e2e {
namespace {

namespace fs = std::filesystem;

using Row26 = FaultRow;
using Row29 = FaultRow;
using Row30 = FaultRow;
using Row34 = FaultRow;
using Row35 = FaultRow;

TEST_F(Row26, WithoutItsSeedANodeWaitsAndWhenAllSeedsDieTheOthersGoOnAndNewOnesJoin) {
  start(3, {.spare = 3});
  NodeOptions patient;
  patient.flags = {"--join", NetLab::address(4) + ":7400"};
  add(patient);
  EXPECT_TRUE(holds_for(seconds(5), "without its seed it waits", [&] {
    return node(3).running() && node(3).get("/status").value("state", "") == "waiting" &&
           steps_of(node(3)) == 0;
  }));
  EXPECT_GE(lines(3, {NetLab::address(4)}), 1U) << "it does not say whom it waits for\n"
                                                << node(3).log();
  add();
  const auto took = agree();
  ASSERT_TRUE(took);
  note("joined " + std::to_string(*took) + " s after its seed came");
  ASSERT_TRUE(exchange({3, 4}));
  for (const std::size_t seed : {0, 1, 2}) {
    node(seed).kill_now();
    gone(seed);
  }
  ASSERT_TRUE(agree());
  EXPECT_TRUE(step({3, 4}, 20));
  NodeOptions late;
  late.flags = {"--join", NetLab::address(4) + ":7400"};
  add(late);
  const Stopwatch watch;
  ASSERT_TRUE(exchange({5}, 1, seconds(15)));
  note("a new one exchanges after " + std::to_string(watch.seconds()) + " s");
}

std::string faketime_library() {
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu/faketime/",
                             "/usr/lib/aarch64-linux-gnu/faketime/", "/usr/lib/faketime/"})
    if (fs::exists(std::string(folder) + "libfaketime.so.1"))
      return std::string(folder) + "libfaketime.so.1";
  return "";
}

// n4's wall clock jumps between an hour ahead and an hour behind; n3's monotonic clock is an hour
// ahead of everybody's.
TEST_F(Row29, WallClocksThatJumpAndMonotonicOnesThatDifferChangeNothing) {
  const std::string library = faketime_library();
  if (library.empty()) GTEST_SKIP() << "libfaketime is not installed (faketime)";
  start(3, {.spare = 1});
  const std::string clock = cluster().folder() + "/clock";
  std::ofstream(clock) << "+1h\n";
  NodeOptions skewed;
  skewed.environment = {{"LD_PRELOAD", library},
                        {"FAKETIME_TIMESTAMP_FILE", clock},
                        {"FAKETIME_NO_CACHE", "1"},
                        {"FAKETIME_DONT_FAKE_MONOTONIC", "1"},
                        {"DONT_FAKE_MONOTONIC", "1"}};
  add(skewed);
  node(2).kill_now();
  NodeOptions apart;
  apart.in_child = [] {
    if (::unshare(CLONE_NEWTIME) != 0) ::_exit(124);
    const int offsets = ::open("/proc/self/timens_offsets", O_WRONLY);
    const char text[] = "monotonic 3600 0\n";
    if (::write(offsets, text, sizeof text - 1) < 0) ::_exit(124);
    ::close(offsets);
    const int space = ::open("/proc/self/ns/time_for_children", O_RDONLY);
    if (::setns(space, CLONE_NEWTIME) != 0) ::_exit(124);
    ::close(space);
  };
  const bool has_time_namespaces = fs::exists("/proc/self/ns/time");
  restart(2, has_time_namespaces ? apart : NodeOptions{});
  note(has_time_namespaces ? "monotonic clock moved in a time namespace"
                           : "no time namespaces here: wall clock only");
  ASSERT_TRUE(agree());
  ASSERT_TRUE(exchange(healthy()));
  for (int jump = 0; jump < 10; ++jump) {
    std::ofstream(clock) << (jump % 2 == 0 ? "-1h\n" : "+1h\n");
    holds_for(seconds(2), "nobody is dead or suspected for it",
              [&] { return !any_sees(healthy(), healthy(), "dead"); });
  }
  EXPECT_TRUE(exchange(healthy()));
  for (const std::size_t i : healthy()) {
    for (const auto& member : node(i).get("/members")["members"]) {
      EXPECT_TRUE(!member["last_exchange_seconds"].is_number() ||
                  member["last_exchange_seconds"].get<double>() >= 0.0);
      EXPECT_GE(member["steps_per_second"].get<double>(), 0.0);
      EXPECT_LT(member["steps_per_second"].get<double>(), 100.0)
          << "n" << i + 1 << " about " << member["name"];
    }
  }
}

TEST_F(Row30, WithSixtyFourOpenFilesANodeRefusesLinksAndDoesNotSpin) {
  start(7, {.spare = 1});
  NodeOptions poor;
  poor.wait_ready = false;
  poor.in_child = [] {
    const rlimit files{64, 64};
    ::setrlimit(RLIMIT_NOFILE, &files);
  };
  add(poor);
  gone(7);
  if (!node(7).wait_ready(seconds(20))) {
    const auto exit = node(7).wait_exit(seconds(10));
    ASSERT_TRUE(exit.has_value()) << "neither ready nor ended";
    expect_documented_exit(node(7), *exit);
    note("it ends with " + std::to_string(exit->code));
    return;
  }
  passes(seconds(5));
  const double before = usage_of(node(7).pid()).cpu_seconds;
  passes(seconds(10));
  ASSERT_TRUE(node(7).running()) << node(7).log();
  const Usage now = usage_of(node(7).pid());
  note(std::to_string(now.open_files) + " files open, " +
       std::to_string((now.cpu_seconds - before) / 10.0) + " cores, exchanges " +
       std::to_string(exchanges_of(node(7))));
  EXPECT_LT((now.cpu_seconds - before) / 10.0, 0.4) << "it spins";
  // Links must leave room for what else needs files: answering, and the checkpoint below.
  EXPECT_TRUE(
      cluster().wait(seconds(10), "its HTTP answers", [&] { return exchanges_of(node(7)) > 0; }));
  node(7).signal(SIGTERM);
  const auto exit = node(7).wait_exit(seconds(30));
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 0) << node(7).log();
  EXPECT_EQ(lines(7, {"Too many open files"}), 0U) << node(7).log();
}

TEST_F(Row30, UnderAMemoryLimitANodeLivesOrDiesAloneAndTheOthersHeal) {
  if (const auto why = ControlGroup::missing("memory"); !why.empty()) GTEST_SKIP() << why;
  start(3, {.spare = 2});
  const ControlGroup enough("memory"), little("memory");
  enough.memory_max(256UL << 20);
  little.memory_max(20UL << 20);
  NodeOptions in_enough;
  in_enough.in_child = [&] { enough.add(::getpid()); };
  add(in_enough);
  ASSERT_TRUE(exchange({3})) << "256 MiB must do";
  NodeOptions in_little;
  in_little.wait_ready = false;
  in_little.in_child = [&] { little.add(::getpid()); };
  add(in_little);
  gone(4);
  const auto exit = node(4).wait_exit(seconds(30));
  if (exit) {
    note(exit->signal != 0 ? "20 MiB: killed by the kernel"
                           : "20 MiB: ends with " + std::to_string(exit->code));
    EXPECT_TRUE(exit->signal == SIGKILL || exit->code != 0);
  } else {
    note("20 MiB: lives, " + std::to_string(usage_of(node(4).pid()).resident_mib) + " MiB");
    node(4).kill_now();
  }
  EXPECT_TRUE(exchange(healthy()));
}

TEST_F(Row34, ClosedOrFullStreamsStopNobody) {
  start(2, {.spare = 3});
  NodeOptions closed_out, full, all_closed;
  for (NodeOptions* options : {&closed_out, &full, &all_closed}) options->wait_ready = false;
  closed_out.in_child = [] {
    ::close(1);
    int ends[2];
    if (::pipe(ends) != 0) ::_exit(124);
    ::dup2(ends[1], 2);  // a pipe that nobody reads from
    ::close(ends[0]);
    if (ends[1] > 2) ::close(ends[1]);
  };
  full.in_child = [] {
    const int device = ::open("/dev/full", O_WRONLY);
    ::dup2(device, 1);
    ::dup2(device, 2);
    ::close(device);
  };
  all_closed.in_child = [] {
    for (const int fd : {0, 1, 2}) ::close(fd);
  };
  for (const NodeOptions* options : {&closed_out, &full, &all_closed}) {
    const std::size_t index = cluster().size();
    add(*options);
    ASSERT_TRUE(cluster().wait(seconds(20), "it says where its HTTP is",
                               [&] { return fs::exists(data_dir(index) + "/http"); }));
    node(index).set_http("127.0.0.1:7480");
  }
  ASSERT_TRUE(agree());
  EXPECT_TRUE(exchange(healthy(), 10));
}

// A socket that occupies an address inside a namespace.
class Squatter {
 public:
  Squatter(const std::string& netns, const std::string& host, std::uint16_t port) {
    const InNetns inside(netns);
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd_, 1), 0);
  }
  ~Squatter() { ::close(fd_); }
  Squatter(const Squatter&) = delete;
  Squatter& operator=(const Squatter&) = delete;

 private:
  int fd_ = -1;
};

TEST_F(Row35, APortThatIsTakenIsNamedWithExitSix) {
  start(2, {.spare = 3});
  struct Case {
    const char* host;
    std::uint16_t port;
  };
  const std::string control_host = NetLab::address(2), bulk_host = NetLab::address(3);
  const Case cases[] = {
      {control_host.c_str(), 7400}, {bulk_host.c_str(), 7401}, {"127.0.0.1", 7480}};
  for (const Case& c : cases) {
    const std::size_t index = cluster().size();
    const Squatter squatter(lab().netns(index), c.host, c.port);
    NodeOptions options;
    options.wait_ready = false;
    add(options);
    gone(index);
    const auto exit = node(index).wait_exit(seconds(15));
    ASSERT_TRUE(exit.has_value()) << node(index).log();
    EXPECT_EQ(exit->code, 6) << node(index).log();
    EXPECT_NE(node(index).log().find(std::to_string(c.port)), std::string::npos)
        << node(index).log();
  }
  EXPECT_TRUE(exchange(healthy()));
}

TEST_F(Row35, AHundredClientsThatHoldTheMetricsPortDoNotTouchTraining) {
  start(2);
  ASSERT_TRUE(exchange(healthy()));
  const double steps = steps_of(node(0)), exchanges = exchanges_of(node(1));
  std::vector<int> clients;
  {
    const InNetns inside(lab().netns(0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(7480);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 100; ++i) {
      const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      (void)::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
      (void)::send(fd, "GET /metr", 9, MSG_NOSIGNAL);
      clients.push_back(fd);
    }
  }
  passes(seconds(10));
  const double exchanged = exchanges_of(node(1)) - exchanges;  // with n1, the only other
  for (const int fd : clients) ::close(fd);
  note(std::to_string(exchanged) + " exchanges meanwhile");
  EXPECT_GT(exchanged, 100);
  ASSERT_TRUE(
      cluster().wait(seconds(20), "metrics answer again", [&] { return steps_of(node(0)) > 0; }));
  EXPECT_GE(steps_of(node(0)) - steps, 150) << "training was slowed down";
}

}  // namespace
}  // namespace kith::e2e
