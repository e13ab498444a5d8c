#include "node/config/log_format.h"

#include <spdlog/common.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>

#include "node/config/config_value.h"
#include "node/config/log_writer.h"
#include "node/text/text.h"

namespace kith::node {
namespace {

constexpr LogLevel kLevels[] = {LogLevel::kTrace, LogLevel::kDebug, LogLevel::kInfo,
                                LogLevel::kWarn, LogLevel::kError};

// kith's levels and the first five of spdlog are the same in number and order.
LogLevel our_level(spdlog::level::level_enum level) { return static_cast<LogLevel>(level); }
spdlog::level::level_enum spdlog_level(LogLevel level) {
  return static_cast<spdlog::level::level_enum>(level);
}

void append(spdlog::memory_buf_t& to, std::string_view text) {
  to.append(text.data(), text.data() + text.size());
}

// The level by kith's name ("warn", not "warning"), padded to five characters for people.
class LevelFlag final : public spdlog::custom_flag_formatter {
 public:
  explicit LevelFlag(bool padded) : padded_(padded) {}
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& to) override {
    std::string name(to_string(our_level(message.level)));
    if (padded_) name.resize(5, ' ');
    append(to, name);
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<LevelFlag>(padded_);
  }

 private:
  bool padded_;
};

std::unique_ptr<spdlog::pattern_formatter> make_formatter(LogFormat format) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc, "");
  formatter->add_flag<LevelFlag>('*', format == LogFormat::kText);
  switch (format) {
    case LogFormat::kText:
      formatter->set_pattern("%H:%M:%S.%e %^%*%$ %v");
      break;
    case LogFormat::kLogfmt:
      formatter->set_pattern("ts=%Y-%m-%dT%H:%M:%S.%eZ level=%* %v");
      break;
    case LogFormat::kJson:
      formatter->set_pattern(R"({"ts":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%*",%v})");
      break;
  }
  return formatter;
}

bool is_plain(char c) { return c != ' ' && c != '"' && c != '=' && c != '\\'; }

bool has_controls(std::string_view text) {
  while (!text.empty() && control_bytes(text) == 0) text.remove_prefix(1);
  return !text.empty();
}

// A value as it is when no reader could mistake it, quoted otherwise: no line break or escape code
// gets into a log.
std::string logfmt_value(std::string_view text) {
  const bool plain = !text.empty() && std::ranges::all_of(text, is_plain) && !has_controls(text);
  return plain ? std::string(text) : in_quotes(text);
}

std::string readable(std::string_view text) {
  return has_controls(text) ? in_quotes(text) : std::string(text);
}

using Fields = std::initializer_list<LogField>;

std::string text_payload(std::string_view component, std::string_view message, Fields fields) {
  std::string line = readable(component);
  line.resize(std::max<std::size_t>(line.size(), 10), ' ');
  line += " " + readable(message);
  for (const LogField& f : fields) line += "  " + readable(f.key) + "=" + logfmt_value(f.value);
  return line;
}

std::string logfmt_payload(std::string_view component, std::string_view message, Fields fields) {
  std::string line = "component=" + logfmt_value(component) + " msg=" + logfmt_value(message);
  for (const LogField& f : fields) line += " " + logfmt_value(f.key) + "=" + logfmt_value(f.value);
  return line;
}

// Fields that would make the line too long to be written whole are left out: a cut line would not
// be JSON.
std::string json_payload(std::string_view component, std::string_view message, Fields fields) {
  constexpr std::size_t kRoom = 3900;
  constexpr std::size_t kMessageMax = 1024;
  using Json = nlohmann::ordered_json;
  const auto dumped = [](const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  Json json = {{"component", component.substr(0, kMessageMax)},
               {"msg", message.substr(0, kMessageMax)}};
  std::string text = dumped(json);
  for (const LogField& f : fields) {
    json[f.key] = f.value;
    std::string longer = dumped(json);
    if (longer.size() > kRoom) break;
    text = std::move(longer);
  }
  return text.substr(1, text.size() - 2);
}

std::string payload(LogFormat format, std::string_view component, std::string_view message,
                    Fields fields) {
  if (format == LogFormat::kText) return text_payload(component, message, fields);
  if (format == LogFormat::kLogfmt) return logfmt_payload(component, message, fields);
  return json_payload(component, message, fields);
}

spdlog::log_clock::time_point time_of(double wall_seconds) {
  return spdlog::log_clock::time_point(std::chrono::duration_cast<spdlog::log_clock::duration>(
      std::chrono::duration<double>(wall_seconds)));
}

struct LineTime {
  double wall_seconds = 0;
  LogLevel level = LogLevel::kInfo;
};

std::string format_with(spdlog::pattern_formatter& formatter, LineTime time, std::string_view text,
                        bool colour) {
  const spdlog::details::log_msg message(time_of(time.wall_seconds), spdlog::source_loc{}, "",
                                         spdlog_level(time.level), {text.data(), text.size()});
  spdlog::memory_buf_t buffer;
  formatter.format(message, buffer);
  std::string line(buffer.data(), buffer.size());
  constexpr std::array<std::string_view, 5> kColours = {"\x1b[90m", "\x1b[36m", "\x1b[32m",
                                                        "\x1b[33m", "\x1b[31m"};
  if (colour && message.color_range_end > message.color_range_start) {
    line.insert(message.color_range_end, "\x1b[0m");
    line.insert(message.color_range_start, kColours[static_cast<std::size_t>(time.level)]);
  }
  return line;
}

}  // namespace

Result<LogFormat> parse_log_format(std::string_view name) {
  if (name == "text") return LogFormat::kText;
  if (name == "logfmt") return LogFormat::kLogfmt;
  if (name == "json") return LogFormat::kJson;
  return fail(ErrorCode::kUsage,
              "log format: expected one of text | logfmt | json, got " + in_quotes(name));
}

Result<LogLevel> parse_log_level(std::string_view name) {
  for (const LogLevel level : kLevels)
    if (to_string(level) == name) return level;
  return fail(
      ErrorCode::kUsage,
      "log level: expected one of trace | debug | info | warn | error, got " + in_quotes(name));
}

LogSettings log_settings(LogFormat format, LogLevel level, int fd) {
  const char* no_colour = std::getenv("NO_COLOR");
  const bool wanted = no_colour == nullptr || *no_colour == '\0';
  return {format, level, fd, format == LogFormat::kText && wanted && ::isatty(fd) == 1};
}

std::string format_log_line(LogFormat format, double wall_seconds, LogLevel level,
                            std::string_view component, std::string_view message, Fields fields) {
  const auto formatter = make_formatter(format);
  return format_with(*formatter, {wall_seconds, level}, payload(format, component, message, fields),
                     false);
}

struct FormatLog::Impl {
  LogSettings settings;
  std::atomic<LogLevel> level;
  const Clock* clock = nullptr;
  SystemClock system_clock;
  mutable std::mutex mutex;
  std::unique_ptr<spdlog::pattern_formatter> formatter;  // guarded by mutex, as is writer
  LogWriter writer;

  Impl(LogSettings s, const Clock* c)
      : settings(s), level(s.level), clock(c), formatter(make_formatter(s.format)), writer(s.fd) {}

  void write(LogLevel level, std::string_view component, std::string_view message, Fields fields) {
    const double now = clock != nullptr ? clock->wall_seconds() : system_clock.wall_seconds();
    const std::string body = payload(settings.format, component, message, fields);
    const std::lock_guard lock(mutex);
    const std::uint64_t missing = writer.lost_since_success();
    if (missing > 0) {
      const std::string note =
          payload(settings.format, "log", "lines were lost", {{"count", std::to_string(missing)}});
      writer.write_note(format_with(*formatter, {now, LogLevel::kWarn}, note, settings.colour));
    }
    writer.write(format_with(*formatter, {now, level}, body, settings.colour));
  }
};

FormatLog::FormatLog(LogSettings settings, const Clock* clock)
    : impl_(std::make_unique<Impl>(settings, clock)) {}
FormatLog::~FormatLog() = default;
void FormatLog::set_level(LogLevel level) { impl_->level = level; }

void FormatLog::log(LogLevel level, std::string_view component, std::string_view message,
                    Fields fields) {
  if (level < impl_->level) return;
  try {
    impl_->write(level, component, message, fields);
  } catch (
      const std::exception&) {  // out of memory, or spdlog: a lost line must not end the program
    const std::lock_guard lock(impl_->mutex);
    impl_->writer.count_lost();
  }
}

std::uint64_t FormatLog::lost() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->writer.lost();
}

}  // namespace kith::node
