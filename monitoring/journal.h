// Journal: what a node shows of its past: curves, events, exchanges by peer. Everything in it is
// bounded, and it is all in memory: a restart begins a new one.
// Thread: any. Units: seconds on the node's monotonic clock, which JSON calls `at`.
#pragma once

#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "monitoring/event_ring.h"
#include "monitoring/exchange_pairs.h"
#include "monitoring/history.h"

namespace kith::monitoring {

class Journal {
 public:
  // Both outlive it. Whoever logs to events() logs to `onward` as well.
  Journal(const Clock& clock, LogSink& onward, EventRing::KindOf kind_of);

  [[nodiscard]] LogSink& events() { return events_; }
  void record(const NodeSnapshot& node);  // about once a second
  void exchange_started(const NodeId& peer, std::uint64_t staleness_steps);
  void exchange_answered(const NodeId& peer);
  void exchange_failed(const NodeId& peer);

  // Tells one life of a node from another: what a page has kept of the one before is worthless.
  [[nodiscard]] const std::string& boot() const { return boot_; }
  // span: "hour" or "run"; anything else is an hour.
  [[nodiscard]] std::string history_json(const std::string& span, double after = -1.0,
                                         double step = 0.0) const;
  [[nodiscard]] std::string events_json(std::uint64_t after = 0) const {
    return events_.json(after);
  }
  // By full id in hexadecimal.
  [[nodiscard]] std::map<std::string, PairCounts> pairs() const;
  // {"exchanges": [{"id", "name", "started", "answered", "failed", "staleness_steps", "at"}]}
  [[nodiscard]] std::string exchanges_json(const NodeSnapshot& node) const;

 private:
  [[nodiscard]] double now() const { return to_seconds(clock_.now().since_start); }

  const Clock& clock_;
  const std::string boot_;
  EventRing events_;
  mutable std::mutex mutex_;  // guards what follows
  History hour_{History::kHourStep};
  History run_{0.0};
  ExchangePairs pairs_;
};

// Mean over the exchanges that this node started.
std::optional<double> mean_staleness(const PairCounts& counts);

}  // namespace kith::monitoring
