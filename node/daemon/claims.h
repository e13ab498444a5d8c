// What a node believes of the figures that members announce. Their records are signed, but one
// member's figures are its word alone, and a member that is wrong about itself (a bug, a lie) must
// neither make the others adopt its state nor end the run.
//
//   depth    what two members say: the second greatest of the others' depths; one other member
//            alone is believed
//   steps    part of a member's own model, so never above the depth that is believed plus max_lag
//   samples  steps times samples per step, up to kBatchFactor times the greater of our batch and
//            the second greatest ratio
//   pace     up to kPaceFactor times the greater of our pace and the second greatest
//
// What is above is not counted until the others have caught up: an honest member that is alone far
// ahead (a survivor of an older island among several younger ones) gives its own state up after a
// while (ControlLoop::consider_lag). A cluster of two has no second witness. Two that lie alike are
// believed. Pure functions.
#pragma once

#include <vector>

#include "base/ids.h"
#include "gossip/membership/progress.h"

namespace kith::node {

inline constexpr double kBatchFactor = 8.0;
inline constexpr double kPaceFactor = 100.0;
inline constexpr double kPaceMin = 1.0;  // steps per second: before anybody's pace is known

// The greatest value that two state, or that the only one states; 0 of none.
[[nodiscard]] Step vouched(std::vector<Step> values);
[[nodiscard]] double vouched(std::vector<double> values);  // what is no number is ignored

[[nodiscard]] Step sum(Step a, Step b);  // or the greatest step there is

// What is believed of others at one moment.
struct Belief {
  Step depth = 0;             // of the cluster's model
  std::size_t witnesses = 0;  // who stated a depth
  Step max_lag = 0;
  Step steps_max = ~Step{0};  // of any one member
  double samples_per_step_max = 1e18;

  // Neither behind what is believed nor alone far above it.
  [[nodiscard]] bool is_level(Step depth_of_member) const;
  [[nodiscard]] gossip::Progress::Count counted(Samples samples, Step steps) const;
};

// The greatest pace that counts, in steps per second.
[[nodiscard]] double believed_pace(double own, const std::vector<double>& others);

}  // namespace kith::node
