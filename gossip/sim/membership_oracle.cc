#include "gossip/sim/membership_oracle.h"

#include <utility>

namespace kith::sim {

MembershipOracle::MembershipOracle(const Settings& settings)
    : settings_(settings),
      truth_(settings.nodes),
      beliefs_(settings.nodes, settings.dense),
      completeness_(settings.bounds, truth_),
      accuracy_(settings.bounds, truth_, settings.lies_cannot_win),
      dissemination_(settings.bounds, truth_) {}

void MembershipOracle::came_up(TimePoint now, NodeIndex node, std::uint32_t boot) {
  truth_.came_up(now, node, boot);
  beliefs_.forget_all(node);
  completeness_.came_back(node);
  if (now > TimePoint{} && !over_) dissemination_.came_up(now, node);
}

void MembershipOracle::went_down(TimePoint now, NodeIndex node, bool leaves) {
  truth_.went_down(now, node);
  if (leaves || over_) return;
  std::vector<NodeIndex> witnesses;
  for (NodeIndex i = 0; i < truth_.size(); ++i) {
    if (i == node || !truth_.node(i).up) continue;
    const auto belief = beliefs_.find(i, node);
    if (belief && believed_here(belief->state)) witnesses.push_back(i);
  }
  completeness_.crashed(now, node, std::move(witnesses));
}

void MembershipOracle::saw(TimePoint now, NodeIndex observer, NodeIndex subject,
                           std::optional<Belief> after) {
  const Change change{now, observer, subject, beliefs_.find(observer, subject), after};
  if (after) {
    beliefs_.set(observer, subject, *after);
  } else {
    beliefs_.forget(observer, subject);
  }
  keep(monotone_.saw(change));
  if (over_) return;
  completeness_.saw(change);
  dissemination_.saw(change);
  keep(accuracy_.saw(change));
}

void MembershipOracle::poll(TimePoint now) {
  if (over_) return;
  auto late = completeness_.poll(now);
  if (settings_.judge_completeness) keep(std::move(late));
}

void MembershipOracle::end_of_faults(TimePoint now) {
  poll(now);
  node_hours_ = truth_.node_hours(now);
  if (settings_.judge_accuracy) keep(accuracy_.judge(node_hours_));
  if (settings_.judge_dissemination) keep(dissemination_.judge());
  completeness_.stop();
  truth_.healed_all(now);
  over_ = true;
}

void MembershipOracle::report(std::string invariant, std::string text) {
  keep(Violation{std::move(invariant), std::move(text)});
}

void MembershipOracle::keep(std::optional<Violation> found) {
  if (!violation_ && found) violation_ = std::move(found);
}

}  // namespace kith::sim
