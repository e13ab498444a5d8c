#include "monitoring/exposition.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <sstream>

#include "monitoring/metrics.h"

namespace kith::monitoring {
namespace {

// Length of the valid UTF-8 sequence at the head of `text`, 0 if it is not one (also overlong forms
// and surrogates).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  const bool out_of_range = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                            (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  return out_of_range ? 0 : length;
}

prometheus::ClientMetric with_labels(const Labels& labels) {
  prometheus::ClientMetric metric;
  for (const auto& [name, value] : labels) metric.label.push_back({name, clean_label(value)});
  return metric;
}

std::string series_key(const char* name, const prometheus::ClientMetric& metric) {
  std::string key = name;
  for (const auto& label : metric.label) key += '\n' + label.name + '=' + label.value;
  return key;
}

}  // namespace

std::string clean_label(std::string_view text, std::size_t bytes_max) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const bool printable = length > 1 || (length == 1 && text[0] >= 0x20 && text[0] != 0x7F);
    if (out.size() + std::max<std::size_t>(length, 1) > bytes_max) break;
    if (printable) {
      out += text.substr(0, length);
    } else {
      out += '?';
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

double CounterCarry::value(const std::string& series, double raw) {
  Seen& seen = seen_[series];
  if (raw < seen.last) seen.carried += seen.last;
  seen.last = raw;
  return seen.carried + raw;
}

std::vector<MemberSnapshot> MemberSeries::update(TimePoint now, const std::string& self_id,
                                                 const std::vector<MemberSnapshot>& members) {
  for (const MemberSnapshot& m : members) {
    if (m.id == self_id) continue;
    const bool live = m.state == "alive" || m.state == "suspect";
    const auto known = known_.find(m.id);
    if (known == known_.end() && (!live || known_.size() >= kMemberSeriesMax)) continue;
    Known& entry = known == known_.end() ? known_[m.id] : known->second;
    entry.member = m;
    if (live) entry.last_live = now;
  }
  std::erase_if(known_,
                [&](const auto& item) { return now - item.second.last_live >= kSeriesLinger; });
  std::vector<MemberSnapshot> out;
  for (const auto& [id, entry] : known_) out.push_back(entry.member);
  return out;
}

prometheus::MetricFamily& Exposition::family(const char* name, const char* help,
                                             prometheus::MetricType type) {
  const auto known = std::ranges::find(families_, name, &prometheus::MetricFamily::name);
  if (known != families_.end()) return *known;
  families_.push_back({name, help, type, {}});
  return families_.back();
}

void Exposition::gauge(const char* name, const char* help, double value, const Labels& labels) {
  prometheus::ClientMetric metric = with_labels(labels);
  metric.gauge.value = value;
  family(name, help, prometheus::MetricType::Gauge).metric.push_back(std::move(metric));
}

void Exposition::gauge(const char* name, const char* help, const std::optional<double>& value,
                       const Labels& labels) {
  if (value) gauge(name, help, *value, labels);
}

void Exposition::counter(const char* name, const char* help, double value, const Labels& labels) {
  prometheus::ClientMetric metric = with_labels(labels);
  metric.counter.value = carry_.value(series_key(name, metric), value);
  family(name, help, prometheus::MetricType::Counter).metric.push_back(std::move(metric));
}

void Exposition::counter(const char* name, const char* help, std::uint64_t value,
                         const Labels& labels) {
  counter(name, help, static_cast<double>(value), labels);
}

void Exposition::counter(const char* name, const char* help, const std::optional<double>& value,
                         const Labels& labels) {
  if (value) counter(name, help, *value, labels);
}

void Exposition::histogram(const char* name, const char* help, prometheus::ClientMetric collected) {
  family(name, help, prometheus::MetricType::Histogram).metric.push_back(std::move(collected));
}

// The serialiser sets the classic locale itself: numbers have a point everywhere.
std::string Exposition::text() const {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families_);
  return std::move(out).str();
}

}  // namespace kith::monitoring
