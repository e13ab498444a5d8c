// `kithd --dry-run`: what a run with this configuration would take, before anything is started: the
// model's size, memory, bytes of one averaging, and the share of a network link at the speed that
// this machine's steps have. Reads the training files, makes the model and trains a handful of
// steps; writes and sends nothing. Thread: one.
#pragma once

#include <string>

#include "base/result.h"
#include "node/config/config.h"

namespace kith::node {

// Lines for people; the error of whatever is wrong with the configuration or its files.
Result<std::string> dry_run_report(const Config& config);

// The arithmetic: what the averagings of one node carry, one way. Each node proposes one averaging
// per `every_steps` steps and answers about one of others.
double averaging_bytes_per_second(double payload_bytes, double steps_per_second,
                                  double every_steps);

}  // namespace kith::node
