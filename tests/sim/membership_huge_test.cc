// Ten thousand nodes that know each other, as daemons would: full tables, digests, partial views.
// Some 15 GB and minutes of one core, so it runs alone. Labelled `full`.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

#include "gossip/sim/aggregates.h"
#include "gossip/sim/simulate.h"

namespace kith::sim {
namespace {

constexpr std::uint64_t kNeededKib = 17ULL << 20;

std::uint64_t available_kib() {
  std::ifstream meminfo("/proc/meminfo");
  std::string name;
  std::uint64_t kib = 0;
  while (meminfo >> name >> kib) {
    if (name == "MemAvailable:") return kib;
    meminfo.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

SimulationSettings swarm_of(std::uint32_t nodes, double seconds) {
  SimulationSettings settings;
  settings.nodes = nodes;
  settings.seconds = seconds;
  settings.method = "local";
  settings.table_max = nodes;
  return settings;
}

TEST(TenThousandNodesThatKnowAll, CostEachAtMostAFifthMoreThanAHundred) {
  if (available_kib() < kNeededKib) {
    GTEST_SKIP() << "needs 17 GiB of free memory, there are " << (available_kib() >> 20) << " GiB";
  }
  const SimulationReport small = run_simulation(swarm_of(100, 20));
  const SimulationReport large = run_simulation(swarm_of(10000, 10));
  EXPECT_TRUE(large.ok) << large.text;
  const auto found = check_flat(
      std::array{small.control_bytes_per_node_second, large.control_bytes_per_node_second});
  EXPECT_FALSE(found.has_value()) << found->text;
  RecordProperty("bytes_of_each_of_100", std::to_string(small.control_bytes_per_node_second));
  RecordProperty("bytes_of_each_of_10000", std::to_string(large.control_bytes_per_node_second));
}

}  // namespace
}  // namespace kith::sim
