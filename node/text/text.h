// Small texts that several parts of the node read and write: quoting for messages, lists with
// commas, blanks. Nothing here depends on the locale. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace kith::node {

// As a TOML basic string.
std::string in_quotes(std::string_view text);
// How many bytes the control code takes with which `text` begins; 0 if it begins with none. C0,
// DEL, C1 (a terminal takes U+009B for ESC [) and what turns the direction of writing.
std::size_t control_bytes(std::string_view text);
// "a, b,, c" -> {"a","b","c"}: blanks trimmed, empties skipped.
std::vector<std::string> split_list(std::string_view text);
std::string_view trimmed(std::string_view text);
// "1.2 MB"; "-" for what is not a finite number.
std::string bytes_text(double bytes);
std::string decimals(double value, int digits);
std::string seconds_text(Duration duration);  // "12 s", rounded down
// What this machine or container is called; "node" when that would not do as a node's name.
std::string host_name();

}  // namespace kith::node
