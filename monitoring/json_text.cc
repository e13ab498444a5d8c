#include "monitoring/json_text.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace kith::monitoring {
namespace {

// Whatever the locale's decimal separator is: to_chars knows none.
std::string formatted(double value, std::chars_format format, int precision) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value, format, precision);
  return {text, end.ptr};
}

}  // namespace

std::string json_number(double value) {
  return std::isfinite(value) ? formatted(value, std::chars_format::general, 5) : "null";
}

std::string json_number(std::optional<double> value) {
  return value ? json_number(*value) : "null";
}

std::string json_count(std::uint64_t value) { return std::to_string(value); }

std::string json_seconds(std::optional<double> value) {
  if (!value || !std::isfinite(*value) || std::abs(*value) > 1e15) return "null";
  return formatted(*value, std::chars_format::fixed, 1);
}

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace kith::monitoring
