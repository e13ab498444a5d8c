#include "gossip/sim/fault_plan.h"

#include <utility>

namespace kith::sim {
namespace {

TimePoint within(Random& random, const SimulationSettings& settings, double from, double to) {
  return TimePoint{from_seconds(settings.seconds * random.uniform(from, to))};
}

PlannedCrash::Disk draw_disk(Random& random) {
  const std::uint64_t draw = random.below(100);
  if (draw < 55) return PlannedCrash::Disk::kKept;
  if (draw < 70) return PlannedCrash::Disk::kTorn;
  if (draw < 90) return PlannedCrash::Disk::kLost;
  return PlannedCrash::Disk::kForGood;
}

// Half of the nodes, a few, or one.
Cut draw_cut(Random& random, std::uint32_t nodes, bool one_way) {
  Cut cut;
  cut.one_way = one_way;
  cut.side.assign(nodes, 0);
  constexpr double kShares[] = {0.5, 0.5, 0.2, 0.0};
  const double share = kShares[random.below(4)];
  for (std::uint8_t& side : cut.side) side = random.chance(share) ? 1 : 0;
  cut.side[random.below(nodes)] = 1;
  return cut;
}

// How often something that happens at `rate` per node and minute happens in the whole run.
std::uint64_t times(const SimulationSettings& settings, double rate) {
  return static_cast<std::uint64_t>(rate * settings.nodes * settings.seconds / 60.0 + 0.5);
}

void draw_crashes(FaultPlan& plan, const SimulationSettings& settings, Random random) {
  std::uint32_t gone = 0;
  for (std::uint64_t i = times(settings, settings.churn); i > 0; --i) {
    PlannedCrash crash;
    crash.node = static_cast<NodeIndex>(random.below(settings.nodes));
    crash.at = within(random, settings, 0.05, 0.95);
    crash.away = from_seconds(random.uniform(0.1, 3.0));
    crash.disk = draw_disk(random);
    if (crash.disk == PlannedCrash::Disk::kForGood && ++gone > settings.nodes / 4) {
      crash.disk = PlannedCrash::Disk::kLost;
    }
    plan.crashes.push_back(crash);
  }
}

}  // namespace

FaultPlan draw_faults(const SimulationSettings& settings) {
  FaultPlan plan;
  const Random seeded(settings.seed);
  draw_crashes(plan, settings, seeded.fork("crashes"));
  Random random = seeded.fork("faults");
  const auto anyone = [&] { return static_cast<NodeIndex>(random.below(settings.nodes)); };
  for (std::uint32_t i = 0; i < settings.partitions && settings.nodes > 1; ++i) {
    PlannedCut cut{draw_cut(random, settings.nodes, i % 3 == 2), {}, {}};
    cut.from = within(random, settings, 0.05, 0.8);
    cut.to = cut.from + from_seconds(random.uniform(0.2, 4.0));
    plan.cuts.push_back(std::move(cut));
  }
  for (std::uint64_t i = times(settings, settings.pauses); i > 0; --i) {
    const NodeIndex node = anyone();
    const TimePoint at = within(random, settings, 0.05, 0.95);
    plan.pauses.push_back({node, at, from_seconds(random.uniform(0.1, 3.0))});
  }
  for (std::uint64_t i = times(settings, settings.adoptions); i > 0; --i) {
    const NodeIndex node = anyone();
    plan.adoptions.push_back({node, within(random, settings, 0.05, 0.95)});
  }
  return plan;
}

}  // namespace kith::sim
