// How many cores this process may use: its CPU affinity and its control group's quota, not the
// machine's size. A thread pool sized by the machine makes several daemons on one host fight for
// the same cores.
#pragma once

#include "base/log.h"

namespace kith::compute {

// At least 1. Read at each call (cheap); any thread.
unsigned allowed_cores();
// `wanted` threads, but at least 1 and at most allowed_cores(); says so in one line when it had to
// lower the number.
unsigned clamp_threads(unsigned wanted, LogSink& log);
// Parses a control group's "cpu.max" ("max 100000", "150000 100000"): cores rounded up, 0 = no
// limit.
unsigned cores_of_quota(std::string_view cpu_max);

}  // namespace kith::compute
