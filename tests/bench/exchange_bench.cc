#include "tests/bench/exchange_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "tests/bench/exchange_lane.h"

namespace kith::bench {
namespace {

constexpr std::uint64_t kWarmUpRounds = 2;

struct Timing {
  std::string name;
  std::vector<double> seconds;
  std::vector<double> cpu_seconds;  // of both processes together
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

std::string make_key(std::uint64_t seed) {
  Random random(seed);
  std::string key;
  for (int i = 0; i < 64; ++i) key += "0123456789abcdef"[random.below(16)];
  return key;
}

Result<std::vector<std::unique_ptr<Lane>>> make_lanes(const ExchangeBenchOptions& options,
                                                      Pair& pair) {
  std::vector<std::unique_ptr<Lane>> lanes;
  KITH_ASSIGN(auto raw, make_raw_lane(options, pair));
  lanes.push_back(std::move(raw));
  KITH_ASSIGN(auto kith, make_kith_lane(options, pair, options.encrypt ? make_key(1) : ""));
  lanes.push_back(std::move(kith));
  KITH_ASSIGN(auto gloo, make_gloo_lane(options, pair));
  if (gloo) lanes.push_back(std::move(gloo));
  return lanes;
}

struct RoundTime {
  double seconds = 0.0;
  double cpu_seconds = 0.0;
};

std::uint64_t cpu_nanoseconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<std::uint64_t>(used.tv_sec) * 1000000000U +
         static_cast<std::uint64_t>(used.tv_nsec);
}

// The longer of both sides' times, from a common start.
Result<RoundTime> time_round(Lane& lane, Pair& pair, std::uint64_t round) {
  const SystemClock clock;
  lane.prepare(round);
  pair.barrier();
  const std::uint64_t cpu_start = cpu_nanoseconds();
  const TimePoint start = clock.now();
  const Status done = lane.run();
  const auto own = static_cast<std::uint64_t>((clock.now() - start).count());
  const std::uint64_t own_cpu = cpu_nanoseconds() - cpu_start;
  const auto theirs = pair.trade(done ? own : ~0ULL);
  if (!done) return fail(done.error());
  if (theirs == ~0ULL) return fail("the other side failed");
  const std::uint64_t cpu = own_cpu + pair.trade(own_cpu);
  const auto outcome = lane.check(round);
  const auto same = pair.trade(outcome ? *outcome : ~0ULL);
  if (!outcome) return fail(outcome.error());
  if (same != *outcome)
    return fail(std::string(lane.name()) + ": the two sides differ after the round");
  return RoundTime{static_cast<double>(std::max(own, theirs)) * 1e-9,
                   static_cast<double>(cpu) * 1e-9};
}

Result<std::vector<Timing>> run_rounds(const ExchangeBenchOptions& options, Pair& pair,
                                       const std::vector<std::unique_ptr<Lane>>& lanes) {
  std::vector<Timing> timings;
  for (const auto& lane : lanes) timings.push_back({std::string(lane->name()), {}, {}});
  const auto rounds = kWarmUpRounds + static_cast<std::uint64_t>(options.rounds);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      KITH_ASSIGN(const RoundTime time, time_round(*lanes[i], pair, round));
      if (round < kWarmUpRounds) continue;
      timings[i].seconds.push_back(time.seconds);
      timings[i].cpu_seconds.push_back(time.cpu_seconds);
    }
  }
  return timings;
}

void report(const ExchangeBenchOptions& options, const std::vector<Timing>& timings) {
  std::printf("%.1f MiB each way, fragments of %zu KiB, chunks of %zu KiB, %d rounds, medians\n",
              options.mib, options.fragment_bytes >> 10, options.chunk_bytes >> 10, options.rounds);
  std::printf("%-18s %10s %10s %10s %10s %14s %8s\n", "", "median ms", "best ms", "worst ms",
              "cpu ms", "MiB/s each way", "of raw");
  const double raw = median(timings[0].seconds);
  for (const auto& timing : timings) {
    const double middle = median(timing.seconds);
    const auto [best, worst] = std::minmax_element(timing.seconds.begin(), timing.seconds.end());
    std::printf("%-18s %10.2f %10.2f %10.2f %10.2f %14.0f %8.2f\n", timing.name.c_str(),
                middle * 1e3, *best * 1e3, *worst * 1e3, median(timing.cpu_seconds) * 1e3,
                options.mib / middle, raw / middle);
  }
  std::printf("ratio=%.3f\n", raw / median(timings[1].seconds));
}

Status run_side(const ExchangeBenchOptions& options, Pair& pair) {
  KITH_ASSIGN(const auto lanes, make_lanes(options, pair));
  KITH_ASSIGN(const auto timings, run_rounds(options, pair, lanes));
  if (pair.side() == 0) report(options, timings);
  pair.barrier();
  return {};
}

}  // namespace

std::size_t value_count(const ExchangeBenchOptions& options) {
  return static_cast<std::size_t>(options.mib * (1 << 20)) / sizeof(float);
}

int run_exchange_bench(const ExchangeBenchOptions& options) {
  auto pair = Pair::split();
  if (!pair) {
    std::fprintf(stderr, "kith_bench: %s\n", pair.error().message.c_str());
    return 1;
  }
  const Status ended = run_side(options, *pair);
  if (!ended)
    std::fprintf(stderr, "kith_bench: side %d: %s\n", pair->side(), ended.error().message.c_str());
  if (pair->side() == 1) std::_Exit(ended ? 0 : 1);
  const int other = ended ? pair->join() : 1;
  return ended && other == 0 ? 0 : 1;
}

}  // namespace kith::bench
