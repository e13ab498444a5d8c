#include "node/mesh/mesh_schedule.h"

#include <sched.h>

namespace kith::node {
namespace {

bool change(int from, int to) {
  const sched_param none{};
  return sched_getscheduler(0) == from && sched_setscheduler(0, to, &none) == 0;
}

}  // namespace

void prefer_throughput() { change(SCHED_OTHER, SCHED_BATCH); }

ThroughputScope::ThroughputScope() : changed_(change(SCHED_OTHER, SCHED_BATCH)) {}
ThroughputScope::~ThroughputScope() {
  if (changed_) change(SCHED_BATCH, SCHED_OTHER);
}

}  // namespace kith::node
