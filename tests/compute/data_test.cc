#include "compute/data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "test_files.h"

namespace kith::compute {
namespace {

using testing::TestFolder;

// Ten samples: value = number of the sample, label as given.
struct TenSamples {
  TestFolder folder;
  DataSpec spec;
  TenSamples() {
    const int kLabelOf[10] = {3, 1, 0, 2, 1, 0, 3, 2, 0, 1};
    std::string text;
    for (int i = 0; i < 10; ++i)
      text += std::to_string(i) + "," + std::to_string(kLabelOf[i]) + "\n";
    spec.format = "csv";
    spec.train = {folder.write("train.csv", text)};
    spec.mean = 0.0;
    spec.std = 1.0;
  }
  std::vector<int> shard(const std::string& name, const std::string& by) {
    spec.shard = name;
    spec.shard_by = by;
    const auto data = load_data(spec);
    if (!data) return {};
    return {data->train.inputs.begin(), data->train.inputs.end()};
  }
};

TEST(Shards, ByIndexGoRound) {
  TenSamples ten;
  EXPECT_EQ(ten.shard("1/4", "index"), (std::vector<int>{0, 4, 8}));
  EXPECT_EQ(ten.shard("2/4", "index"), (std::vector<int>{1, 5, 9}));
  EXPECT_EQ(ten.shard("4/4", "index"), (std::vector<int>{3, 7}));
  EXPECT_EQ(ten.shard("all", "index").size(), 10U);
  EXPECT_EQ(ten.shard("auto", "index"), ten.shard("all", "index"));
}

TEST(Shards, ByLabelAndAutoContradictEachOther) {
  TenSamples ten;
  ten.spec.shard = "auto";
  ten.spec.shard_by = "label";
  const auto data = load_data(ten.spec);
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().code, ErrorCode::kUsage);
  EXPECT_NE(data.error().message.find("k/n"), std::string::npos) << data.error().message;
}

TEST(Shards, ByLabelAreCutFromTheSortedSamples) {
  TenSamples ten;  // sorted: 2 5 8 | 1 4 9 | 3 7 | 0 6
  EXPECT_EQ(ten.shard("1/2", "label"), (std::vector<int>{2, 5, 8, 1, 4}));
  EXPECT_EQ(ten.shard("2/2", "label"), (std::vector<int>{9, 3, 7, 0, 6}));
  EXPECT_EQ(ten.shard("1/3", "label"), (std::vector<int>{2, 5, 8}));
}

TEST(Shards, TogetherHoldEverySampleOnce) {
  TenSamples ten;
  for (const char* by : {"index", "label"}) {
    std::multiset<int> seen;
    for (const char* name : {"1/3", "2/3", "3/3"}) {
      for (const int v : ten.shard(name, by)) seen.insert(v);
    }
    EXPECT_EQ(seen.size(), 10U);
    EXPECT_EQ(std::set<int>(seen.begin(), seen.end()).size(), 10U);
  }
}

TEST(Shards, SpecificationsAreParsedStrictly) {
  EXPECT_EQ(parse_shard("2/4")->index, 2U);
  EXPECT_EQ(parse_shard("2/4")->count, 4U);
  EXPECT_EQ(parse_shard("all")->count, 0U);
  for (const char* bad :
       {"", "0/4", "5/4", "2", "2/", "/4", "2/4x", "a/b", "-1/4", "2 /4", "1/0", "ALL"}) {
    const auto shard = parse_shard(bad);
    ASSERT_FALSE(shard) << bad;
    EXPECT_EQ(shard.error().code, ErrorCode::kUsage);
    EXPECT_NE(shard.error().message.find("2/4"), std::string::npos);
  }
}

TEST(Shards, AnEmptyOneIsRefused) {
  TenSamples ten;
  ten.spec.shard = "11/11";
  const auto data = load_data(ten.spec);
  ASSERT_FALSE(data);
  EXPECT_NE(data.error().message.find("shard 11/11 is empty, the file has only 10 samples"),
            std::string::npos);
}

TEST(Data, StatisticsAndFingerprintAreOfTheWholeFileWhateverTheShard) {
  TenSamples ten;
  ten.spec.mean = ten.spec.std = std::nullopt;
  const auto whole = load_data(ten.spec);
  ten.spec.shard = "1/4";
  const auto quarter = load_data(ten.spec);
  ASSERT_TRUE(whole && quarter);
  EXPECT_DOUBLE_EQ(whole->mean, 4.5);
  EXPECT_DOUBLE_EQ(whole->std, std::sqrt(8.25));
  EXPECT_EQ(whole->mean, quarter->mean);
  EXPECT_EQ(whole->std, quarter->std);
  EXPECT_EQ(whole->fingerprint, quarter->fingerprint);
  EXPECT_EQ(quarter->whole_count, 10U);
  EXPECT_EQ(quarter->shard_index, 1U);
  EXPECT_EQ(quarter->shard_count, 4U);
  EXPECT_EQ(whole->classes, 4U);
}

TEST(Data, TheFingerprintSeesEveryValueAndLabel) {
  TestFolder folder;
  std::set<std::string> seen;
  for (const char* text :
       {"1,0\n2,1\n", "1,0\n3,1\n", "1,1\n2,1\n", "2,1\n1,0\n", "1,0\n2,1\n2,1\n"}) {
    DataSpec spec;
    spec.format = "csv";
    spec.train = {folder.write("t.csv", text)};
    seen.insert(load_data(spec)->fingerprint.hex());
  }
  EXPECT_EQ(seen.size(), 5U);
}

TEST(Data, TheTestSetUsesTheTrainingSetsNormalisationAndClasses) {
  TenSamples ten;
  ten.spec.mean = ten.spec.std = std::nullopt;
  ten.spec.test = {ten.folder.write("test.csv", "4.5,3\n")};
  const auto data = load_data(ten.spec);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(data->test.inputs, (std::vector<float>{0}));
  ten.spec.test = {ten.folder.write("test.csv", "4.5,4\n")};
  EXPECT_NE(load_data(ten.spec).error().message.find("test.csv:1: its label is 4, expected 0 to 3"),
            std::string::npos);
  ten.spec.test = {ten.folder.write("test.csv", "4.5,1,3\n")};
  EXPECT_NE(load_data(ten.spec).error().message.find("its samples are 2, those of"),
            std::string::npos);
}

TEST(Data, ConstantInputsAreNotDividedByZero) {
  TestFolder folder;
  DataSpec spec;
  spec.format = "csv";
  spec.train = {folder.write("t.csv", "5,0\n5,1\n")};
  const auto data = load_data(spec);
  ASSERT_TRUE(data);
  EXPECT_EQ(data->train.inputs, (std::vector<float>{0, 0}));
}

TEST(Data, SettingsOutOfRangeAreUsageErrors) {
  TenSamples ten;
  ten.spec.std = 0.0;
  EXPECT_EQ(load_data(ten.spec).error().code, ErrorCode::kUsage);
  ten.spec.std = 1.0;
  ten.spec.shard_by = "colour";
  EXPECT_EQ(load_data(ten.spec).error().code, ErrorCode::kUsage);
  ten.spec.shard_by = "index";
  ten.spec.classes = 1;
  EXPECT_EQ(load_data(ten.spec).error().code, ErrorCode::kDataRefused);
}

TEST(Data, DigitsByLabelGiveEachQuarterFewClasses) {
  DataSpec spec;
  spec.train = {testing::digits("train-images-idx3-ubyte.gz"),
                testing::digits("train-labels-idx1-ubyte.gz")};
  spec.shard_by = "label";
  spec.shard = "2/4";
  const auto data = load_data(spec);
  ASSERT_TRUE(data);
  const std::set<std::int64_t> classes(data->train.labels.begin(), data->train.labels.end());
  EXPECT_LE(classes.size(), 4U);
  EXPECT_EQ(data->classes, 10U);
}

}  // namespace
}  // namespace kith::compute
