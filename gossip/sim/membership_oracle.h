// MembershipOracle: the checkers of membership together, fed with the truth and with every change
// of every node's view. Keeps the first violation and names the property; the simulation stops on
// it.
//
// Which properties are judged depends on the faults: bounds of time hold only in ordinary weather
// (membership_oracle_settings() says what that is: at most a tenth of the messages lost for
// completeness, a twentieth for accuracy, next to none for dissemination). Incarnations, and that
// all views agree in the end, are judged always. Thread: the simulation's.
#pragma once

#include <cstdint>
#include <optional>

#include "gossip/sim/membership_checks.h"
#include "gossip/sim/membership_truth.h"

namespace kith::sim {

class MembershipOracle {
 public:
  struct Settings {
    std::uint32_t nodes = 0;
    bool dense = true;  // everybody may know everybody
    MembershipBounds bounds;
    bool judge_completeness = true;
    bool judge_accuracy = true;
    bool judge_dissemination = false;
    bool lies_cannot_win = false;  // fewer lie than it takes to convict, and some do
  };
  explicit MembershipOracle(const Settings& settings);

  // The truth. `leaves`: it said so, which is no death.
  void came_up(TimePoint now, NodeIndex node, std::uint32_t boot);
  void went_down(TimePoint now, NodeIndex node, bool leaves);
  void paused(TimePoint now, NodeIndex node, Duration length) { truth_.paused(now, node, length); }
  void cut(TimePoint now) { truth_.cut(now); }
  void healed(TimePoint now) { truth_.healed(now); }

  // What a node has come to believe; empty: it forgot the subject.
  void saw(TimePoint now, NodeIndex observer, NodeIndex subject, std::optional<Belief> after);
  // Every few tenths of a second.
  void poll(TimePoint now);
  // The run proper is over: rates are judged, and faults end.
  void end_of_faults(TimePoint now);
  void report(std::string invariant, std::string text);  // keeps the first

  [[nodiscard]] const std::optional<Violation>& violation() const { return violation_; }
  [[nodiscard]] const MembershipTruth& truth() const { return truth_; }
  [[nodiscard]] const CompletenessCheck& completeness() const { return completeness_; }
  [[nodiscard]] const AccuracyCheck& accuracy() const { return accuracy_; }
  [[nodiscard]] const DisseminationCheck& dissemination() const { return dissemination_; }
  [[nodiscard]] double node_hours() const { return node_hours_; }

 private:
  void keep(std::optional<Violation> found);

  Settings settings_;
  MembershipTruth truth_;
  Beliefs beliefs_;
  MonotoneCheck monotone_;
  CompletenessCheck completeness_;
  AccuracyCheck accuracy_;
  DisseminationCheck dissemination_;
  bool over_ = false;
  double node_hours_ = 0.0;
  std::optional<Violation> violation_;
};

}  // namespace kith::sim
