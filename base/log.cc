#include "base/log.h"

#include <algorithm>

namespace kith {

std::string_view to_string(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return "trace";
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarn:
      return "warn";
    case LogLevel::kError:
      return "error";
  }
  return "unknown";
}

void MemoryLog::log(LogLevel level, std::string_view component, std::string_view message,
                    std::initializer_list<LogField> fields) {
  std::string line(to_string(level));
  line.append(" ").append(component).append(": ").append(message);
  for (const LogField& field : fields)
    line.append(" ").append(field.key).append("=").append(field.value);
  const std::lock_guard lock(mutex_);
  lines_.push_back(std::move(line));
}

std::vector<std::string> MemoryLog::lines() const {
  const std::lock_guard lock(mutex_);
  return lines_;
}

bool MemoryLog::contains(std::string_view text) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(lines_.begin(), lines_.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

}  // namespace kith
