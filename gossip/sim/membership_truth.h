// MembershipTruth and Beliefs: what is the case, and what each node last believed of each other.
// The checkers of membership compare the two. Thread: the simulation's.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "gossip/sim/event_queue.h"
#include "schema/messages.h"

namespace kith::sim {

class MembershipTruth {
 public:
  explicit MembershipTruth(std::uint32_t nodes) : nodes_(nodes) {}

  void came_up(TimePoint now, NodeIndex node, std::uint32_t boot);
  void went_down(TimePoint now, NodeIndex node);
  void paused(TimePoint now, NodeIndex node, Duration length);
  void cut(TimePoint) { ++cuts_; }
  void healed(TimePoint now);
  void healed_all(TimePoint now);

  struct Pause {
    TimePoint from, until;
    [[nodiscard]] Duration length() const { return until - from; }
  };
  struct Node {
    bool up = false;
    std::uint32_t boot = 0;
    TimePoint up_since, down_since;
    Duration up_before{0};  // in earlier lives
    // Of this life, oldest first, each shorter than the one before: who asks about pauses of a
    // length and later is answered as well without those that a later, longer one covers.
    std::vector<Pause> pauses;
  };
  [[nodiscard]] const Node& node(NodeIndex index) const { return nodes_[index]; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  [[nodiscard]] std::uint32_t up_count() const { return up_; }
  // The network was whole from `since` on.
  [[nodiscard]] bool whole_since(TimePoint since) const {
    return cuts_ == 0 && (!ever_cut_ || last_heal_ < since);
  }
  // The node ran from `since` on, but for pauses shorter than `longest`.
  [[nodiscard]] bool ran_since(NodeIndex index, TimePoint since, Duration longest) const;
  [[nodiscard]] bool stands_still(NodeIndex index, TimePoint now) const;
  [[nodiscard]] double node_hours(TimePoint now) const;

 private:
  std::vector<Node> nodes_;
  std::uint32_t up_ = 0;
  unsigned cuts_ = 0;
  bool ever_cut_ = false;
  TimePoint last_heal_;
};

struct Belief {
  Incarnation incarnation = 0;
  schema::MemberState state = schema::MemberState::kAlive;
};

inline bool believed_here(schema::MemberState state) {
  return state == schema::MemberState::kAlive || state == schema::MemberState::kSuspect;
}

// 8 bytes a pair where every node may know every other (`dense`), else about 40 for pairs that
// there are.
class Beliefs {
 public:
  Beliefs(std::uint32_t nodes, bool dense);
  [[nodiscard]] std::optional<Belief> find(NodeIndex observer, NodeIndex subject) const;
  void set(NodeIndex observer, NodeIndex subject, Belief belief);
  void forget(NodeIndex observer, NodeIndex subject);
  void forget_all(NodeIndex observer);  // it starts anew

 private:
  std::uint32_t nodes_;
  std::vector<std::uint64_t> table_;                                // 1 + packed belief, 0: none
  std::vector<std::unordered_map<NodeIndex, std::uint64_t>> maps_;  // never iterated
};

}  // namespace kith::sim
