#include "monitoring/journal.h"

#include "monitoring/json_text.h"

namespace kith::monitoring {

std::optional<double> mean_staleness(const PairCounts& counts) {
  if (counts.started == 0) return {};
  return static_cast<double>(counts.staleness_steps_sum) / static_cast<double>(counts.started);
}

Journal::Journal(const Clock& clock, LogSink& onward, EventRing::KindOf kind_of)
    : clock_(clock),
      boot_(std::to_string(static_cast<std::int64_t>(clock.wall_seconds() * 1e3))),
      events_(clock, onward, std::move(kind_of)) {}

void Journal::record(const NodeSnapshot& node) {
  const HistorySample sample = sample_of(node, now());
  const std::lock_guard lock(mutex_);
  hour_.add(sample);
  run_.add(sample);
}

void Journal::exchange_started(const NodeId& peer, std::uint64_t staleness_steps) {
  const std::lock_guard lock(mutex_);
  pairs_.started(peer, staleness_steps, now());
}

void Journal::exchange_answered(const NodeId& peer) {
  const std::lock_guard lock(mutex_);
  pairs_.answered(peer, now());
}

void Journal::exchange_failed(const NodeId& peer) {
  const std::lock_guard lock(mutex_);
  pairs_.failed(peer, now());
}

std::string Journal::history_json(const std::string& span, double after, double step) const {
  const std::lock_guard lock(mutex_);
  return (span == "run" ? run_ : hour_).json(after, step);
}

std::map<std::string, PairCounts> Journal::pairs() const {
  std::map<std::string, PairCounts> out;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, counts] : pairs_.counts()) out.emplace(id.hex(), counts);
  return out;
}

std::string Journal::exchanges_json(const NodeSnapshot& node) const {
  std::map<std::string, std::string> names;
  for (const MemberSnapshot& member : node.members) names[member.id] = member.name;
  std::string out = R"({"now":)" + json_seconds(now()) + R"(,"exchanges":[)";
  bool first = true;
  for (const auto& [id, counts] : pairs()) {
    out += (first ? "" : ",\n") + (R"({"id":)" + json_text(id)) + R"(,"name":)" +
           json_text(names[id]) + R"(,"started":)" + json_count(counts.started) +
           R"(,"answered":)" + json_count(counts.answered) + R"(,"failed":)" +
           json_count(counts.failed) + R"(,"staleness_steps":)" +
           json_number(mean_staleness(counts)) + R"(,"at":)" + json_seconds(counts.last_at) + "}";
    first = false;
  }
  return out + "]}";
}

}  // namespace kith::monitoring
