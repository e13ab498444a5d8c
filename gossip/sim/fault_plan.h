// FaultPlan: which nodes crash when, and when the network is cut, drawn once from the seed before a
// run. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "gossip/sim/network.h"
#include "gossip/sim/simulate.h"

namespace kith::sim {

struct PlannedCrash {
  enum class Disk : std::uint8_t {
    kKept,     // comes back from its newest checkpoint
    kTorn,     // ... which is damaged: from the one before
    kLost,     // comes back with nothing and adopts a donor's state
    kForGood,  // never comes back
  } disk = Disk::kKept;
  NodeIndex node = 0;
  TimePoint at;
  Duration away{0};     // until the restart; from shorter than anybody notices to several seconds
  bool leaves = false;  // says so before
  bool silent = false;  // nobody's link is reset: power lost
};

struct PlannedPause {
  NodeIndex node = 0;
  TimePoint at;
  Duration length{0};
};

struct PlannedAdoption {
  NodeIndex node = 0;
  TimePoint at;
};

struct PlannedCut {
  Cut cut;
  TimePoint from, to;
};

// Not there at the start: joins then.
struct PlannedJoin {
  NodeIndex node = 0;
  TimePoint at;
};

struct FaultPlan {
  std::vector<PlannedCrash> crashes;
  std::vector<PlannedPause> pauses;
  std::vector<PlannedAdoption> adoptions;
  std::vector<PlannedCut> cuts;
  std::vector<PlannedJoin> joins;
};

// With Swim machines some last long enough to be noticed, some nodes leave or join, and only
// watched ones come and go where tables do not hold everybody.
FaultPlan draw_faults(const SimulationSettings& settings);

// Who takes whose place: the identity, or a permutation drawn from `permute`. [role] = node
std::vector<NodeIndex> places(const SimulationSettings& settings);

}  // namespace kith::sim
