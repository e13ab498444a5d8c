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
  Duration away{0};  // until the restart; from shorter than anybody notices to several seconds
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

struct FaultPlan {
  std::vector<PlannedCrash> crashes;
  std::vector<PlannedPause> pauses;
  std::vector<PlannedAdoption> adoptions;
  std::vector<PlannedCut> cuts;
};

FaultPlan draw_faults(const SimulationSettings& settings);

}  // namespace kith::sim
