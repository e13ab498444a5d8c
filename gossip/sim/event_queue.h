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
  kCut,     // a partition begins; `detail` = its number
  kHeal,    // ... ends
  kSample,  // the variance over the nodes is recorded
};
const char* name_of(EventKind kind);

struct Event {
  TimePoint time;
  std::uint64_t order = 0;  // set by the queue
  EventKind kind = EventKind::kStep;
  NodeIndex node = kNobody;  // whose handler runs
  std::uint32_t detail = 0;  // meaning by kind
  std::uint32_t life =
      0;  // boot count of the node that the event was meant for (kStep, kMergeDone, kTick)
};

class EventQueue {
 public:
  void push(Event event);
  Event pop();  // the earliest; not on an empty queue
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  [[nodiscard]] TimePoint next_time() const { return heap_.front().time; }

 private:
  std::vector<Event> heap_;  // binary heap, earliest first
  std::uint64_t next_order_ = 0;
};

// 64 bits over every value handed in, in order (FNV-1a's scheme over words with splitmix64's final
// mix). Not cryptographic.
class TraceHash {
 public:
  void add(std::uint64_t value) {
    value ^= state_;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
    state_ = (value ^ (value >> 31)) + 0x9E3779B97F4A7C15ULL;
  }
  [[nodiscard]] std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xCBF29CE484222325ULL;
};

}  // namespace kith::sim
