#include <gtest/gtest.h>

#include <cmath>

#include "compute/array_file.h"
#include "compute/data.h"
#include "test_files.h"

namespace kith::compute {
namespace {

using testing::bytes_of;
using testing::npy;
using testing::TestFolder;

const std::vector<float> kRows = {0.5F, 1, 2, 3, 4, 5};     // 3 x 2, row-major
const std::vector<float> kColumns = {0.5F, 2, 4, 1, 3, 5};  // the same, column-major
const std::string kLabels =
    npy("<i8", false, "(3,)", bytes_of(std::vector<std::int64_t>{0, 1, 2}, false));

Result<LoadedData> load(const std::string& inputs, const std::string& labels = kLabels) {
  static TestFolder folder;
  DataSpec spec;
  spec.format = "npy";
  spec.train = {folder.write("x.npy", inputs), folder.write("y.npy", labels)};
  return load_data(spec);
}

TEST(Npy, VersionsOrdersAndTypesOfOneArrayAreTheSameData) {
  const auto plain = load(npy("<f4", false, "(3, 2)", bytes_of(kRows, false)));
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->train.sample_shape, (std::vector<std::int64_t>{2}));
  const std::vector<double> rows(kRows.begin(), kRows.end()),
      columns(kColumns.begin(), kColumns.end());
  const std::pair<const char*, std::string> kVariants[] = {
      {"v2", npy("<f4", false, "(3, 2)", bytes_of(kRows, false), 2)},
      {"v3", npy("<f4", false, "(3, 2)", bytes_of(kRows, false), 3)},
      {"Fortran", npy("<f4", true, "(3, 2)", bytes_of(kColumns, false))},
      {"big endian", npy(">f4", false, "(3, 2)", bytes_of(kRows, true))},
      {"float64", npy("<f8", false, "(3, 2)", bytes_of(rows, false))},
      {"float64, big endian, Fortran, v3", npy(">f8", true, "(3, 2)", bytes_of(columns, true), 3)},
      {"tight tuple", npy("<f4", false, "(3,2)", bytes_of(kRows, false))},
  };
  for (const auto& [name, file] : kVariants) {
    const auto data = load(file);
    ASSERT_TRUE(data) << name << ": " << data.error().message;
    EXPECT_EQ(data->train.inputs, plain->train.inputs) << name;
    EXPECT_EQ(data->fingerprint, plain->fingerprint) << name;
    EXPECT_EQ(data->mean, plain->mean) << name;
  }
}

TEST(Npy, FortranOrderOfImagesIsTransposed) {
  TestFolder folder;
  std::vector<float> row_major(2 * 3 * 4 * 5), column_major(row_major.size());
  for (std::size_t n = 0, i = 0; n < 2; ++n) {
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t h = 0; h < 4; ++h) {
        for (std::size_t w = 0; w < 5; ++w, ++i) {
          row_major[i] = static_cast<float>(i);
          column_major[n + 2 * (c + 3 * (h + 4 * w))] = static_cast<float>(i);
        }
      }
    }
  }
  const auto array = read_npy(
      folder.write("x.npy", npy("<f4", true, "(2, 3, 4, 5)", bytes_of(column_major, false))));
  ASSERT_TRUE(array) << array.error().message;
  std::vector<float> sample(60);
  for (std::size_t n = 0; n < 2; ++n) {
    array->read_sample(n, sample);
    for (std::size_t i = 0; i < 60; ++i)
      ASSERT_EQ(sample[i], row_major[n * 60 + i]) << n << " " << i;
  }
}

TEST(Npy, LabelsOfEveryIntegerType) {
  const std::string inputs = npy("<f4", false, "(3, 2)", bytes_of(kRows, false));
  const std::pair<const char*, std::string> kTypes[] = {
      {"|u1", std::string("\0\1\2", 3)},
      {"|i1", std::string("\0\1\2", 3)},
      {"<i4", bytes_of(std::vector<std::int32_t>{0, 1, 2}, false)},
      {">i4", bytes_of(std::vector<std::int32_t>{0, 1, 2}, true)},
      {"<u2", bytes_of(std::vector<std::uint16_t>{0, 1, 2}, false)},
      {">i8", bytes_of(std::vector<std::int64_t>{0, 1, 2}, true)},
  };
  for (const auto& [descr, bytes] : kTypes) {
    const auto data = load(inputs, npy(descr, false, "(3,)", bytes));
    ASSERT_TRUE(data) << descr << data.error().message;
    EXPECT_EQ(data->train.labels, (std::vector<std::int64_t>{0, 1, 2})) << descr;
  }
}

TEST(BadNpy, EachIsRefusedWithFileAndReason) {
  const std::string data = bytes_of(kRows, false);
  const std::string good = npy("<f4", false, "(3, 2)", data);
  std::string other_version = good, other_magic = good, cut = good, longer = good + "x",
              huge_header = npy("<f4", false, "(3, 2)", data, 2);
  other_version[6] = 9;
  other_magic[1] = 'X';
  cut.resize(cut.size() - 4);
  huge_header[11] = 0x7F;
  const struct {
    const char* name;
    std::string file;
    const char* reason;
  } kTable[] = {
      {"0-d", npy("<f4", false, "()", bytes_of(std::vector<float>{1}, false)), "0 dimensions"},
      {"1-d", npy("<f4", false, "(6,)", data), "swapped?"},
      {"objects", npy("|O", false, "(3, 2)", data), "pickled"},
      {"complex", npy("<c8", false, "(3, 2)", data + data), "values of type '<c8'"},
      {"half", npy("<f2", false, "(3, 2)", data), "values of type '<f2'"},
      {"bool", npy("|b1", false, "(3, 2)", data), "values of type '|b1'"},
      {"text", npy("<U3", false, "(3, 2)", data), "values of type '<U3'"},
      {"version 9", other_version, "npy version 9"},
      {"magic", other_magic, "not an npy file"},
      {"cut", cut, "announces 24 bytes of values, 20 are there"},
      {"longer", longer, "longer than its header announces"},
      {"empty", "", "truncated in its header"},
      {"huge header", huge_header, "longer than 1 MiB"},
      {"negative", npy("<f4", false, "(-3, 2)", data), "malformed npy header"},
      {"overflow", npy("<f4", false, "(4611686018427387904, 4)", data), "impossible size"},
      {"beyond 64 bits", npy("<f4", false, "(99999999999999999999, 4)", data),
       "malformed npy header"},
      {"not a tuple", npy("<f4", false, "3", data), "shape is not a tuple"},
      {"order",
       [&] {
         auto f = good;
         f.replace(f.find("False"), 5, "Maybe");
         return f;
       }(),
       "fortran_order"},
      {"no dictionary",
       [&] {
         auto f = good;
         f[10] = '[';
         return f;
       }(),
       "no dictionary"},
      {"missing key",
       [&] {
         auto f = good;
         f.replace(f.find("shape"), 5, "shapf");
         return f;
       }(),
       "unexpected or repeated key 'shapf'"},
      {"structured",
       [&] {
         auto f = good;
         f.replace(f.find("'<f4'"), 5, "[('a");
         return f;
       }(),
       "structured"},
      {"NaN", npy("<f4", false, "(3, 2)", bytes_of(std::vector<float>{0, 0, 0, NAN, 0, 0}, false)),
       "x.npy: sample 1: holds a value that is not finite"},
  };
  for (const auto& row : kTable) {
    const auto result = load(row.file);
    ASSERT_FALSE(result) << row.name;
    EXPECT_EQ(result.error().code, ErrorCode::kDataRefused) << row.name;
    EXPECT_NE(result.error().message.find(row.reason), std::string::npos)
        << row.name << ": " << result.error().message;
    EXPECT_NE(result.error().message.find("x.npy"), std::string::npos)
        << row.name << ": " << result.error().message;
  }
  const auto two_d =
      load(good, npy("<i8", false, "(3, 1)", bytes_of(std::vector<std::int64_t>{0, 1, 2}, false)));
  ASSERT_FALSE(two_d);
  EXPECT_NE(two_d.error().message.find("one label per sample"), std::string::npos);
}

}  // namespace
}  // namespace kith::compute
