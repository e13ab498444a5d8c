// Exposition: collects the families of one scrape and writes them as Prometheus text through
// prometheus-cpp's serialiser. Built anew for each scrape, so a series that is not added is gone.
// What must outlive a scrape has objects of its own: CounterCarry keeps counters from falling,
// MemberSeries knows whose series still linger. Thread: one owner (Metrics holds its lock
// meanwhile).
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "monitoring/snapshot.h"

namespace kith::monitoring {

using Labels = std::vector<std::pair<std::string, std::string>>;

// At most `bytes_max` bytes of text, cut at a character, broken UTF-8 replaced by '?'; control
// characters too.
std::string clean_label(std::string_view text, std::size_t bytes_max = 64);

// Turns counts that may start again (a component made anew) into counts that never fall: what a
// series had reached before it fell is carried on.
class CounterCarry {
 public:
  double value(const std::string& series, double raw);

 private:
  struct Seen {
    double last = 0.0;
    double carried = 0.0;
  };
  std::map<std::string, Seen> seen_;
};

// Which members have series of their own at a moment: others than this node, alive and suspect
// ones, and those that left, died or vanished less than kSeriesLinger ago (with their last known
// values); at most kMemberSeriesMax.
class MemberSeries {
 public:
  std::vector<MemberSnapshot> update(TimePoint now, const std::string& self_id,
                                     const std::vector<MemberSnapshot>& members);

 private:
  struct Known {
    MemberSnapshot member;
    TimePoint last_live;
  };
  std::map<std::string, Known> known_;  // by id
};

class Exposition {
 public:
  explicit Exposition(CounterCarry& carry) : carry_(carry) {}

  void gauge(const char* name, const char* help, double value, const Labels& labels = {});
  void gauge(const char* name, const char* help, const std::optional<double>& value,
             const Labels& labels = {});
  void counter(const char* name, const char* help, double value, const Labels& labels = {});
  void counter(const char* name, const char* help, std::uint64_t value, const Labels& labels = {});
  void counter(const char* name, const char* help, const std::optional<double>& value,
               const Labels& labels = {});
  void histogram(const char* name, const char* help, prometheus::ClientMetric collected);

  [[nodiscard]] std::string text() const;

 private:
  prometheus::MetricFamily& family(const char* name, const char* help, prometheus::MetricType type);

  CounterCarry& carry_;
  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace kith::monitoring
