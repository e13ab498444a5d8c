// Swarm testing (Groce et al., ISSTA 2012): each seed draws not only how strong faults are but
// which are on, so that one fault does not hide what another would show.
#include <algorithm>

#include "base/random.h"
#include "gossip/sim/simulate.h"

namespace kith::sim {
namespace {

double maybe(Random& random, double high) {
  const bool on = random.chance(0.5);
  const double value = random.uniform(0.0, high);
  return on ? value : 0.0;
}

template <typename T, std::size_t N>
T one_of(Random& random, const T (&values)[N]) {
  return values[random.below(N)];
}

void draw_network(SimulationSettings& s, Random& random) {
  s.loss = maybe(random, 0.3);
  s.duplicate = maybe(random, 0.3);
  s.reorder = maybe(random, 0.3);
  s.latency_steps = one_of(random, {0.02, 0.1, 0.4, 1.0, 3.0});
  s.partitions = random.chance(0.5) ? static_cast<std::uint32_t>(1 + random.below(4)) : 0;
}

void draw_nodes(SimulationSettings& s, Random& random) {
  s.churn = maybe(random, 6.0);
  s.pauses = maybe(random, 6.0);
  s.adoptions = maybe(random, 4.0);
  s.slow = maybe(random, 0.3);
  s.slow_merge = maybe(random, 1.0);
  s.busy = maybe(random, 0.2);
  s.checkpoint_seconds = random.uniform(0.2, 3.0);
  s.detection_seconds = random.uniform(0.1, 2.0);
}

void draw_method(SimulationSettings& s, Random& random) {
  s.method = one_of(random, {"ad-psgd", "ad-psgd", "elastic-gossip", "pair-averaging"});
  s.topology = one_of(random, {"", "random", "ring", "complete", "hypercube"});
  s.codec = one_of(random, {"fp32", "bf16"});
  s.fragments = static_cast<std::uint32_t>(1 + random.below(4));
  s.values = static_cast<std::uint32_t>(1 + random.below(6));
  s.chunks = static_cast<std::uint32_t>(1 + random.below(s.values));
  s.training = random.chance(0.75);
}

void draw_budgets(SimulationSettings& s, Random& random) {
  const std::uint64_t fragment = std::uint64_t{s.values} * 8;
  s.window_chunks = random.chance(0.5) ? static_cast<std::uint32_t>(1 + random.below(4)) : 0;
  s.inbound_bytes_max = random.chance(0.3) ? fragment * (1 + random.below(4)) : 0;
  s.ledger_bytes_max = random.chance(0.3) ? fragment * (1 + random.below(8)) : 0;
  s.retry_seconds = random.chance(0.3) ? random.uniform(0.05, 1.0) : 0.0;
}

// Each seed runs the real membership or the oracle unless it was said which; with machines half of
// the swarms see the weather in which bounds of time are judged.
void draw_membership(SimulationSettings& s, const SimulationSettings& given, Random random) {
  s.membership = given.membership;
  s.membership_fault = given.membership_fault;
  if (given.method == "local") {
    s.method = given.method;
    s.topology = s.codec = "";
  }
  if (!uses_swim(s)) return;
  s.liars = s.nodes >= 8 && random.chance(0.25) ? 1 : 0;
  if (random.chance(0.25)) s.partial_view_above = 4;
  if (!random.chance(0.5)) return;
  s.loss = std::min(s.loss, 0.05);
  s.slow = std::min(s.slow, 0.1);
  s.pauses = std::min(s.pauses, 0.4);
  s.churn = std::min(s.churn, 1.0);
}

}  // namespace

SimulationSettings draw_swarm(const SimulationSettings& settings) {
  SimulationSettings drawn;
  drawn.nodes = settings.nodes;
  drawn.seconds = settings.seconds;
  drawn.seed = settings.seed;
  drawn.planted = settings.planted;
  Random random = Random(settings.seed).fork("swarm");
  draw_network(drawn, random);
  draw_nodes(drawn, random);
  draw_method(drawn, random);
  draw_budgets(drawn, random);
  draw_membership(drawn, settings, Random(settings.seed).fork("swarm membership"));
  return drawn;
}

}  // namespace kith::sim
