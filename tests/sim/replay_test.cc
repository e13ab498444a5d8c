// Same seed, same events: twice in one process, and the same numbers with every compiler (this file
// holds them).
#include <gtest/gtest.h>

#include "gossip/sim/simulate.h"

namespace kith::sim {
namespace {

SimulationSettings faulty(std::uint64_t seed) {
  SimulationSettings settings;
  settings.membership = "oracle";  // recorded hashes are of the exchange alone
  settings.nodes = 20;
  settings.seconds = 8;
  settings.seed = seed;
  settings.loss = settings.duplicate = settings.reorder = 0.1;
  settings.churn = 2.0;
  settings.partitions = 2;
  settings.slow = 0.1;
  settings.pauses = 1.0;
  settings.adoptions = 1.0;
  settings.codec = seed % 2 == 0 ? "bf16" : "fp32";
  return settings;
}

TEST(Replay, TheSameSeedGivesTheSameHashTwice) {
  for (const std::uint64_t seed : {11ULL, 12ULL}) {
    const SimulationReport first = run_simulation(faulty(seed));
    const SimulationReport second = run_simulation(faulty(seed));
    EXPECT_TRUE(first.ok) << first.text;
    EXPECT_EQ(first.last_line, second.last_line);
    EXPECT_EQ(first.text, second.text);
  }
}

TEST(Replay, AnotherSeedGivesAnotherHash) {
  EXPECT_NE(run_simulation(faulty(11)).hash, run_simulation(faulty(13)).hash);
}

// Recorded; a change of protocol, simulator or settings changes them, a compiler must not. To
// renew: run this test and copy what it prints, after g++ and clang++ agree.
struct Recorded {
  std::uint64_t seed, hash;
};
constexpr Recorded kRecorded[] = {
    {1, 0xe3ff2238f8010cfd},
    {2, 0x71cd83e21ac11c1f},
    {3, 0xb52e7f5de3cb8720},
};

TEST(Replay, HashesAreThoseOfEveryCompiler) {
  for (const Recorded& recorded : kRecorded) {
    const SimulationReport report = run_simulation(faulty(recorded.seed));
    EXPECT_TRUE(report.ok) << report.text;
    EXPECT_EQ(report.hash, recorded.hash)
        << "    {" << recorded.seed << ", 0x"
        << report.last_line.substr(report.last_line.find("hash=") + 5, 16) << "},";
  }
}

}  // namespace
}  // namespace kith::sim
