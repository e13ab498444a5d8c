// Small pieces of JSON for answers that are asked for all the time: numbers with as many digits as
// a screen can show, and text that other machines chose. Thread: functions of their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kith::monitoring {

// Five significant digits; null if unknown or not finite.
std::string json_number(std::optional<double> value);
std::string json_number(double value);
std::string json_count(std::uint64_t value);
// Seconds, to a tenth.
std::string json_seconds(std::optional<double> value);
// Quoted. Bytes that are no UTF-8 are replaced.
std::string json_text(std::string_view text);

}  // namespace kith::monitoring
