// Checkers that look at whole runs instead of events: what must not depend on the size of a swarm,
// on who knows whom, or on who has which name. And those of partial views, over plain graphs.
//
// Pure functions; each returns what broke, or nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "gossip/sim/oracle.h"
#include "gossip/sim/simulate.h"

namespace kith::sim {

// Property 7: bytes per node and second of swarms of different sizes are within `tolerance` of the
// first.
std::optional<Violation> check_flat(std::span<const double> bytes_per_node_second,
                                    double tolerance = 0.2);

// Property 9: the pairs that meet mix at least 0.8 times as fast as uniformly random ones. Factors
// per round (0 < f < 1) by which variance shrinks; rates are their logarithms.
std::optional<Violation> check_mixing(double factor, double uniform_factor);

// Property 12: two runs that differ in who has which place agree in all that is counted over many
// events, within `tolerance` (relative).
std::optional<Violation> check_same_aggregates(const SimulationReport& a, const SimulationReport& b,
                                               double tolerance = 0.15);

// Property 8, for views as a directed graph: [node] = whom it has in its view.
using ViewGraph = std::vector<std::vector<NodeIndex>>;
std::optional<Violation> check_symmetric(const ViewGraph& views);
// Still connected (as an undirected graph) when this share of the nodes, drawn at random, is gone.
std::optional<Violation> check_connected(const ViewGraph& views, double failed_share,
                                         Random& random);
// Pearson's statistic of the in-degrees against equal ones, over its degrees of freedom, is about 1
// if everybody draws uniformly; `bound` of it is allowed.
double in_degree_chi_square(const ViewGraph& views);
std::optional<Violation> check_in_degrees(const ViewGraph& views, double bound);

}  // namespace kith::sim
