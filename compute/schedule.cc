#include "compute/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kith::compute {
namespace {

tl::unexpected<Error> refused(const std::string& key, const std::string& expected, double is) {
  return fail(ErrorCode::kUsage, key + " is " + std::to_string(is) + ": expected " + expected);
}

bool not_negative(double value) { return std::isfinite(value) && value >= 0.0; }

double stepped(const ScheduleSpec& spec, double after_warmup) {
  return spec.base * std::pow(spec.gamma, std::floor(after_warmup / spec.step_every));
}

double cosine(const ScheduleSpec& spec, double after_warmup) {
  const double t = std::clamp(after_warmup / (spec.total - spec.warmup), 0.0, 1.0);
  return spec.floor + (spec.base - spec.floor) * 0.5 * (1.0 + std::cos(std::numbers::pi * t));
}

}  // namespace

Status validate(const ScheduleSpec& spec) {
  if (spec.name != "constant" && spec.name != "step" && spec.name != "cosine") {
    return fail(ErrorCode::kUsage,
                "unknown schedule '" + spec.name + "': expected constant, step or cosine");
  }
  if (!std::isfinite(spec.base) || spec.base <= 0.0)
    return refused("learning_rate", "more than 0", spec.base);
  if (!not_negative(spec.warmup)) return refused("warm-up", "0 or more", spec.warmup);
  if (!not_negative(spec.total))
    return refused("length of the run", "0 (endless) or more", spec.total);
  if (spec.name == "step") {
    if (!std::isfinite(spec.step_every) || spec.step_every <= 0.0) {
      return refused("distance of the schedule's steps", "more than 0", spec.step_every);
    }
    if (!(spec.gamma > 0.0 && spec.gamma <= 1.0))
      return refused("gamma of the schedule", "above 0, at most 1", spec.gamma);
  }
  if (spec.name == "cosine") {
    if (spec.total <= 0.0) {
      return fail(ErrorCode::kUsage,
                  "schedule 'cosine' needs a run with an end: set epochs or steps");
    }
    if (spec.warmup >= spec.total)
      return refused("warm-up", "less than the length of the run", spec.warmup);
    if (!not_negative(spec.floor) || spec.floor > spec.base) {
      return refused("floor of the schedule", "between 0 and learning_rate", spec.floor);
    }
  }
  return {};
}

double learning_rate(const ScheduleSpec& spec, double progress_samples) {
  const double progress = std::max(progress_samples, 0.0);
  if (progress < spec.warmup) return spec.base * std::min(1.0, (progress + 1.0) / spec.warmup);
  if (spec.name == "step") return stepped(spec, progress - spec.warmup);
  if (spec.name == "cosine") return cosine(spec, progress - spec.warmup);
  return spec.base;
}

}  // namespace kith::compute
