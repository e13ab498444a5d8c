// IDX, the format of the handwritten digits: two zero bytes, type, number of dimensions, the
// dimensions as big-endian 32-bit numbers, then the values, big-endian, row-major.
#include <array>
#include <cstdio>

#include "compute/array_file.h"
#include "compute/data_file.h"

namespace kith::compute {
namespace {

constexpr unsigned kMostDimensions = 8;

Result<NumberType> idx_type(const std::string& path, unsigned code) {
  switch (code) {
    case 0x08:
      return NumberType::kU8;
    case 0x09:
      return NumberType::kI8;
    case 0x0B:
      return NumberType::kI16;
    case 0x0C:
      return NumberType::kI32;
    case 0x0D:
      return NumberType::kF32;
    case 0x0E:
      return NumberType::kF64;
    default:
      break;
  }
  char text[8];
  std::snprintf(text, sizeof text, "0x%02x", code);
  return refuse_data(path, "not an IDX file that can be read: unknown type " + std::string(text));
}

std::uint32_t big_endian_32(const std::byte* at) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(at[i]);
  return value;
}

}  // namespace

Result<ArrayFile> read_idx(const std::string& path) {
  KITH_ASSIGN(DataFile file, DataFile::open(path));
  std::array<std::byte, 4> magic{};
  KITH_TRY(file.read(magic, "header"));
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0}) {
    return refuse_data(path, "not an IDX file: it does not start with two zero bytes");
  }
  ArrayFile array;
  array.path = path;
  array.big_endian = true;
  KITH_ASSIGN(array.type, idx_type(path, std::to_integer<unsigned>(magic[2])));
  const auto dimensions = std::to_integer<unsigned>(magic[3]);
  if (dimensions < 1 || dimensions > kMostDimensions) {
    return refuse_data(
        path, "not an IDX file that can be read: " + std::to_string(dimensions) + " dimensions");
  }
  for (unsigned i = 0; i < dimensions; ++i) {
    std::array<std::byte, 4> raw{};
    KITH_TRY(file.read(raw, "header"));
    array.shape.push_back(big_endian_32(raw.data()));
  }
  const std::size_t width = byte_width(array.type);
  KITH_ASSIGN(const std::size_t values, checked_values(path, array.shape, width));
  KITH_ASSIGN(array.bytes, file.read_content(values * width));
  KITH_TRY(file.expect_end());
  return array;
}

}  // namespace kith::compute
