// Topologies: with whom a node averages next. Pair deltas need matchings: in every round of a
// schedule each node has at most one partner, and if i has j then j has i (design: a training
// method is a composition).
//
// A PartnerChooser sees the live members as a sorted list (so all nodes with equal views number
// themselves alike), its own place in it and a round number, and names one partner. Pure apart from
// the Random passed in. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"

namespace kith::gossip {

class PartnerChooser {
 public:
  virtual ~PartnerChooser() = default;
  // `index` of ourselves among `count` live members, 0 <= index < count. Nullopt: nobody this
  // round.
  [[nodiscard]] virtual std::optional<std::uint32_t> partner(std::uint32_t index,
                                                             std::uint32_t count,
                                                             std::uint64_t round,
                                                             Random& random) const = 0;
  // True when partner() of one round is an involution for equal views: safe even in simultaneous
  // rounds. `random` is not: there pairs form one at a time.
  [[nodiscard]] virtual bool is_matching() const = 0;
};

struct TopologyInfo {
  std::string_view name;     // configuration name
  std::string_view summary;  // one line for `kith topologies`
  std::string_view source;   // paper
  bool matching;             // usable with pair deltas: pairs form as matchings or one at a time
  std::unique_ptr<PartnerChooser> (*make)();
};
// The one table of topologies: random, ring (edge-coloured), complete, hypercube.
std::span<const TopologyInfo> topologies();
// kUsage with the nearest known name.
Result<const TopologyInfo*> find_topology(std::string_view name);

}  // namespace kith::gossip
