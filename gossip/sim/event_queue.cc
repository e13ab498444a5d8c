#include "gossip/sim/event_queue.h"

#include <algorithm>

#include "base/check.h"

namespace kith::sim {
namespace {

constexpr unsigned kSlotBits = 24;
constexpr std::uint64_t kSlotMask = (1U << kSlotBits) - 1;
constexpr std::size_t kChildren = 4;

}  // namespace

const char* name_of(EventKind kind) {
  switch (kind) {
    case EventKind::kStep:
      return "safe point";
    case EventKind::kMergeDone:
      return "end of a merge";
    case EventKind::kDeliver:
      return "message";
    case EventKind::kTick:
      return "deadline";
    case EventKind::kView:
      return "membership";
    case EventKind::kCrash:
      return "crash";
    case EventKind::kRestart:
      return "restart";
    case EventKind::kCheckpoint:
      return "checkpoint";
    case EventKind::kPause:
      return "pause";
    case EventKind::kAdopt:
      return "adoption";
    case EventKind::kCut:
      return "partition";
    case EventKind::kHeal:
      return "heal";
    case EventKind::kSample:
      return "sample";
    case EventKind::kSwimTick:
      return "membership deadline";
    case EventKind::kSwimDeliver:
      return "membership message";
    case EventKind::kSwimJoin:
      return "join";
    case EventKind::kSwimDial:
      return "dialling";
    case EventKind::kSwimLinkLost:
      return "loss of a link";
    case EventKind::kSwimFigures:
      return "new figures";
    case EventKind::kSwimLie:
      return "lie";
    case EventKind::kStall:
      return "stall";
    case EventKind::kResume:
      return "end of a pause";
  }
  return "?";
}

void EventQueue::push(const Event& event) {
  std::uint32_t slot = 0;
  if (free_slots_.empty()) {
    slot = static_cast<std::uint32_t>(slots_.size());
    KITH_CHECK(slot < kSlotMask, "the simulation holds more events than its queue can number");
    slots_.push_back(event);
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
    slots_[slot] = event;
  }
  const Entry entry{event.time.since_start.count(), (next_order_++ << kSlotBits) | slot};
  std::size_t at = heap_.size();
  heap_.push_back(entry);
  for (; at > 0 && entry < heap_[(at - 1) / kChildren]; at = (at - 1) / kChildren) {
    heap_[at] = heap_[(at - 1) / kChildren];
  }
  heap_[at] = entry;
}

Event EventQueue::pop() {
  KITH_CHECK(!heap_.empty(), "the simulation has no event left to pop");
  const auto slot = static_cast<std::uint32_t>(heap_.front().order_and_slot & kSlotMask);
  free_slots_.push_back(slot);
  const Entry last = heap_.back();
  heap_.pop_back();
  if (heap_.empty()) return slots_[slot];
  std::size_t at = 0;
  for (std::size_t child = earliest_child(0); child < heap_.size() && heap_[child] < last;
       child = earliest_child(at)) {
    heap_[at] = heap_[child];
    at = child;
  }
  heap_[at] = last;
  return slots_[slot];
}

// Past the end if there is none.
std::size_t EventQueue::earliest_child(std::size_t parent) const {
  const std::size_t first = parent * kChildren + 1;
  const std::size_t end = std::min(first + kChildren, heap_.size());
  std::size_t best = first;
  for (std::size_t child = first + 1; child < end; ++child) {
    if (heap_[child] < heap_[best]) best = child;
  }
  return best;
}

}  // namespace kith::sim
