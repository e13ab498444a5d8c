// EventRing: the newest lines of a node's log, for the page. It is a log sink in front of the real
// one: everything goes on to that, and what people care about (info and above) is kept here too. So
// the page says the same as the log, and whoever logs need not know of the page. Bounded:
// kEventsMax lines of bounded length; a line that says the same again, of nobody in particular,
// takes the place of the one before. Thread: any.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"

namespace kith::monitoring {

class EventRing final : public LogSink {
 public:
  static constexpr std::size_t kEventsMax = 200;
  static constexpr std::size_t kTextBytesMax = 400;  // of a message, and of each of its values
  static constexpr std::size_t kFieldsMax = 8;

  // A word for what a line is about ("joined", "dead", "checkpoint", ...); "" for anything else.
  using KindOf =
      std::function<std::string_view(std::string_view component, std::string_view message)>;

  EventRing(const Clock& clock, LogSink& onward, KindOf kind_of)
      : clock_(clock), onward_(onward), kind_of_(std::move(kind_of)) {}

  void log(LogLevel level, std::string_view component, std::string_view message,
           std::initializer_list<LogField> fields = {}) override;

  // {"last": 17, "events": [{"number", "at", "level", "kind", "text", "times", "fields"}]}, those
  // above `after`, oldest first. `at` is on the monotonic clock.
  [[nodiscard]] std::string json(std::uint64_t after = 0) const;

 private:
  struct Event {
    std::uint64_t number = 0, times = 1;
    TimePoint at;
    LogLevel level = LogLevel::kInfo;
    std::string kind, text;
    std::vector<LogField> fields;
  };

  [[nodiscard]] static bool repeats(const Event& event, const Event& before);

  const Clock& clock_;
  LogSink& onward_;
  const KindOf kind_of_;
  mutable std::mutex mutex_;
  std::deque<Event> events_;  // guarded by mutex_
  std::uint64_t last_ = 0;    // likewise
};

}  // namespace kith::monitoring
