# Run by the build: puts the files of the page into one C++ source, as raw literals.
#   cmake -D PAGE=folder -D CHART_JS=file -D OUTPUT=file.cc -P embed_page.cmake
# In index.html, assets/NAME becomes assets/NAME?v=HASH.
cmake_minimum_required(VERSION 3.25)
file(READ "${PAGE}/index.html" index)
set(table "")
set(count 0)

function(embed path type content)
  string(APPEND table "    {\"${path}\", \"${type}\", R\"kith_page(${content})kith_page\"},\n")
  math(EXPR count "${count} + 1")
  set(table "${table}" PARENT_SCOPE)
  set(count "${count}" PARENT_SCOPE)
endfunction()

set(script "text/javascript; charset=utf-8")
set(style "text/css; charset=utf-8")
set(picture "image/svg+xml")
foreach(asset chart.js:script format.js:script charts.js:script members.js:script page.js:script page.css:style icon.svg:picture)
  string(REGEX MATCH "^[^:]+" name "${asset}")
  string(REGEX MATCH "[^:]+$" type "${asset}")
  if(name STREQUAL "chart.js")
    file(READ "${CHART_JS}" content)
  else()
    file(READ "${PAGE}/${name}" content)
  endif()
  string(SHA256 hash "${content}")
  string(SUBSTRING "${hash}" 0 12 hash)
  if(NOT index MATCHES "\"assets/${name}\"")
    message(FATAL_ERROR "page/index.html does not use assets/${name}")
  endif()
  string(REPLACE "\"assets/${name}\"" "\"assets/${name}?v=${hash}\"" index "${index}")
  embed("/assets/${name}" "${${type}}" "${content}")
endforeach()
embed("/" "text/html; charset=utf-8" "${index}")

file(WRITE "${OUTPUT}" "// Made by embed_page.cmake.
#include \"monitoring/page_assets.h\"

namespace kith::monitoring {
namespace {

constexpr PageAsset kAssets[] = {
${table}};

}  // namespace

const PageAsset* find_page_asset(std::string_view path) {
  for (const PageAsset& asset : kAssets)
    if (asset.path == path) return &asset;
  return nullptr;
}

}  // namespace kith::monitoring
")
