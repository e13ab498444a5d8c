#include "monitoring/history.h"

#include <algorithm>

#include "monitoring/json_text.h"

namespace kith::monitoring {
namespace {

constexpr const char* kFields =
    R"(["at","loss","loss_mean","loss_low","loss_high","accuracy","accuracy_mean","accuracy_low",)"
    R"("accuracy_high","accuracy_averaged","staleness_steps","consensus_distance","steps",)"
    R"("progress_samples","exchanges","exchanges_failed","bytes_sent","bytes_received",)"
    R"("members_alive"])";

// Samples are taken each second, but never exactly.
constexpr double kJitter = 0.5;

class CurveSum {
 public:
  void add(std::optional<double> value) {
    if (!value) return;
    sum_ += *value;
    ++count_;
    low_ = low_ ? std::min(*low_, *value) : value;
    high_ = high_ ? std::max(*high_, *value) : value;
  }
  [[nodiscard]] HistorySample::Curve curve(std::optional<double> own) const {
    if (count_ == 0) return {own, {}, {}, {}};
    return {own, sum_ / count_, low_, high_};
  }

 private:
  double sum_ = 0.0;
  int count_ = 0;
  std::optional<double> low_, high_;
};

void add_row(std::string& out, const HistorySample& s) {
  out += "[" + json_seconds(s.at);
  const auto number = [&](std::optional<double> value) { out += "," + json_number(value); };
  const auto count = [&](std::uint64_t value) { out += "," + json_count(value); };
  for (const HistorySample::Curve* curve : {&s.loss, &s.accuracy})
    for (const auto& value : {curve->own, curve->mean, curve->low, curve->high}) number(value);
  number(s.accuracy_averaged);
  number(s.staleness_steps);
  number(s.consensus_distance);
  for (const std::uint64_t value : {s.steps, s.progress_samples, s.exchanges, s.exchanges_failed,
                                    s.bytes_sent, s.bytes_received, s.members_alive})
    count(value);
  out += "]";
}

}  // namespace

std::uint64_t failed_exchanges(const NodeSnapshot& node) {
  std::uint64_t sum = 0;
  for (const ExchangeFailures& failure : node.failures)
    if (failure.role == "initiator") sum += failure.count;
  return sum;
}

HistorySample sample_of(const NodeSnapshot& node, double at) {
  HistorySample out;
  out.at = at;
  CurveSum loss, accuracy;
  for (const MemberSnapshot& member : node.members) {
    if (member.state != "alive") continue;
    ++out.members_alive;
    // Its own record is a moment old.
    const bool self = member.id == node.id;
    loss.add(self ? node.loss : member.loss);
    accuracy.add(self ? node.local.accuracy_ratio : member.accuracy_ratio);
  }
  out.loss = loss.curve(node.loss);
  out.accuracy = accuracy.curve(node.local.accuracy_ratio);
  out.accuracy_averaged = node.averaged.accuracy_ratio;
  out.staleness_steps = node.staleness_steps;
  out.consensus_distance = node.consensus_distance_relative;
  out.steps = node.steps;
  out.progress_samples = node.progress_samples;
  out.exchanges = node.exchanges_initiator + node.exchanges_responder;
  out.exchanges_failed = failed_exchanges(node);
  out.bytes_sent = node.control_bytes_sent + node.bulk_bytes_sent;
  out.bytes_received = node.control_bytes_received + node.bulk_bytes_received;
  return out;
}

void History::add(const HistorySample& sample) {
  latest_ = sample;
  if (!samples_.empty() && sample.at - samples_.back().at < step_ - kJitter) return;
  samples_.push_back(sample);
  if (samples_.size() <= rows_max_) return;
  if (step_max_ == 0.0 || step_ * 2 <= step_max_)
    thin();
  else
    samples_.pop_front();
}

void History::thin() {
  step_ *= 2;
  std::deque<HistorySample> kept;
  for (const HistorySample& sample : samples_)
    if (kept.empty() || sample.at - kept.back().at >= step_ - kJitter) kept.push_back(sample);
  samples_ = std::move(kept);
}

std::string History::json(double after, double step) const {
  if (step != step_) after = -1.0;
  // `after` has been rounded on its way through JSON.
  const auto first = std::ranges::find_if(
      samples_, [&](const HistorySample& sample) { return sample.at > after + kJitter / 2; });
  std::string out =
      R"({"step_seconds":)" + json_number(step_) + R"(,"fields":)" + kFields + R"(,"rows":[)";
  for (auto row = first; row != samples_.end(); ++row) {
    if (row != first) out += ",\n";
    add_row(out, *row);
  }
  out += R"(],"latest":)";
  if (latest_)
    add_row(out, *latest_);
  else
    out += "null";
  return out + "}";
}

}  // namespace kith::monitoring
