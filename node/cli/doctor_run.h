// What the doctor compares once a node has said what it trains: version, cluster, run, model,
// facts. Of a configuration without a file only what is set is compared; a
// file is compared with its defaults, as kithd would start with it. Reads the training data to know
// the model. Thread: any.
#pragma once

#include <vector>

#include "node/cli/doctor.h"
#include "schema/messages.h"

namespace kith::node {

void compare_run(const Config& config, const schema::Welcome& welcome,
                 std::vector<DoctorCheck>& checks);

}  // namespace kith::node
