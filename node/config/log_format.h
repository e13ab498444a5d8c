// The log lines of kith's programs, on stderr: for people (text), for log systems (logfmt) and for
// machines (json).
//
//   text     12:03:04.512 info  exchange   completed  peer=3f2a91c0 distance=0.01
//   logfmt   ts=2024-05-06T12:03:04.512Z level=info component=exchange msg=completed peer=3f2a91c0
//   json     {"ts":"2024-05-06T12:03:04.512Z","level":"info","component":"exchange",
//             "msg":"completed","peer":"3f2a91c0"}   (on one line)
//
// Times are UTC. A line is one write of at most 4096 bytes (longer ones are cut), so that lines of
// several processes never mix. Writing never blocks, throws or raises SIGPIPE: when stderr is
// closed, full or a pipe that nobody reads, the line is dropped and counted, and the next one that
// gets through is preceded by how many were lost. Thread: any; lines are written in the order in
// which their log() calls got the lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"

namespace kith::node {

enum class LogFormat { kText, kLogfmt, kJson };
Result<LogFormat> parse_log_format(std::string_view name);
Result<LogLevel> parse_log_level(std::string_view name);

struct LogSettings {
  LogFormat format = LogFormat::kText;
  LogLevel level = LogLevel::kInfo;
  int fd = 2;
  bool colour = false;  // text only
};
// Colour when fd is a terminal and NO_COLOR is not set (or empty).
LogSettings log_settings(LogFormat format, LogLevel level, int fd = 2);

// One line without its end, as it would be written. For tests and for programs that log elsewhere.
std::string format_log_line(LogFormat format, double wall_seconds, LogLevel level,
                            std::string_view component, std::string_view message,
                            std::initializer_list<LogField> fields);

class FormatLog final : public LogSink {
 public:
  explicit FormatLog(LogSettings settings, const Clock* clock = nullptr);  // null: the wall clock
  ~FormatLog() override;
  void log(LogLevel level, std::string_view component, std::string_view message,
           std::initializer_list<LogField> fields = {}) override;
  // From the next line on.
  void set_level(LogLevel level);
  // Lines that could not be written since construction.
  [[nodiscard]] std::uint64_t lost() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kith::node
