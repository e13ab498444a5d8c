// An array of numbers as a file holds it (IDX, npy), and reading one sample of it as floats: the
// whole file is never held as fp32, only the samples that a node keeps. Immutable after loading;
// any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace kith::compute {

enum class NumberType { kU8, kI8, kU16, kI16, kU32, kI32, kU64, kI64, kF32, kF64 };
std::size_t byte_width(NumberType type);
bool is_integer(NumberType type);

struct ArrayFile {
  std::string path;
  std::vector<std::int64_t> shape;  // the first dimension counts samples
  NumberType type = NumberType::kU8;
  bool big_endian = false;
  bool column_major = false;  // npy's fortran_order: the first index runs fastest
  std::vector<std::byte> bytes;

  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(shape.at(0)); }
  [[nodiscard]] std::size_t sample_values() const;
  // Values of one sample in row-major order; u8 is scaled to 0..1.
  void read_sample(std::size_t sample, std::span<float> out) const;
  // Integer types only; a u64 beyond the range of i64 comes out negative, and no label is.
  [[nodiscard]] std::int64_t integer(std::size_t index) const;
};

// Number of values of a shape; an error if a dimension is negative or the bytes would not fit into
// memory.
Result<std::size_t> checked_values(const std::string& path, const std::vector<std::int64_t>& shape,
                                   std::size_t width);
std::string to_text(const std::vector<std::int64_t>& shape);  // "60000 x 28 x 28"

Result<ArrayFile> read_idx(const std::string& path);
Result<ArrayFile> read_npy(const std::string& path);

}  // namespace kith::compute
