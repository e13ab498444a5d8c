#include "node/text/text.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace kith::node {
namespace {

// One character of UTF-8, of at most three bytes, as \uXXXX.
std::string escaped_code_point(std::string_view bytes) {
  const auto low = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]) & 0x3fu; };
  unsigned code = static_cast<unsigned char>(bytes[0]);
  if (bytes.size() == 2) code = (code & 0x1f) << 6 | low(1);
  if (bytes.size() == 3) code = (code & 0x0f) << 12 | low(1) << 6 | low(2);
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "\\u%04x", code & 0xffff);
  return text.data();
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t control = control_bytes(text);
    const char c = text.front();
    if (control > 0) {
      out += escaped_code_point(text.substr(0, control));
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    text.remove_prefix(std::max<std::size_t>(control, 1));
  }
  return out + "\"";
}

std::size_t control_bytes(std::string_view text) {
  const auto at = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  if (text.empty()) return 0;
  if (at(0) < 0x20 || at(0) == 0x7f) return 1;
  if (at(0) == 0xc2 && at(1) >= 0x80 && at(1) < 0xa0) return 2;
  if (at(0) != 0xe2) return 0;
  const bool turns = (at(1) == 0x80 && (at(2) == 0x8e || at(2) == 0x8f)) ||
                     (at(1) == 0x80 && at(2) >= 0xaa && at(2) <= 0xae) ||
                     (at(1) == 0x81 && at(2) >= 0xa6 && at(2) <= 0xa9);
  return turns ? 3 : 0;
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items;
  while (true) {
    const auto comma = text.find(',');
    const std::string_view item = trimmed(text.substr(0, comma));
    if (!item.empty()) items.emplace_back(item);
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string host_name() {
  std::array<char, 256> buffer{};
  if (::gethostname(buffer.data(), buffer.size() - 1) != 0) return "node";
  const std::string name = std::string(buffer.data()).substr(0, 64);
  return name.empty() || name.find_first_of(" /\\\"") != std::string::npos ? "node" : name;
}

std::string bytes_text(double bytes) {
  if (!std::isfinite(bytes)) return "-";
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < std::size(kUnits)) {
    bytes /= 1000;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 || bytes >= 99.5 ? "%.0f %s" : "%.1f %s", bytes,
                kUnits[unit]);
  return text.data();
}

std::string decimals(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string seconds_text(Duration duration) {
  return std::to_string(duration / std::chrono::seconds(1)) + " s";
}

}  // namespace kith::node
