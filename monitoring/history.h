// History: the figures of a node over time, for the curves of the page. Bounded whatever happens:
// at most `rows_max` samples. When they are full, those closer together than twice the step are
// dropped, until the step is `step_max`; from then on the oldest goes. So a short run has a sample
// each second, 900 samples at steps of 4 s cover an hour, and without a longest step any run fits.
// Counters are kept as they are, since rates taken from any two of them are right, whatever was
// dropped in between.
// Thread: one owner (Journal guards it). Units: seconds on the node's monotonic clock.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "monitoring/snapshot.h"

namespace kith::monitoring {

struct HistorySample {
  double at = 0.0;
  // This node's own, and what members last said of theirs (alive ones, this one included).
  struct Curve {
    std::optional<double> own, mean, low, high;
  };
  Curve loss, accuracy;
  std::optional<double> accuracy_averaged;  // of the cluster's final model
  std::optional<double> staleness_steps, consensus_distance;
  std::uint64_t steps = 0, progress_samples = 0;
  std::uint64_t exchanges = 0, exchanges_failed = 0;
  std::uint64_t bytes_sent = 0, bytes_received = 0;
  std::uint64_t members_alive = 0;
};

HistorySample sample_of(const NodeSnapshot& node, double at);
std::uint64_t failed_exchanges(const NodeSnapshot& node);

class History {
 public:
  static constexpr std::size_t kRowsMax = 900;
  static constexpr double kHourStep = 4.0;  // kRowsMax of them are an hour

  // `step_max` 0: none, for a whole run.
  explicit History(double step_max, std::size_t rows_max = kRowsMax)
      : step_max_(step_max), rows_max_(rows_max) {}

  void add(const HistorySample& sample);

  // {"step_seconds": 2, "fields": [...], "rows": [[...], ...], "latest": [...]}: rows after
  // `after`; all of them if `step` is not the step any more, since then older ones are gone.
  // `latest` is the newest sample, kept or not.
  [[nodiscard]] std::string json(double after = -1.0, double step = 0.0) const;

  [[nodiscard]] const std::deque<HistorySample>& samples() const { return samples_; }
  [[nodiscard]] double step() const { return step_; }

 private:
  void thin();

  const double step_max_;
  const std::size_t rows_max_;
  double step_ = 1.0;
  std::deque<HistorySample> samples_;
  std::optional<HistorySample> latest_;
};

}  // namespace kith::monitoring
