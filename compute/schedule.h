// Learning-rate schedules as pure functions of the cluster's progress, so a joiner needs no
// position of its own.
#pragma once

#include <cstdint>
#include <string>

#include "base/ids.h"
#include "base/result.h"

namespace kith::compute {

struct ScheduleSpec {
  std::string name = "constant";  // constant | step | cosine
  double base = 0.05;             // learning rate after warm-up
  double warmup = 0.0;  // fraction or steps, already converted to samples of cluster progress
  double total = 0.0;  // samples of the whole run; 0 = endless (cosine then needs a length: kUsage)
  double step_every = 0.0;  // step: multiply by `gamma` every so many samples of progress
  double gamma = 0.1;
  double floor = 0.0;  // cosine ends here
};
Status validate(const ScheduleSpec& spec);
// Linear from 0 (excluded) to base during warm-up; then the named shape over the rest.
double learning_rate(const ScheduleSpec& spec, double progress_samples);

}  // namespace kith::compute
