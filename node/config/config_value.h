// Values as they stand in TOML, in the environment or in a flag, before a key has judged them; and
// the texts that configuration uses: numbers, durations, choices, nearest words. Nothing
// here depends on the locale. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "node/text/text.h"

namespace kith::node {

// A TOML value; what configuration never uses (tables, dates) is kept as its name only.
struct ConfigValue {
  struct Other {
    std::string what;  // "a table", "a date"
  };
  std::variant<bool, std::int64_t, double, std::string, std::vector<ConfigValue>, Other> value;
};

// The text as one TOML value, or nullopt when it is not one (then it means itself).
std::optional<ConfigValue> parse_toml_value(std::string_view text);
// "text "abc"", "the integer 3", "a list": for messages; long texts are cut.
std::string describe(const ConfigValue& value);

// Shortest text that reads back as the same double, always with a dot; never depends on the locale.
std::string number_text(double value);
std::optional<double> parse_number(std::string_view text);
std::optional<std::int64_t> parse_integer(std::string_view text);
// "0s", "1.5s", "200ms", "2m", "1h"; nullopt without a unit, when negative or beyond 100 years.
std::optional<Duration> parse_duration(std::string_view text);
std::string duration_text(Duration value);
// "a|b" -> "a | b", and membership.
std::string spaced_choices(std::string_view choices);
std::vector<std::string_view> choice_list(std::string_view choices);
bool is_utf8(std::string_view text);

// Edits (insert, delete, replace, swap of neighbours) between two words: Damerau-Levenshtein in its
// restricted form (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);
// The closest candidate, if it is close: at most max(1, length / 3) edits away, and 4. Empty
// otherwise.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace kith::node
