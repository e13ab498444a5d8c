// EventQueue and TraceHash: what happens next in a simulation, and a fingerprint of all that
// happened.
//
// One thread. Events are ordered by (time, order of scheduling): no two compare equal, so the order
// in which they come out is the same with every compiler and library. Costs: O(log n) a push and a
// pop; 32 bytes an event.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/mix.h"

namespace kith::sim {

using NodeIndex = std::uint32_t;  // 0 <= index < nodes of the simulation
inline constexpr NodeIndex kNobody = 0xFFFFFFFFU;

enum class EventKind : std::uint8_t {
  kStep,       // a trainer's safe point
  kMergeDone,  // the end of a slow merge begun at a safe point
  kDeliver,    // a message arrives; `detail` = slot of the message in flight
  kTick,       // a machine's deadline
  kView,       // a node looks at the membership
  kCrash,
  kRestart,
  kCheckpoint,
  kPause,   // a process is stopped for a while (SIGSTOP, a frozen machine)
  kAdopt,   // a node that lags gives up what it has open and takes a donor's state
  kCut,     // a partition begins; `detail` = its number
  kHeal,    // ... ends
  kSample,  // the variance over the nodes is recorded
  // Membership by Swim machines.
  kSwimTick,      // a machine's deadline
  kSwimDeliver,   // a membership message arrives; `detail` = its slot
  kSwimJoin,      // a node without links asks somebody it was told of
  kSwimDial,      // ... makes links to members that it has none to
  kSwimLinkLost,  // ... notices that its link to node `detail` is gone
  kSwimFigures,   // ... has new figures in its own record
  kSwimLie,       // a lying node accuses everybody
  kStall,         // a slow node stands still for a moment; again and again
  kResume,        // ... or a stopped one runs on
};
const char* name_of(EventKind kind);

struct Event {
  TimePoint time;
  EventKind kind = EventKind::kStep;
  NodeIndex node = kNobody;  // whose handler runs
  std::uint32_t detail = 0;  // meaning by kind
  std::uint32_t life =
      0;  // boot count of the node that the event was meant for (kStep, kMergeDone, kTick)
};

class EventQueue {
 public:
  void push(const Event& event);
  Event pop();  // the earliest; not on an empty queue
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  [[nodiscard]] TimePoint next_time() const { return TimePoint{Duration(heap_.front().time)}; }

 private:
  // Four of these share a cache line, and a heap of four children per parent compares them
  // together.
  struct Entry {
    std::int64_t time = 0;
    std::uint64_t order_and_slot = 0;  // 40 bits of order above 24 bits of slot
    bool operator<(const Entry& other) const {
      return time != other.time ? time < other.time : order_and_slot < other.order_and_slot;
    }
  };
  [[nodiscard]] std::size_t earliest_child(std::size_t parent) const;

  std::vector<Entry> heap_;  // earliest first
  std::vector<Event> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::uint64_t next_order_ = 0;
};

// 64 bits over every value handed in, in order (FNV-1a's scheme over words with splitmix64's final
// mix). Not cryptographic.
class TraceHash {
 public:
  void add(std::uint64_t value) { state_ = mix64(value ^ state_) + kMixStep; }
  [[nodiscard]] std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xCBF29CE484222325ULL;
};

}  // namespace kith::sim
