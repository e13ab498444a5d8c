#include "monitoring/event_ring.h"

#include <algorithm>

#include "monitoring/json_text.h"

namespace kith::monitoring {
namespace {

std::string cut(std::string_view text) {
  return std::string(text.substr(0, EventRing::kTextBytesMax));
}

}  // namespace

void EventRing::log(LogLevel level, std::string_view component, std::string_view message,
                    std::initializer_list<LogField> fields) {
  onward_.log(level, component, message, fields);
  if (level < LogLevel::kInfo) return;
  Event event{0, 1, clock_.now(), level, std::string(kind_of_(component, message)), cut(message),
              {}};
  for (const LogField& field : fields) {
    if (event.fields.size() == kFieldsMax) break;
    event.fields.push_back({cut(field.key), cut(field.value)});
  }
  const std::lock_guard lock(mutex_);
  event.number = ++last_;
  if (!events_.empty() && repeats(event, events_.back())) {
    event.times = events_.back().times + 1;
    events_.pop_back();
  }
  events_.push_back(std::move(event));
  if (events_.size() > kEventsMax) events_.pop_front();
}

// A run evaluates and writes checkpoints all the time; that must not push out who died.
bool EventRing::repeats(const Event& event, const Event& before) {
  const bool names_somebody = std::ranges::any_of(event.fields, [](const LogField& field) {
    return field.key == "name" || field.key == "id" || field.key == "peer" ||
           field.key == "address";
  });
  return !names_somebody && event.kind == before.kind && event.text == before.text &&
         event.level == before.level;
}

std::string EventRing::json(std::uint64_t after) const {
  const std::lock_guard lock(mutex_);
  std::string out = R"({"last":)" + json_count(last_) + R"(,"events":[)";
  bool first = true;
  for (const Event& event : events_) {
    if (event.number <= after) continue;
    if (!first) out += ",\n";
    first = false;
    out += R"({"number":)" + json_count(event.number) + R"(,"at":)" +
           json_seconds(to_seconds(event.at.since_start)) + R"(,"level":)" +
           json_text(to_string(event.level)) + R"(,"kind":)" + json_text(event.kind) +
           R"(,"text":)" + json_text(event.text) + R"(,"times":)" + json_count(event.times) +
           R"(,"fields":{)";
    for (std::size_t i = 0; i < event.fields.size(); ++i)
      out += (i == 0 ? "" : ",") + json_text(event.fields[i].key) + ":" +
             json_text(event.fields[i].value);
    out += "}}";
  }
  return out + "]}";
}

}  // namespace kith::monitoring
