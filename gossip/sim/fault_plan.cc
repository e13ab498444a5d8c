#include "gossip/sim/fault_plan.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "gossip/sim/swim_swarm.h"

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

// Long enough for a death to be known everywhere, or shorter.
Duration draw_absence(Random& random, Duration removal) {
  const bool noticed = random.chance(0.5);
  const double bound = to_seconds(removal);
  return from_seconds(noticed ? random.uniform(1.05, 1.6) * bound : random.uniform(0.1, bound));
}

// The same faults as without machines, but in lengths that matter to them.
void stretch(FaultPlan& plan, const SimulationSettings& settings, Random random) {
  const Duration removal = membership_bounds(settings).removal();
  const bool all_know_all = table_size(settings) + 1 >= settings.nodes;
  const NodeIndex comers = all_know_all ? settings.nodes : std::min(kWatched, settings.nodes);
  for (PlannedCrash& crash : plan.crashes) {
    crash.node %= comers;
    crash.away = draw_absence(random, removal);
    crash.leaves = random.chance(0.3);
    crash.silent = random.chance(0.3);
    if (crash.leaves) crash.disk = PlannedCrash::Disk::kKept;
    if (crash.disk == PlannedCrash::Disk::kForGood && !all_know_all)
      crash.disk = PlannedCrash::Disk::kKept;
  }
  for (PlannedPause& pause : plan.pauses) {
    if (random.chance(0.3))
      pause.length = from_seconds(to_seconds(removal) * random.uniform(0.2, 2.0));
  }
  for (PlannedCut& cut : plan.cuts) {
    if (random.chance(0.5))
      cut.to = cut.from + from_seconds(to_seconds(removal) * random.uniform(0.2, 1.5));
  }
  for (NodeIndex node = 0; settings.fail > 0.0 && all_know_all && node < settings.nodes; ++node) {
    if (!random.chance(settings.fail)) continue;
    PlannedCrash crash;
    crash.disk = PlannedCrash::Disk::kForGood;
    crash.node = node;
    crash.at = within(random, settings, 0.4, 0.4 + 1e-6);
    crash.silent = random.chance(0.3);
    plan.crashes.push_back(crash);
  }
  if (settings.churn <= 0.0 || !all_know_all || settings.nodes < 4) return;
  std::vector<NodeIndex> nodes(settings.nodes);
  std::iota(nodes.begin(), nodes.end(), NodeIndex{0});
  random.shuffle(std::span(nodes));
  const double expected = settings.churn * settings.nodes * settings.seconds / 60.0;
  const auto joins = static_cast<std::size_t>(std::min(settings.nodes / 8.0, expected / 4.0 + 1.0));
  for (std::size_t i = 0; i < joins; ++i)
    plan.joins.push_back({nodes[i], within(random, settings, 0.1, 0.9)});
}

void give_places(FaultPlan& plan, const std::vector<NodeIndex>& place) {
  for (auto& crash : plan.crashes) crash.node = place[crash.node];
  for (auto& pause : plan.pauses) pause.node = place[pause.node];
  for (auto& adoption : plan.adoptions) adoption.node = place[adoption.node];
  for (auto& join : plan.joins) join.node = place[join.node];
  for (auto& cut : plan.cuts) {
    const std::vector<std::uint8_t> side = cut.cut.side;
    for (NodeIndex role = 0; role < side.size(); ++role) cut.cut.side[place[role]] = side[role];
  }
}

}  // namespace

std::vector<NodeIndex> places(const SimulationSettings& settings) {
  std::vector<NodeIndex> place(settings.nodes);
  std::iota(place.begin(), place.end(), NodeIndex{0});
  if (settings.permute == 0) return place;
  // Watched nodes and liars are the first: they swap among themselves.
  Random random = Random(settings.permute).fork("places");
  const std::uint32_t first = table_size(settings) + 1 < settings.nodes
                                  ? std::min(kWatched, settings.nodes)
                                  : std::min(settings.liars, settings.nodes);
  random.shuffle(std::span(place).first(first));
  random.shuffle(std::span(place).subspan(first));
  return place;
}

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
  if (uses_swim(settings)) stretch(plan, settings, seeded.fork("swim faults"));
  if (settings.permute != 0) give_places(plan, places(settings));
  return plan;
}

}  // namespace kith::sim
