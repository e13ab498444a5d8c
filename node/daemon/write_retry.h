// WriteRetry: when a file that could not be written is tried again: 1 s after the first failure,
// each time after twice as long, at most a minute, and once more at the end. The end is `patience`
// after the first failure. Short pauses at first, since room is often made at once by whoever
// filled the disk; long ones later, since a try writes as much as there is room for. Pure; one
// owner.
#pragma once

#include <optional>

#include "base/clock.h"

namespace kith::node {

class WriteRetry {
 public:
  explicit WriteRetry(Duration patience) : patience_(patience) {}

  void failed(TimePoint now);
  void reset() { *this = WriteRetry(patience_); }  // it was written, or is not wanted any more

  [[nodiscard]] bool failing() const { return first_.has_value(); }
  [[nodiscard]] bool due(TimePoint now) const { return failing() && !over_ && now >= next_; }
  [[nodiscard]] bool over() const { return over_; }  // the try at the end has failed too
  [[nodiscard]] TimePoint next() const { return next_; }
  [[nodiscard]] TimePoint end() const { return first_.value_or(TimePoint{}) + patience_; }

 private:
  Duration patience_;
  Duration pause_{0};
  std::optional<TimePoint> first_;  // failure
  TimePoint next_;
  bool over_ = false;
};

}  // namespace kith::node
