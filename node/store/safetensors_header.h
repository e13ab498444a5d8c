// The JSON header of a safetensors file, as text and as entries. What parse sees is hostile: every
// number and name is checked before it is used. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/store/safetensors.h"

namespace kith::node {

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;    // in the order of their bytes
  std::vector<std::uint64_t> offsets;  // first byte of each, from the end of the header
  std::map<std::string, std::string> metadata;
  std::uint64_t data_bytes = 0;
};

inline constexpr std::uint64_t kHeaderLengthMax = 100ULL << 20;

// Compact JSON, metadata first and sorted, padded with blanks to a multiple of 8. kUsage: a name
// that is empty, double or not UTF-8; a dtype that is not known; a size that overflows.
Result<std::string> format_header(const std::vector<TensorEntry>& tensors,
                                  const std::map<std::string, std::string>& metadata);
// kCorrupt says what is wrong. `data_bytes`: what follows the header in the file.
Result<SafetensorsHeader> parse_header(std::string_view json, std::uint64_t data_bytes);
// Bytes of one value; 0: unknown dtype.
std::uint64_t dtype_bytes(std::string_view dtype);

}  // namespace kith::node
