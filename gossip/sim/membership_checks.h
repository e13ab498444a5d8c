// The checkers of membership, one per property, each apart from any scenario: they see the truth
// and what nodes come to believe, and say what broke. MembershipOracle (membership_oracle.h) holds
// them together.
//
// Times and bounds are those of the production formulas at the swarm's size; what the property is
// not about (an observer that stood still, a network that was cut) is excused, and only that.
// Thread: the simulation's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gossip/sim/membership_truth.h"
#include "gossip/sim/oracle.h"

namespace kith::sim {

// What the bounds are made of.
struct MembershipBounds {
  Duration tick{0};  // gossip interval
  Duration suspicion_min{0}, suspicion_max{0};
  // Who stands still for so long (3 s at the preset local) is declared dead by nobody: three
  // quarters of the shortest suspicion in a small swarm, so that there is time to refute.
  Duration pause_survived{0};
  // Who stood still for longer than this notices, and convicts nobody for a while.
  Duration pause_noticed{0};
  double log2_nodes = 0.0;
  double log10_nodes = 0.0;
  [[nodiscard]] Duration removal() const;  // suspicion max + 3 log2 n ticks
  // Twice the ticks in which 99 % are reached: 3/5/7/9 for 10/100/1,000/10^4 nodes.
  [[nodiscard]] double dissemination_ticks() const;
};

// An observer's belief about a subject has changed (`now_known` empty: it was forgotten).
struct Change {
  TimePoint at;
  NodeIndex observer = 0, subject = 0;
  std::optional<Belief> before, after;
};

// Property 11: for each observer a member's incarnation never falls, and who left stays gone until
// a newer life of it shows up. An observer that forgot, or that starts anew, begins again.
class MonotoneCheck {
 public:
  std::optional<Violation> saw(const Change& change) const;
};

// Property 4: a node that crashed is removed by everybody within suspicion max + 3 log2 n ticks.
// Also the time to detect a death.
class CompletenessCheck {
 public:
  CompletenessCheck(const MembershipBounds& bounds, const MembershipTruth& truth)
      : bounds_(bounds), truth_(truth) {}

  // `witnesses`: who believes that it is here now.
  void crashed(TimePoint now, NodeIndex node, std::vector<NodeIndex> witnesses);
  void came_back(NodeIndex node);
  void saw(const Change& change);
  // Call now and then: judges whose time is over.
  std::optional<Violation> poll(TimePoint now);
  void stop() { deaths_.clear(); }

  [[nodiscard]] std::uint64_t deaths() const { return judged_; }  // that lasted long enough
  [[nodiscard]] const std::vector<double>& first() const { return first_; }    // seconds, a death
  [[nodiscard]] const std::vector<double>& delays() const { return delays_; }  // ... a witness

 private:
  struct Death {
    NodeIndex node = 0;
    std::uint32_t boot = 0;
    TimePoint at;
    std::vector<bool> waiting;  // [observer]
    bool seen = false;
  };
  [[nodiscard]] bool excused(const Death& death, NodeIndex observer, TimePoint now) const;
  std::optional<Violation> judge(const Death& death, TimePoint now);

  MembershipBounds bounds_;
  const MembershipTruth& truth_;
  std::vector<Death> deaths_;
  std::uint64_t judged_ = 0;
  std::vector<double> first_, delays_;
};

// Property 5: hardly anybody who lives is declared dead: fewer than 1e-3 per node and hour, within
// three deviations of what so many node-hours can tell. Who stood still for longer than
// `pause_survived`, and all while the network is cut and one longest suspicion after, does not
// count. And the security list's: where fewer lie than it takes to convict, no lie removes anybody.
class AccuracyCheck {
 public:
  AccuracyCheck(const MembershipBounds& bounds, const MembershipTruth& truth, bool lies_cannot_win)
      : bounds_(bounds),
        truth_(truth),
        lies_cannot_win_(lies_cannot_win),
        last_(truth.size(), TimePoint::max()) {}

  std::optional<Violation> saw(const Change& change);
  [[nodiscard]] std::optional<Violation> judge(double node_hours) const;
  [[nodiscard]] std::uint64_t false_deaths() const {
    return episodes_;
  }                                                             // of a node, whoever says so
  [[nodiscard]] std::uint64_t views() const { return views_; }  // observers that believed it

 private:
  MembershipBounds bounds_;
  const MembershipTruth& truth_;
  bool lies_cannot_win_;
  std::vector<TimePoint> last_;  // [node] its last false death
  std::uint64_t episodes_ = 0, views_ = 0;
  std::string example_;
};

// Property 6: news of a node that joins or returns. From the moment when one other node knows, 99 %
// of those who knew the swarm before know within twice the published ticks.
class DisseminationCheck {
 public:
  DisseminationCheck(const MembershipBounds& bounds, const MembershipTruth& truth)
      : bounds_(bounds), truth_(truth), news_(truth.size()) {}

  void came_up(TimePoint now, NodeIndex node);
  void saw(const Change& change);
  [[nodiscard]] std::optional<Violation> judge() const;
  [[nodiscard]] double p99_ticks() const;
  [[nodiscard]] std::size_t samples() const { return ticks_.size(); }

 private:
  struct News {
    std::uint32_t boot = 0;  // 0: none
    TimePoint came, first;
    bool known = false;
  };
  MembershipBounds bounds_;
  const MembershipTruth& truth_;
  std::vector<News> news_;  // [node]
  std::vector<double> ticks_;
};

// The p-th part of the sorted values (0 <= p <= 1); 0 if there are none.
double quantile(std::vector<double> values, double p);

}  // namespace kith::sim
