#include "gossip/sim/aggregates.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace kith::sim {
namespace {

constexpr double kMixingShare = 0.8;

std::string node_text(NodeIndex node) { return "node " + std::to_string(node); }

bool close(double a, double b, double tolerance) {
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b)) + 1e-12;
}

std::size_t reached_from(const std::vector<std::vector<NodeIndex>>& edges, NodeIndex start,
                         std::vector<bool> gone) {
  std::vector<NodeIndex> stack = {start};
  gone[start] = true;
  std::size_t count = 0;
  while (!stack.empty()) {
    const NodeIndex node = stack.back();
    stack.pop_back();
    ++count;
    for (const NodeIndex next : edges[node]) {
      if (gone[next]) continue;
      gone[next] = true;
      stack.push_back(next);
    }
  }
  return count;
}

}  // namespace

std::optional<Violation> check_flat(std::span<const double> bytes, double tolerance) {
  for (const double b : bytes) {
    if (std::abs(b - bytes.front()) <= tolerance * bytes.front()) continue;
    return Violation{"flat control traffic",
                     std::to_string(b) + " bytes per node and second against " +
                         std::to_string(bytes.front()) + " in the first swarm"};
  }
  return std::nullopt;
}

std::optional<Violation> check_mixing(double factor, double uniform_factor) {
  const double rate = std::log(factor) / std::log(uniform_factor);
  if (factor > 0.0 && factor < 1.0 && rate >= kMixingShare) return std::nullopt;
  return Violation{"pair graph", "variance decays at " + std::to_string(rate) +
                                     " times the rate of uniformly random pairs"};
}

std::optional<Violation> check_same_aggregates(const SimulationReport& a, const SimulationReport& b,
                                               double tolerance) {
  struct Figure {
    const char* name;
    double a, b;
  };
  const Figure figures[] = {
      {"exchanges per node and step", a.completed_per_node_step, b.completed_per_node_step},
      {"bulk bytes per node and second", a.bytes_per_node_second, b.bytes_per_node_second},
      {"decay of variance per step", std::log(std::max(1e-9, a.variance_factor_per_step)),
       std::log(std::max(1e-9, b.variance_factor_per_step))},
      {"control bytes per node and second", a.control_bytes_per_node_second,
       b.control_bytes_per_node_second},
      {"time to detect a death", a.detection_median_seconds, b.detection_median_seconds},
      {"crashes", static_cast<double>(a.crashes), static_cast<double>(b.crashes)},
  };
  for (const Figure& figure : figures) {
    if (close(figure.a, figure.b, tolerance)) continue;
    return Violation{"names do not matter", std::string(figure.name) + ": " +
                                                std::to_string(figure.a) + " against " +
                                                std::to_string(figure.b)};
  }
  return std::nullopt;
}

std::optional<Violation> check_symmetric(const ViewGraph& views) {
  for (NodeIndex i = 0; i < views.size(); ++i) {
    for (const NodeIndex j : views[i]) {
      if (std::find(views[j].begin(), views[j].end(), i) != views[j].end()) continue;
      return Violation{"symmetric active views",
                       node_text(i) + " has " + node_text(j) + " and not the other way round"};
    }
  }
  return std::nullopt;
}

std::optional<Violation> check_connected(const ViewGraph& views, double failed_share,
                                         Random& random) {
  std::vector<NodeIndex> order(views.size());
  for (NodeIndex i = 0; i < views.size(); ++i) order[i] = i;
  random.shuffle(std::span(order));
  std::vector<bool> gone(views.size());
  const auto failed =
      static_cast<std::size_t>(failed_share * static_cast<double>(views.size()) + 0.5);
  for (std::size_t i = 0; i < failed; ++i) gone[order[i]] = true;
  std::vector<std::vector<NodeIndex>> edges(views.size());
  for (NodeIndex i = 0; i < views.size(); ++i) {
    for (const NodeIndex j : views[i]) {
      edges[i].push_back(j);
      edges[j].push_back(i);
    }
  }
  const std::size_t left = views.size() - failed;
  if (left == 0) return std::nullopt;
  const std::size_t reached = reached_from(edges, order[failed], gone);
  if (reached == left) return std::nullopt;
  return Violation{"connected views", "of " + std::to_string(left) + " survivors only " +
                                          std::to_string(reached) + " are connected with " +
                                          node_text(order[failed])};
}

double in_degree_chi_square(const ViewGraph& views) {
  std::vector<double> degree(views.size());
  double sum = 0.0;
  for (const auto& view : views) {
    for (const NodeIndex j : view) {
      degree[j] += 1.0;
      sum += 1.0;
    }
  }
  if (views.size() < 2 || sum <= 0.0) return 0.0;
  const double mean = sum / static_cast<double>(views.size());
  double statistic = 0.0;
  for (const double d : degree) statistic += (d - mean) * (d - mean) / mean;
  return statistic / static_cast<double>(views.size() - 1);
}

std::optional<Violation> check_in_degrees(const ViewGraph& views, double bound) {
  const double statistic = in_degree_chi_square(views);
  if (statistic <= bound) return std::nullopt;
  return Violation{"uniform in-degrees", "chi-square over degrees of freedom is " +
                                             std::to_string(statistic) + ", allowed is " +
                                             std::to_string(bound)};
}

}  // namespace kith::sim
