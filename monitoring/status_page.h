// The page at "/": status and members of one node, refreshed by the page itself. One file, no
// resources from outside, and text from other machines only ever enters it as text, never as
// markup.
#pragma once

#include <string_view>

namespace kith::monitoring {

std::string_view status_page();

}  // namespace kith::monitoring
