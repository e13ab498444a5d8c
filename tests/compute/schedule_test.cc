#include "compute/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace kith::compute {
namespace {

TEST(Schedules, FollowTheirTables) {
  const ScheduleSpec constant{.name = "constant", .base = 0.1};
  const ScheduleSpec warm{.name = "constant", .base = 0.1, .warmup = 100};
  const ScheduleSpec step{.name = "step", .base = 0.1, .step_every = 1000, .gamma = 0.1};
  const ScheduleSpec warm_step{
      .name = "step", .base = 0.1, .warmup = 100, .step_every = 1000, .gamma = 0.5};
  const ScheduleSpec cosine{.name = "cosine", .base = 0.1, .total = 1000};
  const ScheduleSpec warm_cosine{
      .name = "cosine", .base = 0.1, .warmup = 100, .total = 1100, .floor = 0.02};
  const struct {
    const ScheduleSpec& spec;
    double progress, rate;
  } kTable[] = {
      {constant, 0, 0.1},       {constant, 1e12, 0.1},    {constant, -5, 0.1},
      {warm, 0, 0.001},         {warm, 49, 0.05},         {warm, 99, 0.1},
      {warm, 100, 0.1},         {warm, 5000, 0.1},        {step, 0, 0.1},
      {step, 999, 0.1},         {step, 1000, 0.01},       {step, 2500, 0.001},
      {warm_step, 1099, 0.1},   {warm_step, 1100, 0.05},  {warm_step, 2100, 0.025},
      {cosine, 0, 0.1},         {cosine, 500, 0.05},      {cosine, 250, 0.0853553},
      {cosine, 1000, 0.0},      {cosine, 9999, 0.0},      {warm_cosine, 49, 0.05},
      {warm_cosine, 100, 0.1},  {warm_cosine, 600, 0.06}, {warm_cosine, 1100, 0.02},
      {warm_cosine, 1e9, 0.02},
  };
  for (const auto& row : kTable) {
    ASSERT_TRUE(validate(row.spec));
    EXPECT_NEAR(learning_rate(row.spec, row.progress), row.rate, 1e-7)
        << row.spec.name << " at " << row.progress;
  }
}

TEST(Schedules, WarmUpNeverStartsAtZero) {
  const ScheduleSpec spec{.base = 0.1, .warmup = 1e9};
  EXPECT_GT(learning_rate(spec, 0), 0.0);
}

TEST(Schedules, SettingsThatMakeNoSenseAreUsageErrors) {
  const ScheduleSpec kTable[] = {
      {.name = "cosin"},
      {.base = 0.0},
      {.base = -1.0},
      {.base = std::nan("")},
      {.warmup = -1},
      {.total = -1},
      {.name = "cosine"},
      {.name = "cosine", .warmup = 10, .total = 10},
      {.name = "cosine", .base = 0.1, .total = 10, .floor = 0.2},
      {.name = "step"},
      {.name = "step", .step_every = 10, .gamma = 0.0},
      {.name = "step", .step_every = 10, .gamma = 1.5},
  };
  for (const auto& spec : kTable) {
    const auto status = validate(spec);
    ASSERT_FALSE(status) << spec.name;
    EXPECT_EQ(status.error().code, ErrorCode::kUsage);
  }
}

}  // namespace
}  // namespace kith::compute
