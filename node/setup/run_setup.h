// From the configuration to what the other rooms take: the data, the model, the optimiser, the
// schedule, and what members must agree on. The daemon trains with it; `kithd --dry-run` and `kith
// doctor` make the same things to foretell and to compare. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>

#include "compute/data.h"
#include "compute/model.h"
#include "compute/schedule.h"
#include "gossip/method.h"
#include "node/config/config.h"
#include "schema/messages.h"

namespace kith::node {

compute::DataSpec data_spec(const Config& config);
compute::ModelSpec model_spec(const Config& config, const compute::LoadedData& data);
compute::OptimizerSpec optimizer_spec(const Config& config);
compute::ScheduleSpec schedule_spec(const Config& config, const compute::LoadedData& data);
gossip::MethodOverrides method_overrides(const Config& config);
// What every member must have alike, by the names of the keys.
schema::Facts run_facts(const Config& config, const gossip::Composition& composition,
                        const compute::LoadedData& data);
// First difference between two lists of facts as "run.seed: 7 here, 8 there", nullopt if they
// agree.
std::optional<std::string> first_difference(const schema::Facts& here, const schema::Facts& there);
// The [model] table as the final model's metadata have it.
std::string model_json(const Config& config, const compute::LoadedData& data);
// Nine significant digits: what facts are compared by.
std::string fact_text(double value);

}  // namespace kith::node
