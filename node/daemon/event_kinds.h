// What a line of the log is about, in one word, so that the page can mark it: "joined", "dead",
// "checkpoint", ... Thread: a function of its arguments.
#pragma once

#include <span>
#include <string_view>
#include <utility>

namespace kith::node {

// How messages begin, and their word; the first that fits.
std::span<const std::pair<std::string_view, std::string_view>> event_kinds();
// "" for lines about anything else.
std::string_view event_kind(std::string_view component, std::string_view message);

}  // namespace kith::node
