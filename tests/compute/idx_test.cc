#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <functional>

#include "compute/data.h"
#include "test_files.h"

namespace kith::compute {
namespace {

using testing::bytes_of;
using testing::idx_header;
using testing::TestFolder;

// Four samples of 2x2 u8 and their labels 0, 1, 1, 0.
struct SmallIdx {
  TestFolder folder;
  std::string images =
      idx_header(0x08, {4, 2, 2}) + std::string("\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17", 16);
  std::string labels = idx_header(0x08, {4}) + std::string("\0\1\1\0", 4);

  Result<LoadedData> load(DataSpec spec = {}) {
    spec.train = {folder.write("images", images), folder.write("labels", labels)};
    return load_data(spec);
  }
  std::string refusal(const DataSpec& spec = {}) {
    const auto result = load(spec);
    if (result) return "accepted";
    EXPECT_EQ(result.error().code, ErrorCode::kDataRefused) << result.error().message;
    EXPECT_NE(result.error().message.find(folder.path("")), std::string::npos)
        << result.error().message;
    return result.error().message;
  }
};

void write_gz(const std::string& path, const std::string& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

TEST(Idx, ReadsTheDigits) {
  DataSpec spec;
  spec.train = {testing::digits("train-images-idx3-ubyte.gz"),
                testing::digits("train-labels-idx1-ubyte.gz")};
  spec.test = {testing::digits("t10k-images-idx3-ubyte.gz"),
               testing::digits("t10k-labels-idx1-ubyte.gz")};
  const auto data = load_data(spec);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(data->classes, 10U);
  EXPECT_EQ(data->train.sample_shape, (std::vector<std::int64_t>{1, 28, 28}));
  EXPECT_EQ(data->train.count, data->whole_count);
  EXPECT_GT(data->test.count, 0U);
  EXPECT_NEAR(data->mean, 0.13, 0.01);
  EXPECT_NEAR(data->std, 0.31, 0.01);
  double sum = 0.0, squares = 0.0;
  for (const float v : data->train.inputs) {
    sum += v;
    squares += static_cast<double>(v) * v;
  }
  const auto n = static_cast<double>(data->train.inputs.size());
  EXPECT_NEAR(sum / n, 0.0, 1e-5);
  EXPECT_NEAR(squares / n, 1.0, 1e-5);
}

TEST(Idx, ScalesBytesToOneBeforeNormalising) {
  SmallIdx idx;
  const auto data = idx.load();
  ASSERT_TRUE(data);
  EXPECT_NEAR(data->mean, 7.5 / 255, 1e-7);
  EXPECT_EQ(data->classes, 2U);
  EXPECT_NEAR(data->train.inputs[0], -data->mean / data->std, 1e-6);
}

TEST(Idx, CompressedAndPlainAreTheSameData) {
  SmallIdx idx;
  const auto plain = idx.load();
  DataSpec spec;
  spec.train = {idx.folder.path("images.gz"), idx.folder.path("labels.gz")};
  write_gz(spec.train[0], idx.images);
  write_gz(spec.train[1], idx.labels);
  const auto compressed = load_data(spec);
  ASSERT_TRUE(plain && compressed);
  EXPECT_EQ(plain->fingerprint, compressed->fingerprint);
  EXPECT_EQ(plain->train.inputs, compressed->train.inputs);
}

TEST(Idx, ReadsEveryType) {
  const std::vector<std::pair<unsigned char, std::string>> kTypes = {
      {0x09, bytes_of(std::vector<std::int8_t>{-1, 2}, true)},
      {0x0B, bytes_of(std::vector<std::int16_t>{-1, 2}, true)},
      {0x0C, bytes_of(std::vector<std::int32_t>{-1, 2}, true)},
      {0x0D, bytes_of(std::vector<float>{-1, 2}, true)},
      {0x0E, bytes_of(std::vector<double>{-1, 2}, true)}};
  for (const auto& [type, bytes] : kTypes) {
    SmallIdx idx;
    idx.images = idx_header(type, {2, 1}) + bytes;
    idx.labels = idx_header(0x0C, {2}) + bytes_of(std::vector<std::int32_t>{0, 1}, true);
    DataSpec spec;
    spec.mean = 0.0;
    spec.std = 1.0;
    const auto data = idx.load(spec);
    ASSERT_TRUE(data) << data.error().message;
    EXPECT_EQ(data->train.inputs, (std::vector<float>{-1, 2})) << int{type};
    EXPECT_EQ(data->train.labels, (std::vector<std::int64_t>{0, 1}));
  }
}

TEST(BadIdx, EachIsRefusedWithFileAndReason) {
  const struct {
    const char* name;
    std::function<void(SmallIdx&)> spoil;
    const char* reason;
  } kTable[] = {
      {"empty file", [](auto& i) { i.images.clear(); }, "truncated in its header"},
      {"header cut", [](auto& i) { i.images.resize(10); }, "truncated in its header"},
      {"values cut", [](auto& i) { i.images.resize(20); },
       "announces 16 bytes of values, 4 are there"},
      {"values too many", [](auto& i) { i.images += 'x'; }, "longer than its header announces"},
      {"labels too many", [](auto& i) { i.labels += 'x'; }, "longer than its header announces"},
      {"not IDX", [](auto& i) { i.images = "hello, this is text"; }, "two zero bytes"},
      {"unknown type", [](auto& i) { i.images[2] = 0x0A; }, "unknown type 0x0a"},
      {"no dimensions", [](auto& i) { i.images = std::string("\0\0\10\0x", 5); }, "0 dimensions"},
      {"nine dimensions", [](auto& i) { i.images[3] = 9; }, "9 dimensions"},
      {"impossible size",
       [](auto& i) {
         i.images = idx_header(8, {4294967295U, 4294967295U, 4294967295U});
       },
       "impossible size"},
      {"large and absent",
       [](auto& i) {
         i.images = idx_header(8, {60'000, 4096, 4096});
       },
       "0 are there"},
      {"swapped", [](auto& i) { std::swap(i.images, i.labels); }, "swapped?"},
      {"fewer labels", [](auto& i) { i.labels = idx_header(8, {3}) + std::string("\0\1\1", 3); },
       "has 3 labels"},
      {"labels as floats", [](auto& i) { i.labels = idx_header(13, {4}) + std::string(16, '\0'); },
       "not integers"},
      {"no samples",
       [](auto& i) {
         i.images = idx_header(8, {0, 2, 2});
         i.labels = idx_header(8, {0});
       },
       "no samples"},
      {"no values",
       [](auto& i) {
         i.images = idx_header(8, {4, 0, 2});
       },
       "hold no values"},
      {"negative label",
       [](auto& i) { i.labels = idx_header(9, {4}) + std::string("\0\377\1\0", 4); },
       "sample 1: its label is -1"},
      {"NaN",
       [](auto& i) {
         i.images = idx_header(13, {4, 1}) + bytes_of(std::vector<float>{0, 0, NAN, 0}, true);
       },
       "sample 2: holds a value that is not finite"},
  };
  for (const auto& row : kTable) {
    SmallIdx idx;
    row.spoil(idx);
    EXPECT_NE(idx.refusal().find(row.reason), std::string::npos)
        << row.name << ": " << idx.refusal();
  }
}

TEST(BadIdx, ALabelOutsideTheClassesNamesFileAndSample) {
  SmallIdx idx;
  idx.labels[8 + 2] = 7;
  DataSpec spec;
  spec.classes = 5;
  EXPECT_NE(idx.refusal(spec).find("labels: sample 2: its label is 7, expected 0 to 4"),
            std::string::npos);
}

TEST(BadIdx, TruncatedGzipIsNamed) {
  SmallIdx idx;
  const std::string path = idx.folder.path("images.gz");
  std::string noise = idx_header(8, {100, 30, 30});
  for (int i = 0; i < 90'000; ++i) noise += static_cast<char>(i * 2654435761U >> 13);
  write_gz(path, noise);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  DataSpec spec;
  spec.train = {path, idx.folder.write("labels", idx.labels)};
  const auto data = load_data(spec);
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().code, ErrorCode::kDataRefused);
  EXPECT_NE(data.error().message.find("truncated"), std::string::npos) << data.error().message;
}

TEST(BadIdx, MissingFilesAndFoldersAreNamed) {
  TestFolder folder;
  DataSpec spec;
  spec.train = {folder.path("nowhere"), folder.path("nowhere")};
  EXPECT_NE(load_data(spec).error().message.find("nowhere: no such file"), std::string::npos);
  spec.train[0] = folder.path("");
  EXPECT_NE(load_data(spec).error().message.find("is a folder"), std::string::npos);
  spec.train = {"one"};
  EXPECT_EQ(load_data(spec).error().code, ErrorCode::kUsage);
  spec.format = "parquet";
  EXPECT_EQ(load_data(spec).error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace kith::compute
