// Who watches a node does not disturb it, and nobody watches from outside unless the configuration
// says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <thread>

#include "tests/e2e/cluster.h"
#include "tests/monitoring/raw_client.h"

namespace kith::e2e {
namespace {

using monitoring::testing::RawClient;
using ::testing::SizeIs;

std::string http_of(const Node& node) {
  const std::string ready = bytes_of(node.folder() + "/out");
  const auto at = ready.find("http=") + 5;
  return ready.substr(at, ready.find_first_of(" \n", at) - at);
}

// A hundred open pages that ask every two seconds, as many clients that never finish a request,
// scrapers that ask and never read, and URLs of 16 kB, until destruction.
class Crowd {
 public:
  explicit Crowd(std::string address) : address_(std::move(address)) {
    for (int i = 0; i < 40; ++i) {
      silent_.push_back(RawClient::tcp(address_));
      silent_.back().send("GET /metrics HTTP/1.1\r\nHo");
    }
    for (int i = 0; i < 20; ++i) {
      RawClient deaf = RawClient::unconnected();
      deaf.shrink_receive_buffer();
      deaf.connect_to(address_);
      deaf.send("GET /metrics HTTP/1.1\r\n\r\n");
      silent_.push_back(std::move(deaf));
    }
    for (int i = 0; i < 4; ++i) threads_.emplace_back([this] { browse(); });
    threads_.emplace_back([this] { shout(); });
  }
  ~Crowd() {
    stop_.store(true);
    for (std::thread& thread : threads_) thread.join();
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  [[nodiscard]] std::uint64_t answered() const { return answered_.load(); }

 private:
  // 25 pages that were just opened: each asks every two seconds, for everything.
  void browse() {
    auto next = std::chrono::steady_clock::now();
    while (!stop_.load()) {
      const std::string answer = monitoring::testing::request(address_, "/live?span=hour");
      if (answer.rfind("HTTP/1.1 200", 0) == 0) answered_.fetch_add(1);
      next += milliseconds(80);
      std::this_thread::sleep_until(next);  // the load is a rate
    }
  }
  void shout() {
    const std::string path = "/" + std::string(16 << 10, 'x');
    auto next = std::chrono::steady_clock::now();
    while (!stop_.load()) {
      monitoring::testing::request(address_, path);
      next += milliseconds(20);
      std::this_thread::sleep_until(next);
    }
  }

  const std::string address_;
  std::vector<RawClient> silent_;
  std::vector<std::thread> threads_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> answered_{0};
};

TEST(Watching, ACrowdOfReadersLeavesTrainingAlone) {
  Cluster cluster(digits_config("linear", 1, "min_step_ms = 20\n"));
  for (int i = 0; i < 2; ++i) cluster.add(with({"run.epochs=0", "run.start_members=2"}));
  ASSERT_TRUE(cluster.wait(seconds(60), "both train", [&] {
    return cluster[0].metric("kith_train_steps_total") > 10 &&
           cluster[1].metric("kith_train_steps_total") > 10;
  }));
  // Beside a node that nobody watches, in the same moments.
  double watched = 0, unwatched = 0;
  std::uint64_t answered = 0;
  for (int window = 0; window < 3 && (window == 0 || watched < 0.97 * unwatched); ++window) {
    const double watched_before = cluster[0].metric("kith_train_steps_total");
    const double before = cluster[1].metric("kith_train_steps_total");
    const Crowd crowd(http_of(cluster[0]));
    ASSERT_TRUE(cluster.wait(seconds(60), "200 more steps", [&] {
      return cluster[1].metric("kith_train_steps_total") >= before + 200;
    }));
    watched = cluster[0].metric("kith_train_steps_total") - watched_before;
    unwatched = cluster[1].metric("kith_train_steps_total") - before;
    answered = crowd.answered();
  }
  std::cout << "watched " << watched << " steps, unwatched " << unwatched << ", " << answered
            << " requests answered" << std::endl;
  EXPECT_GE(watched, 0.97 * unwatched);
  EXPECT_GT(answered, 100U) << "the crowd must have been served";
  EXPECT_TRUE(cluster.all_running());
}

// Local addresses (hexadecimal, as the kernel prints them) on which a process listens.
std::set<std::string> listens(pid_t pid) {
  std::set<std::string> own;
  const std::string process = "/proc/" + std::to_string(pid);
  for (const auto& entry : std::filesystem::directory_iterator(process + "/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(entry, error).string();
    if (target.rfind("socket:[", 0) == 0) own.insert(target.substr(8, target.size() - 9));
  }
  std::set<std::string> addresses;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream file(process + table);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::istringstream fields(line);
      std::string slot, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
      fields >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> uid >>
          timeout >> inode;
      constexpr const char* kListen = "0A";
      if (state == kListen && own.contains(inode)) addresses.insert(local);
    }
  }
  return addresses;
}

TEST(Listening, OnlyOnLoopbackUnlessToldOtherwise) {
  Cluster cluster(digits_config("linear", 1));
  // Every address is left to its default but for the ports, which other tests may have in use.
  NodeOptions options = with({"run.epochs=0"});
  options.flags.insert(options.flags.end(), {"--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"});
  Node& node = cluster.add(options);
  const std::set<std::string> addresses = listens(node.pid());
  EXPECT_THAT(addresses, SizeIs(3)) << "control, bulk and HTTP";
  constexpr const char* kLoopback = "0100007F";
  for (const std::string& address : addresses)
    EXPECT_EQ(address.substr(0, address.find(':')), kLoopback);
  const Finished defaults = run_program({kith_path(), "config", "show", "-o", "json"});
  for (const char* key : {"node.listen", "node.http"}) {
    const auto at = defaults.output.find(key);
    ASSERT_NE(at, std::string::npos) << defaults.output;
    EXPECT_NE(defaults.output.substr(at, 120).find("127.0.0.1:"), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace kith::e2e
