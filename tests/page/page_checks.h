// What must hold on any page, asked in the browser: nothing wider than the window, text that can be
// read on its ground, names for whatever can be used. Each returns what is wrong, empty if nothing
// is.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/page/browser.h"

namespace kith::page::testing {

// Pixels by which the page is wider than its window.
int overflow(Browser& browser);
// Texts with a contrast below 4.5 to what is behind them (WCAG 2.1, 1.4.3), and colours of curves
// below 3 (1.4.11).
nlohmann::json poor_contrast(Browser& browser);
// Things in the accessibility tree that can be used or stand for something, and have no name.
nlohmann::json nameless(Browser& browser);
std::set<std::string> roles(Browser& browser);
// Presses Tab until the focus is back at the start. What can be used but is never reached, or
// reached without showing it.
nlohmann::json unreachable(Browser& browser);

}  // namespace kith::page::testing
