#include "gossip/sim/event_queue.h"

#include <algorithm>

#include "base/check.h"

namespace kith::sim {
namespace {

bool later(const Event& a, const Event& b) {
  return a.time != b.time ? a.time > b.time : a.order > b.order;
}

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
    case EventKind::kCut:
      return "partition";
    case EventKind::kHeal:
      return "heal";
    case EventKind::kSample:
      return "sample";
  }
  return "?";
}

void EventQueue::push(Event event) {
  event.order = next_order_++;
  heap_.push_back(event);
  std::push_heap(heap_.begin(), heap_.end(), later);
}

Event EventQueue::pop() {
  KITH_CHECK(!heap_.empty(), "the simulation has no event left to pop");
  std::pop_heap(heap_.begin(), heap_.end(), later);
  const Event event = heap_.back();
  heap_.pop_back();
  return event;
}

}  // namespace kith::sim
