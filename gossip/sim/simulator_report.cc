// What a run came to.
#include <string>

#include "gossip/sim/simulator.h"

namespace kith::sim {

void add_counters(gossip::ExchangeCounters& sum, const gossip::ExchangeCounters& c) {
  sum.proposed += c.proposed;
  sum.completed_initiator += c.completed_initiator;
  sum.refused_busy += c.refused_busy;
  sum.refused_crossing += c.refused_crossing;
  sum.refused_other += c.refused_other;
  sum.suspended += c.suspended;
  sum.forfeited += c.forfeited;
  sum.invalid += c.invalid;
}

gossip::ExchangeCounters Simulator::totals() const {
  gossip::ExchangeCounters sum = ended_;
  for (const auto& node : nodes_) {
    if (node->up()) add_counters(sum, node->machine().counters());
  }
  return sum;
}

double Simulator::variance() const {
  double sum = 0.0;
  for (std::size_t i = 0; i < layout_.total(); ++i) {
    double mean = 0.0;
    double square = 0.0;
    std::uint64_t count = 0;
    Fixed origin = 0;  // of the first live node: differences of close values keep their digits
    for (const auto& node : nodes_) {
      if (!node->up()) continue;
      if (count == 0) origin = node->store().published(i);
      const double value = to_double(node->store().published(i) - origin);
      const double delta = value - mean;
      mean += delta / static_cast<double>(++count);
      square += delta * (value - mean);
    }
    if (count > 0) sum += square / static_cast<double>(count);
  }
  return sum / static_cast<double>(layout_.total());
}

void Simulator::measure() {
  const gossip::ExchangeCounters sum = totals();
  report_.variance_end = variance();
  const double node_steps = static_cast<double>(report_.steps) * layout_.fragments;
  if (node_steps > 0)
    report_.completed_per_node_step = static_cast<double>(sum.completed_initiator) / node_steps;
  const std::uint64_t refused = sum.refused_busy + sum.refused_crossing + sum.refused_other;
  if (sum.proposed > 0)
    report_.refused_share = static_cast<double>(refused) / static_cast<double>(sum.proposed);
  report_.bytes_per_node_second =
      static_cast<double>(report_.payload_bytes) / settings_.nodes / settings_.seconds;
  if (swarm_ != nullptr) {
    meter_.at_end(*swarm_, views_->truth().node_hours(now_), report_);
    views_->end_of_faults(now_);
    check_views();
    if (oracle_.violation() && violated_at_.empty()) violated_at_ = "the end of the faults";
  }
  report_.messages_per_node_second =
      static_cast<double>(report_.messages) / settings_.nodes / settings_.seconds;
}

void Simulator::finish() {
  const gossip::ExchangeCounters sum = totals();
  report_.proposed = sum.proposed;
  report_.completed = sum.completed_initiator;
  report_.refused_busy = sum.refused_busy;
  report_.refused_crossing = sum.refused_crossing;
  report_.refused_other = sum.refused_other;
  report_.suspended = sum.suspended;
  report_.forfeited = sum.forfeited;
  report_.invalid = sum.invalid;
  for (const auto& node : nodes_) {
    for (std::size_t i = 0; i < layout_.total(); ++i)
      hash_.add(static_cast<std::uint64_t>(node->store().mass(i)));
  }
  report_.events = events_;
  report_.hash = hash_.value();
  report_.simulated_seconds = to_seconds(now_.since_start);
  report_.one_sided = oracle_.excused();
  report_.dropped = network_.counts().dropped + network_.counts().cut;
  report_.duplicated = network_.counts().duplicated;
  report_.reordered = network_.counts().delayed;
  if (swarm_ != nullptr) report_membership(*swarm_, *views_, settings_, report_);
  if (const auto& violation = oracle_.violation()) {
    report_.violations = 1;
    report_.violation = violation->invariant + ": " + violation->text + "\n  at " + violated_at_ +
                        "\n  replay: " + replay_;
  }
  report_.ok = report_.violations == 0;
}

}  // namespace kith::sim
