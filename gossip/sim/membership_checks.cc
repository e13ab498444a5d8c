#include "gossip/sim/membership_checks.h"

#include <algorithm>
#include <cmath>

#include "gossip/sim/node_ids.h"

namespace kith::sim {
namespace {

using schema::MemberState;

constexpr double kFalseDeathsPerNodeHour = 1e-3;
constexpr std::size_t kSamplesToJudge = 200;

std::string describe(NodeIndex node) { return "node " + std::to_string(node); }
std::string seconds_text(Duration d) {
  std::string text = std::to_string(to_seconds(d));
  return text.substr(0, text.find('.') + 3) + " s";
}

}  // namespace

double quantile(std::vector<double> values, double p) {
  if (values.empty()) return 0.0;
  const auto rank =
      static_cast<std::size_t>(std::clamp(std::ceil(p * static_cast<double>(values.size())) - 1.0,
                                          0.0, static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank),
                   values.end());
  return values[rank];
}

Duration MembershipBounds::removal() const {
  return suspicion_max +
         Duration(static_cast<std::int64_t>(3.0 * log2_nodes * static_cast<double>(tick.count())));
}

double MembershipBounds::dissemination_ticks() const {
  return 2.0 * (1.0 + 2.0 * std::max(1.0, std::ceil(log10_nodes)));
}

// ---- incarnations

std::optional<Violation> MonotoneCheck::saw(const Change& c) const {
  if (!c.before || !c.after) return std::nullopt;
  const std::string who = describe(c.observer) + " about " + describe(c.subject);
  if (c.after->incarnation < c.before->incarnation) {
    return Violation{"incarnation monotone", who + ": incarnation fell from " +
                                                 std::to_string(c.before->incarnation) + " to " +
                                                 std::to_string(c.after->incarnation)};
  }
  const bool newer_life = boot_of(c.after->incarnation) > boot_of(c.before->incarnation);
  if (c.before->state == MemberState::kLeft && c.after->state != MemberState::kLeft &&
      !newer_life) {
    return Violation{"left stays left",
                     who + ": it left in life " + std::to_string(boot_of(c.before->incarnation)) +
                         " and is " + schema::name_of(c.after->state) + " again in it"};
  }
  return std::nullopt;
}

// ---- completeness

void CompletenessCheck::crashed(TimePoint now, NodeIndex node, std::vector<NodeIndex> witnesses) {
  Death death{node, truth_.node(node).boot, now, {}, false};
  death.waiting.resize(truth_.size());
  for (const NodeIndex witness : witnesses) death.waiting[witness] = true;
  deaths_.push_back(std::move(death));
}

void CompletenessCheck::came_back(NodeIndex node) {
  std::erase_if(deaths_, [node](const Death& death) { return death.node == node; });
}

void CompletenessCheck::saw(const Change& c) {
  if (c.after && believed_here(c.after->state)) return;
  for (Death& death : deaths_) {
    if (death.node != c.subject || !death.waiting[c.observer]) continue;
    if (c.after && boot_of(c.after->incarnation) < death.boot) continue;
    death.waiting[c.observer] = false;
    const double delay = to_seconds(c.at - death.at);
    if (!excused(death, c.observer, c.at)) delays_.push_back(delay);
    if (!death.seen) first_.push_back(delay);
    death.seen = true;
  }
}

// The observer did not run all the time, or the network was not whole.
bool CompletenessCheck::excused(const Death& death, NodeIndex observer, TimePoint) const {
  const TimePoint since =
      death.at.since_start > bounds_.suspicion_max ? death.at - bounds_.suspicion_max : TimePoint{};
  return !truth_.whole_since(since) || !truth_.node(observer).up ||
         truth_.node(observer).up_since > death.at ||
         !truth_.ran_since(observer, std::max(since, truth_.node(observer).up_since),
                           bounds_.pause_noticed);
}

std::optional<Violation> CompletenessCheck::judge(const Death& death, TimePoint now) {
  ++judged_;
  for (NodeIndex i = 0; i < death.waiting.size(); ++i) {
    if (!death.waiting[i] || excused(death, i, now)) continue;
    return Violation{"completeness", describe(death.node) + " crashed at " +
                                         seconds_text(death.at.since_start) + "; " +
                                         seconds_text(now - death.at) + " later " + describe(i) +
                                         " still believes that it is here, the bound is " +
                                         seconds_text(bounds_.removal())};
  }
  return std::nullopt;
}

std::optional<Violation> CompletenessCheck::poll(TimePoint now) {
  std::optional<Violation> violation;
  std::erase_if(deaths_, [&](const Death& death) {
    if (now - death.at < bounds_.removal()) return false;
    auto found = judge(death, now);
    if (!violation) violation = std::move(found);
    return true;
  });
  return violation;
}

// ---- accuracy

std::optional<Violation> AccuracyCheck::saw(const Change& c) {
  if (!c.after || c.after->state != MemberState::kDead) return std::nullopt;
  if (c.before && c.before->state == MemberState::kDead &&
      c.before->incarnation == c.after->incarnation)
    return std::nullopt;
  const MembershipTruth::Node& node = truth_.node(c.subject);
  if (!node.up || boot_of(c.after->incarnation) < node.boot) return std::nullopt;
  const TimePoint since =
      c.at.since_start > bounds_.removal() ? c.at - bounds_.removal() : TimePoint{};
  if (!truth_.whole_since(since) ||
      !truth_.ran_since(c.subject, std::max(since, node.up_since), bounds_.pause_survived))
    return std::nullopt;
  ++views_;
  if (last_[c.subject] == TimePoint::max() || c.at - last_[c.subject] > bounds_.suspicion_max) {
    ++episodes_;
  }
  last_[c.subject] = c.at;
  example_ = describe(c.observer) + " declared " + describe(c.subject) + " dead at " +
             seconds_text(c.at.since_start) + " though it was well";
  if (!lies_cannot_win_) return std::nullopt;
  return Violation{"a liar removes nobody", example_};
}

std::optional<Violation> AccuracyCheck::judge(double node_hours) const {
  const double expected = kFalseDeathsPerNodeHour * node_hours;
  const double allowed = expected + 3.0 * std::sqrt(expected);
  if (static_cast<double>(episodes_) <= allowed) return std::nullopt;
  return Violation{"accuracy", std::to_string(episodes_) + " false deaths in " +
                                   std::to_string(node_hours) +
                                   " node-hours; the last: " + example_};
}

// ---- dissemination

void DisseminationCheck::came_up(TimePoint now, NodeIndex node) {
  news_[node] = {truth_.node(node).boot, now, now, false};
}

void DisseminationCheck::saw(const Change& c) {
  News& news = news_[c.subject];
  if (news.boot == 0 || !c.after || boot_of(c.after->incarnation) != news.boot) return;
  if (c.before && boot_of(c.before->incarnation) >= news.boot) return;
  if (!news.known) {
    news.known = true;
    news.first = c.at;
    return;
  }
  // Only who knew the swarm well before.
  const TimePoint since =
      news.came.since_start > bounds_.removal() ? news.came - bounds_.removal() : TimePoint{};
  if (!truth_.whole_since(since) || truth_.node(c.observer).up_since > since ||
      !truth_.ran_since(c.observer, since, Duration{0}))
    return;
  ticks_.push_back(std::ceil(to_seconds(c.at - news.first) / to_seconds(bounds_.tick)));
}

double DisseminationCheck::p99_ticks() const { return quantile(ticks_, 0.99); }

std::optional<Violation> DisseminationCheck::judge() const {
  if (ticks_.size() < kSamplesToJudge) return std::nullopt;
  const double p99 = p99_ticks();
  if (p99 <= bounds_.dissemination_ticks()) return std::nullopt;
  return Violation{"dissemination", "99 % of the nodes know of a newcomer after " +
                                        std::to_string(p99) + " gossip ticks, the bound is " +
                                        std::to_string(bounds_.dissemination_ticks())};
}

}  // namespace kith::sim
