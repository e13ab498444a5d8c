#include "compute/array_file.h"

#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "compute/data_file.h"

namespace kith::compute {
namespace {

template <typename T>
T load(const std::byte* at, bool big_endian) {
  std::byte raw[sizeof(T)];
  for (std::size_t i = 0; i < sizeof(T); ++i) raw[i] = big_endian ? at[sizeof(T) - 1 - i] : at[i];
  T value;
  std::memcpy(&value, raw, sizeof(T));
  return value;
}

// Calls visitor with a value of the C++ type that `type` names.
template <typename Visitor>
auto with_type(NumberType type, Visitor&& visitor) {
  switch (type) {
    case NumberType::kU8:
      return visitor(std::uint8_t{});
    case NumberType::kI8:
      return visitor(std::int8_t{});
    case NumberType::kU16:
      return visitor(std::uint16_t{});
    case NumberType::kI16:
      return visitor(std::int16_t{});
    case NumberType::kU32:
      return visitor(std::uint32_t{});
    case NumberType::kI32:
      return visitor(std::int32_t{});
    case NumberType::kU64:
      return visitor(std::uint64_t{});
    case NumberType::kI64:
      return visitor(std::int64_t{});
    case NumberType::kF32:
      return visitor(float{});
    case NumberType::kF64:
      return visitor(double{});
  }
  KITH_CHECK(false, "a known number type");
}

template <typename T>
float as_float(T value) {
  if constexpr (std::is_same_v<T, std::uint8_t>) return static_cast<float>(value) / 255.0f;
  return static_cast<float>(value);
}

}  // namespace

std::size_t byte_width(NumberType type) {
  return with_type(type, [](auto value) { return sizeof(value); });
}

bool is_integer(NumberType type) { return type != NumberType::kF32 && type != NumberType::kF64; }

std::size_t ArrayFile::sample_values() const {
  std::size_t values = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) values *= static_cast<std::size_t>(shape[i]);
  return values;
}

void ArrayFile::read_sample(std::size_t sample, std::span<float> out) const {
  with_type(type, [&](auto typed) {
    using T = decltype(typed);
    if (!column_major) {
      const std::byte* at = bytes.data() + sample * out.size() * sizeof(T);
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = as_float(load<T>(at + i * sizeof(T), big_endian));
      return;
    }
    std::vector<std::size_t> index(shape.size(),
                                   0);  // row-major walk over one sample; index[0] is the sample
    index[0] = sample;
    for (float& value : out) {
      std::size_t place = 0;
      for (std::size_t d = shape.size(); d-- > 0;)
        place = place * static_cast<std::size_t>(shape[d]) + index[d];
      value = as_float(load<T>(bytes.data() + place * sizeof(T), big_endian));
      for (std::size_t d = shape.size() - 1;
           d > 0 && ++index[d] == static_cast<std::size_t>(shape[d]); --d)
        index[d] = 0;
    }
  });
}

std::int64_t ArrayFile::integer(std::size_t index) const {
  return with_type(type, [&](auto typed) -> std::int64_t {
    using T = decltype(typed);
    if constexpr (std::is_integral_v<T>) {
      return static_cast<std::int64_t>(load<T>(bytes.data() + index * sizeof(T), big_endian));
    }
    KITH_CHECK(false, "integers are read from integer arrays");
  });
}

Result<std::size_t> checked_values(const std::string& path, const std::vector<std::int64_t>& shape,
                                   std::size_t width) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 46;
  std::size_t values = 1;
  for (const std::int64_t dim : shape) {
    if (dim < 0) return refuse_data(path, "its header gives a negative dimension");
    const auto n = static_cast<std::size_t>(dim);
    if (n != 0 && values > kMostBytes / width / n) {
      return refuse_data(path, "its header gives an impossible size: " + to_text(shape));
    }
    values *= n;
  }
  return values;
}

std::string to_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t dim : shape) text += (text.empty() ? "" : " x ") + std::to_string(dim);
  return text.empty() ? "a single number" : text;
}

}  // namespace kith::compute
