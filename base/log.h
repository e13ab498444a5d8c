// LogSink: where components say what happened. One line per change of state, never one per retry.
// Components get a sink through their constructor; the formats (text, logfmt, JSON) are the node's matter.
// Thread: log() may be called from any thread. Errors: a sink that cannot write drops the line and counts it.
#pragma once

#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kith {

enum class LogLevel { kTrace, kDebug, kInfo, kWarn, kError };
std::string_view to_string(LogLevel level);

struct LogField {
  std::string key;
  std::string value;
};

class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void log(LogLevel level, std::string_view component, std::string_view message,
                   std::initializer_list<LogField> fields = {}) = 0;
};

class NullLog final : public LogSink {
 public:
  void log(LogLevel, std::string_view, std::string_view, std::initializer_list<LogField>) override {}
};

// Keeps lines for tests: "level component: message key=value".
class MemoryLog final : public LogSink {
 public:
  void log(LogLevel level, std::string_view component, std::string_view message,
           std::initializer_list<LogField> fields) override;
  [[nodiscard]] std::vector<std::string> lines() const;  // a copy
  [[nodiscard]] bool contains(std::string_view text) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;  // guarded by mutex_
};

}  // namespace kith
