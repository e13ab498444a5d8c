// What a line of the log is about, in one word, so that the page can mark it: "joined", "dead",
// "checkpoint", ... Thread: a function of its arguments.
#pragma once

#include <string_view>

namespace kith::node {

// "" for lines about anything else.
std::string_view event_kind(std::string_view component, std::string_view message);

}  // namespace kith::node
