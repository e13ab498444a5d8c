// Time comes in through constructors, never from a global. All of kith's protocol time is monotonic; wall
// time exists only for file names, logs and metrics stamps.
#pragma once

#include <chrono>
#include <cstdint>

namespace kith {

using Duration = std::chrono::nanoseconds;

// A point on the monotonic clock of this process (or of the simulation). Only differences have meaning.
struct TimePoint {
  Duration since_start{0};
  auto operator<=>(const TimePoint&) const = default;
  TimePoint operator+(Duration d) const { return {since_start + d}; }
  TimePoint operator-(Duration d) const { return {since_start - d}; }
  Duration operator-(TimePoint other) const { return since_start - other.since_start; }
  static constexpr TimePoint max() { return {Duration::max()}; }
};

inline double to_seconds(Duration d) { return std::chrono::duration<double>(d).count(); }
inline Duration from_seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// Any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual TimePoint now() const = 0;
  [[nodiscard]] virtual double wall_seconds() const = 0;  // seconds since 1970, for people only
};

// CLOCK_MONOTONIC and CLOCK_REALTIME.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override;
  [[nodiscard]] double wall_seconds() const override;
};

// A clock that stands still until it is told to move: tests and the simulator.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return now_; }
  [[nodiscard]] double wall_seconds() const override { return to_seconds(now_.since_start); }
  void advance(Duration d) { now_ = now_ + d; }
  void set(TimePoint t) { now_ = t; }

 private:
  TimePoint now_;
};

}  // namespace kith
