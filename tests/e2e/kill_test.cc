// SIGKILL of one of four in the middle of an exchange of a large model, at every named step of the protocol: nobody else
// ends, nobody's trainer waits, and exchanges among the others go on.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstring>
#include <fstream>
#include <iostream>

#include "base/fault_point.h"
#include "tests/e2e/cluster.h"

namespace kith::e2e {
namespace {

// A softmax regression whose weights are 44 MiB: few samples, very many features.
constexpr std::size_t kClasses = 10, kFeatures = 1153433, kSamples = 16;

std::string wide_config(const std::string& folder) {
  std::string inputs(kSamples * kFeatures, '\0');
  std::uint32_t noise = 1;
  for (char& c : inputs) {
    noise = noise * 1664525 + 1013904223;
    c = static_cast<char>(noise >> 24);
  }
  std::string labels(kSamples, '\0');
  for (std::size_t i = 0; i < kSamples; ++i) labels[i] = static_cast<char>(i % kClasses);
  write_npy(folder + "/x.npy", "|u1", "(16, 1153433)", inputs);
  write_npy(folder + "/y.npy", "|u1", "(16,)", labels);
  return "[cluster]\nname = \"wide\"\n[run]\nid = \"wide-1\"\nepochs = 0\nstart_members = 4\n[model]\nkind = \"linear\"\n"
         "[data]\nformat = \"npy\"\ntrain = [\"x.npy\", \"y.npy\"]\ntest = []\n[train]\nlearning_rate = 0.00001\n"
         "batch_size = 2\nmin_step_ms = 250\n[checkpoint]\nevery_seconds = 3600\n";
}

double initiated(const Node& node) { return node.metric("kith_exchanges_total{role=\"initiator\"}"); }

double phase(const Node& node, const char* which) {
  return node.metric(std::string("kith_train_step_phase_seconds_total{phase=\"") + which + "\"}");
}

double busy(const Node& node) {
  double sum = 0.0;
  for (const char* p : {"data", "forward", "backward", "optimizer", "merge", "wait"}) sum += phase(node, p);
  return sum;
}

// Of a file, not of an exchange.
bool is_file_point(const std::string& name) { return name.rfind("checkpoint", 0) == 0 || name.rfind("export", 0) == 0; }

TEST(Kill, AtEveryProtocolStepTheSurvivorsGoOn) {
  const char* repeat_text = std::getenv("KITH_KILLS");  // passages to die at; more in ./test.sh --full
  const int repeats = repeat_text != nullptr ? std::atoi(repeat_text) : 1;
  const std::string folder = std::string(KITH_BINARY_DIR) + "/e2e/wide-data";
  std::system(("mkdir -p " + folder).c_str());
  const std::string config = wide_config(folder);
  std::ofstream(folder + "/run.toml") << config;

  Cluster cluster(config);
  // Paths are relative to the configuration's folder.
  for (const char* file : {"x.npy", "y.npy"})
    ASSERT_EQ(std::rename((folder + "/" + file).c_str(), (cluster.folder() + "/" + file).c_str()), 0);
  for (int i = 0; i < 4; ++i) cluster.add();
  ASSERT_TRUE(cluster.wait(seconds(120), "all exchange", [&] {
    for (std::size_t i = 0; i < 4; ++i)
      if (!(initiated(cluster[i]) > 3)) return false;
    return true;
  }));
  int kills = 0;
  double slowest_ms = 0.0;
  for (int repeat = 1; repeat <= repeats; ++repeat) {
    for (const std::string_view point : fault_point_names()) {
      if (is_file_point(std::string(point))) continue;
      SCOPED_TRACE(std::string(point));
      cluster[3].kill_now();
      cluster.restart(3, {{}, {{"KITH_FAULTS", std::string(point) + "=kill@" + std::to_string(3 * repeat)}}});
      ASSERT_TRUE(cluster.wait(seconds(60), "it dies at " + std::string(point), [&] { return !cluster[3].running(); }));
      EXPECT_EQ(cluster[3].wait_exit(milliseconds(0))->signal, SIGKILL);
      ++kills;
      // The others go on exchanging among themselves.
      const auto start = std::chrono::steady_clock::now();
      std::vector<double> before;
      for (std::size_t i = 0; i < 3; ++i) before.push_back(initiated(cluster[i]));
      ASSERT_TRUE(cluster.wait(seconds(20), "the survivors exchange", [&] {
        double sum = 0.0;
        for (std::size_t i = 0; i < 3; ++i) sum += initiated(cluster[i]) - before[i];
        return sum >= 3;
      }));
      const double took = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
      slowest_ms = std::max(slowest_ms, took);
      for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(cluster[i].running()) << "survivor n" << i + 1 << " ended";
    }
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const double wait_share = phase(cluster[i], "wait") / busy(cluster[i]);
    std::cout << "n" << i + 1 << ": waited " << wait_share * 100 << " % of its training time" << std::endl;
    EXPECT_LT(wait_share, 0.01);
  }
  std::cout << kills << " kills; three further exchanges of survivors after at most " << slowest_ms << " ms" << std::endl;
}

}  // namespace
}  // namespace kith::e2e
