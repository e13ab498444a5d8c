// The files of the page at "/": sources in page/ and the chart library of the system, put into the
// program when it is built (embed_page.cmake), so that a node needs no files to show itself. The
// page names them with a hash of what they hold: browsers may keep them for ever.
// Thread: constant data.
#pragma once

#include <string_view>

namespace kith::monitoring {

struct PageAsset {
  std::string_view path;  // as asked for: "/" or "/assets/page.js"
  std::string_view content_type;
  std::string_view bytes;
};

// Null if there is none at that path.
const PageAsset* find_page_asset(std::string_view path);

// What the page may do in a browser: load from its own node, and nothing else.
inline constexpr const char* kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

}  // namespace kith::monitoring
