// npy, NumPy's format for one array (NEP 1), versions 1 to 3: magic, version, length of the header,
// a Python dictionary with descr, fortran_order and shape, then the values. Pickled and structured
// arrays are refused.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>

#include "compute/array_file.h"
#include "compute/data_file.h"

namespace kith::compute {
namespace {

constexpr std::size_t kMostHeaderBytes = std::size_t{1} << 20;
constexpr std::size_t kMostDimensions = 8;

// Reads the header's dictionary: keys in any order, blanks anywhere, no other kinds of value than
// NumPy writes.
class HeaderParser {
 public:
  HeaderParser(const std::string& path, std::string_view text) : path_(path), rest_(text) {}

  Status parse(ArrayFile& array) {
    if (!skip('{')) return malformed("no dictionary");
    while (!skip('}')) {
      KITH_ASSIGN(const std::string_view key, quoted());
      if (!skip(':')) return malformed("no ':' after a key");
      KITH_TRY(value(key, array));
      if (!skip(',') && !at('}')) return malformed("no ',' between entries");
    }
    skip_blanks();
    if (!rest_.empty()) return malformed("text after the dictionary");
    if (!has_type_ || !has_order_ || !has_shape_)
      return malformed("descr, fortran_order or shape is missing");
    return {};
  }

 private:
  Status value(std::string_view key, ArrayFile& array) {
    if (key == "descr" && !has_type_) return type(array);
    if (key == "fortran_order" && !has_order_) return order(array);
    if (key == "shape" && !has_shape_) return shape(array);
    return malformed("unexpected or repeated key '" + std::string(key) + "'");
  }

  Status type(ArrayFile& array) {
    has_type_ = true;
    if (at('[')) return refuse_data(path_, "holds a structured array: expected plain numbers");
    KITH_ASSIGN(const std::string_view descr, quoted());
    static constexpr struct {
      std::string_view name;
      NumberType type;
    } kTypes[] = {{"u1", NumberType::kU8},  {"i1", NumberType::kI8},  {"u2", NumberType::kU16},
                  {"i2", NumberType::kI16}, {"u4", NumberType::kU32}, {"i4", NumberType::kI32},
                  {"u8", NumberType::kU64}, {"i8", NumberType::kI64}, {"f4", NumberType::kF32},
                  {"f8", NumberType::kF64}};
    if (descr.find('O') != std::string_view::npos) {
      return refuse_data(
          path_, "holds pickled Python objects, which are never loaded: save plain numbers");
    }
    for (const auto& known : kTypes) {
      if (descr.size() == 3 && descr.substr(1) == known.name &&
          std::string_view("<>=|").find(descr[0]) != std::string_view::npos) {
        array.type = known.type;
        array.big_endian = descr[0] == '>';
        return {};
      }
    }
    return refuse_data(path_, "has values of type '" + std::string(descr) +
                                  "': expected float32, float64 or integers");
  }

  Status order(ArrayFile& array) {
    has_order_ = true;
    array.column_major = skip_word("True");
    if (!array.column_major && !skip_word("False"))
      return malformed("fortran_order is neither True nor False");
    return {};
  }

  Status shape(ArrayFile& array) {
    has_shape_ = true;
    if (!skip('(')) return malformed("shape is not a tuple");
    while (!skip(')')) {
      KITH_ASSIGN(const std::int64_t dim, number());
      array.shape.push_back(dim);
      if (array.shape.size() > kMostDimensions)
        return refuse_data(path_, "has more than 8 dimensions");
      if (!skip(',') && !at(')')) return malformed("shape is not a tuple of numbers");
    }
    return {};
  }

  Result<std::int64_t> number() {
    skip_blanks();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{} || value < 0) return malformed("shape is not a tuple of numbers");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    if (!rest_.empty() && rest_[0] == 'L') rest_.remove_prefix(1);  // Python 2 wrote 60000L
    return value;
  }

  Result<std::string_view> quoted() {
    skip_blanks();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"'))
      return malformed("a word in quotes expected");
    const std::size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) return malformed("an open quote");
    const std::string_view word = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return word;
  }

  void skip_blanks() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n' || rest_[0] == '\t'))
      rest_.remove_prefix(1);
  }
  bool at(char c) {
    skip_blanks();
    return !rest_.empty() && rest_[0] == c;
  }
  bool skip(char c) {
    if (!at(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool skip_word(std::string_view word) {
    skip_blanks();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  [[nodiscard]] tl::unexpected<Error> malformed(const std::string& what) const {
    return refuse_data(path_, "malformed npy header: " + what);
  }

  const std::string& path_;
  std::string_view rest_;
  bool has_type_ = false, has_order_ = false, has_shape_ = false;
};

Result<std::size_t> header_length(DataFile& file) {
  std::array<std::byte, 8> start{};
  KITH_TRY(file.read(start, "header"));
  static constexpr std::array<unsigned char, 6> kMagic = {0x93, 'N', 'U', 'M', 'P', 'Y'};
  for (std::size_t i = 0; i < kMagic.size(); ++i) {
    if (start[i] != std::byte{kMagic[i]})
      return refuse_data(file.path(), "not an npy file: its first bytes are others");
  }
  const auto major = std::to_integer<unsigned>(start[6]);
  if (major < 1 || major > 3) {
    return refuse_data(file.path(),
                       "npy version " + std::to_string(major) + ": expected 1, 2 or 3");
  }
  std::array<std::byte, 4> raw{};
  const std::size_t width = major == 1 ? 2 : 4;
  KITH_TRY(file.read(std::span(raw).first(width), "header"));
  std::size_t length = 0;
  for (std::size_t i = width; i-- > 0;) length = length << 8 | std::to_integer<std::size_t>(raw[i]);
  if (length > kMostHeaderBytes)
    return refuse_data(file.path(), "malformed npy header: longer than 1 MiB");
  return length;
}

}  // namespace

Result<ArrayFile> read_npy(const std::string& path) {
  KITH_ASSIGN(DataFile file, DataFile::open(path));
  KITH_ASSIGN(const std::size_t length, header_length(file));
  std::string header(length, ' ');
  KITH_TRY(file.read(std::as_writable_bytes(std::span(header)), "header"));
  ArrayFile array;
  array.path = path;
  KITH_TRY(HeaderParser(array.path, header).parse(array));
  if (array.shape.empty())
    return refuse_data(path, "holds a single number (0 dimensions): expected one row per sample");
  const std::size_t width = byte_width(array.type);
  KITH_ASSIGN(const std::size_t values, checked_values(path, array.shape, width));
  KITH_ASSIGN(array.bytes, file.read_content(values * width));
  KITH_TRY(file.expect_end());
  return array;
}

}  // namespace kith::compute
