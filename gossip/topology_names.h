// The nearest known name to a mistyped one, for errors that help. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kith::gossip {

// Number of single-character insertions, deletions and replacements between the two.
std::size_t edit_distance(std::string_view a, std::string_view b);

// `unknown topology "rnig": did you mean "ring"? known: random, ring` for kind "topology".
std::string unknown_name(std::string_view kind, std::string_view name,
                         std::span<const std::string_view> known);

}  // namespace kith::gossip
