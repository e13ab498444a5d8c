// What the doctor compares once a node has said what it trains: version, cluster, run, model,
// facts. Only what this side's configuration sets is compared. Reads the training data to know the
// model. Thread: any.
#pragma once

#include <vector>

#include "node/cli/doctor.h"
#include "schema/messages.h"

namespace kith::node {

void compare_run(const Config& config, const schema::Welcome& welcome,
                 std::vector<DoctorCheck>& checks);

}  // namespace kith::node
