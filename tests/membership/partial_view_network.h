// A network of PartialViews on one clock, a hop per tenth of a second. A message to a crashed node
// comes back as a lost link, as a refused connection would.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gossip/membership/partial_view.h"
#include "tests/membership/swim_network.h"

namespace kith::gossip::testing {

class ViewNetwork {
 public:
  ViewNetwork(std::size_t count, PartialViewSettings settings, std::uint64_t seed);

  void join(std::size_t joiner, std::size_t contact);
  void crash(std::size_t index);
  // Its incarnation rises.
  void refute(std::size_t index);
  void run(Duration duration);

  PartialView& view(std::size_t index) { return *views_[index]; }
  [[nodiscard]] bool up(std::size_t index) const { return up_[index]; }
  [[nodiscard]] std::size_t size() const { return views_.size(); }
  [[nodiscard]] std::size_t index_of(const NodeId& id) const { return index_.at(id); }
  [[nodiscard]] TimePoint now() const { return now_; }
  // Nodes that are reached from the first running one over active views.
  [[nodiscard]] std::vector<bool> reached_ones() const;
  [[nodiscard]] std::size_t reached() const;
  [[nodiscard]] std::size_t running() const;
  // Pairs of which one holds the other in its active view, but not the other way round.
  [[nodiscard]] std::size_t one_sided() const;
  // How many views hold each running node.
  [[nodiscard]] std::vector<double> in_degrees() const;
  void take_outgoing(std::size_t from);
  schema::MemberRecord record(std::size_t index) const { return records_[index]; }

  double loss = 0.0;
  ToyAuthority authority;

 private:
  struct Flight {
    std::size_t from = 0;
    SwimOutgoing out;
  };
  std::vector<std::unique_ptr<PartialView>> views_;
  std::vector<schema::MemberRecord> records_;
  std::vector<bool> up_;
  std::map<NodeId, std::size_t> index_;
  std::vector<Flight> flying_;
  Random random_;
  TimePoint now_{std::chrono::hours(1)};
};

// Sum of squared deviations from the mean over the mean, per degree of freedom: about 1 for uniform
// draws.
double chi_square_per_degree(const std::vector<double>& counts);

}  // namespace kith::gossip::testing
