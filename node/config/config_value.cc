#include "node/config/config_value.h"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "node/config/config_toml.h"

namespace kith::node {

std::optional<ConfigValue> parse_toml_value(std::string_view text) {
  if (text.find_first_of("\r\n") != std::string_view::npos) return std::nullopt;
  try {
    const toml::table table = toml::parse("value = " + std::string(text));
    const toml::node* node = table.get("value");
    if (table.size() != 1 || node == nullptr) return std::nullopt;
    return to_config_value(*node);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

ConfigValue to_config_value(const toml::node& node) {
  if (const auto* v = node.as_boolean()) return {v->get()};
  if (const auto* v = node.as_integer()) return {v->get()};
  if (const auto* v = node.as_floating_point()) return {v->get()};
  if (const auto* v = node.as_string()) return {v->get()};
  if (node.is_table()) return {ConfigValue::Other{"a table"}};
  if (const auto* array = node.as_array()) {
    std::vector<ConfigValue> items;
    for (const toml::node& item : *array) items.push_back(to_config_value(item));
    return {std::move(items)};
  }
  return {ConfigValue::Other{"a date or time"}};
}

namespace {
struct Describer {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(std::int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return number_text(v); }
  std::string operator()(const std::string& v) const {
    constexpr std::size_t kShown = 80;
    return v.size() <= kShown ? in_quotes(v) : in_quotes(v.substr(0, kShown)) + "...";
  }
  std::string operator()(const std::vector<ConfigValue>& v) const {
    return "a list of " + std::to_string(v.size());
  }
  std::string operator()(const ConfigValue::Other& v) const { return v.what; }
};
}  // namespace

std::string describe(const ConfigValue& value) { return std::visit(Describer{}, value.value); }

std::string number_text(double value) {
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end.ptr};
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

namespace {
struct Unit {
  std::string_view name;
  double seconds;
};
constexpr Unit kUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1},
                           {"m", 60},    {"h", 3600},  {"d", 86400}};
constexpr double kLongest = 100.0 * 366 * 86400;
}  // namespace

std::optional<Duration> parse_duration(std::string_view text) {
  const auto unit_at = text.find_first_not_of("0123456789.");
  if (unit_at == std::string_view::npos || unit_at == 0) return std::nullopt;
  const auto number = parse_number(text.substr(0, unit_at));
  const auto unit = std::ranges::find(kUnits, trimmed(text.substr(unit_at)), &Unit::name);
  if (!number || unit == std::end(kUnits)) return std::nullopt;
  const double seconds = *number * unit->seconds;
  if (!(seconds >= 0 && seconds <= kLongest)) return std::nullopt;
  return Duration(std::llround(seconds * 1e9));
}

std::string duration_text(Duration value) {
  const double seconds = to_seconds(value);
  if (seconds != 0 && seconds < 1) return number_text(seconds * 1e3) + "ms";
  return number_text(seconds) + "s";
}

std::vector<std::string_view> choice_list(std::string_view choices) {
  std::vector<std::string_view> items;
  while (!choices.empty()) {
    const auto bar = choices.find('|');
    items.push_back(choices.substr(0, bar));
    choices.remove_prefix(bar == std::string_view::npos ? choices.size() : bar + 1);
  }
  return items;
}

std::string spaced_choices(std::string_view choices) {
  std::string text;
  for (const std::string_view c : choice_list(choices)) {
    if (!text.empty()) text += " | ";
    text += c;
  }
  return text;
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80              ? 1
                               : (lead >> 5) == 0b110   ? 2
                               : (lead >> 4) == 0b1110  ? 3
                               : (lead >> 3) == 0b11110 ? 4
                                                        : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (std::size_t k = 1; k < length; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return false;
    i += length;
  }
  return true;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t differs = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + differs});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr std::size_t kLongestWord = 128;
  if (word.size() > kLongestWord) return {};
  std::string_view best;
  std::size_t best_distance =
      std::min<std::size_t>(4, std::max<std::size_t>(1, word.size() / 3)) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace kith::node
