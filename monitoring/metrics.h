// Metrics: a NodeSnapshot in Prometheus' text format, version 0.0.4, under the prefix kith_ (and
// process_ for the process itself). Names, labels and help texts are all in metrics.cc; they follow
// Prometheus' naming rules: base units, _total on counters, timestamps instead of ages, no
// unbounded labels.
//
// Contract: an exported counter never falls while the process lives, even when the component that
// counts was made anew (its earlier counts are carried). Series of a member go kSeriesLinger after
// it left, died or was forgotten, and when it is renamed its old name goes at once. Names of
// members come from other machines: they are cut to 64 bytes and made valid UTF-8. Numbers have a
// decimal point in every locale.
//
// Thread: all calls from any thread. observe_*() takes one short lock of its own, so that a scrape
// never delays it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "monitoring/gpu_stats.h"
#include "monitoring/snapshot.h"

namespace kith::monitoring {

inline constexpr Duration kSeriesLinger = std::chrono::minutes(5);
// Members beyond this many have no series of their own (kith_members still counts them): a scrape
// stays small.
inline constexpr std::size_t kMemberSeriesMax = 256;

class Metrics {
 public:
  // The clock outlives the object. Without `gpus` there are no kith_gpu_*.
  explicit Metrics(const Clock& clock, std::unique_ptr<GpuStats> gpus = nullptr);
  ~Metrics();

  // One optimiser step, without the time that min_step_ms adds.
  void observe_step(double seconds);
  // One exchange that this node proposed and that ended in averaging.
  void observe_exchange(double seconds, std::uint64_t staleness_steps);

  [[nodiscard]] std::string render(const NodeSnapshot& snapshot);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kith::monitoring
