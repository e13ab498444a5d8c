// The cluster key: its file, its secrecy, the pair derived from it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "node/mesh/cluster_key.h"

namespace kith::node {
namespace {

namespace fs = std::filesystem;

class ClusterKeyFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "kith-key-XXXXXX").string();
    ASSERT_NE(nullptr, mkdtemp(pattern.data()));
    folder_ = pattern;
    path_ = (folder_ / "cluster.key").string();
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path_) << text;
    ASSERT_EQ(0, chmod(path_.c_str(), mode));
  }
  fs::path folder_;
  std::string path_;
};

TEST_F(ClusterKeyFile, SavedAndLoadedIsTheSameKeyWithMode0600) {
  const auto key = ClusterKey::generate();
  ASSERT_TRUE(key.save(path_));
  struct stat info {};
  ASSERT_EQ(0, stat(path_.c_str(), &info));
  EXPECT_EQ(0600U, info.st_mode & 07777U);
  const auto again = ClusterKey::load(path_);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(key.curve().public_key, again->curve().public_key);
}

TEST_F(ClusterKeyFile, AnExistingFileIsNeverOverwritten) {
  write("precious");
  const auto saved = ClusterKey::generate().save(path_);
  ASSERT_FALSE(saved);
  EXPECT_EQ(ErrorCode::kUsage, saved.error().code);
  std::ifstream file(path_);
  std::string text;
  file >> text;
  EXPECT_EQ("precious", text);
}

TEST_F(ClusterKeyFile, AFileThatOthersCanReadIsRefusedWithTheRemedy) {
  for (const mode_t mode : {0640U, 0604U, 0610U, 0601U, 0666U}) {
    write(std::string(64, 'a'), mode);
    const auto key = ClusterKey::load(path_);
    ASSERT_FALSE(key) << std::oct << mode;
    EXPECT_EQ(ErrorCode::kUsage, key.error().code);
    EXPECT_NE(std::string::npos, key.error().message.find("chmod 600 " + path_))
        << key.error().message;
  }
}

TEST_F(ClusterKeyFile, WhatIsNoKeyIsRefusedWithoutShowingIt) {
  const std::string secret(64, 'a');
  for (const std::string& text : {std::string(), secret.substr(1), secret + "a", secret + "\n\nx",
                                  std::string(64, 'g'), secret + secret}) {
    write(text);
    const auto key = ClusterKey::load(path_);
    ASSERT_FALSE(key) << text.size();
    EXPECT_EQ(ErrorCode::kUsage, key.error().code);
    EXPECT_NE(std::string::npos, key.error().message.find(path_));
    EXPECT_EQ(std::string::npos, key.error().message.find("aaaaaaaa"));
  }
  write(secret + "\r\n");
  EXPECT_TRUE(ClusterKey::load(path_));
}

TEST_F(ClusterKeyFile, AMissingFileAndAFolderAreErrors) {
  const auto missing = ClusterKey::load(path_);
  ASSERT_FALSE(missing);
  EXPECT_EQ(ErrorCode::kNotFound, missing.error().code);
  EXPECT_NE(std::string::npos, missing.error().message.find("kith keygen"));
  EXPECT_FALSE(ClusterKey::load(folder_.string()));
}

TEST(ClusterKeyPair, DependsOnEveryByteOfTheSecretAndOnNothingElse) {
  const std::string zeros(64, '0');
  const auto first = ClusterKey::from_hex(zeros), second = ClusterKey::from_hex(zeros);
  auto changed_text = zeros;
  changed_text.back() = '1';
  const auto changed = ClusterKey::from_hex(changed_text);
  ASSERT_TRUE(first && second && changed);
  EXPECT_EQ(first->curve().public_key, second->curve().public_key);
  EXPECT_NE(first->curve().public_key, changed->curve().public_key);
  // The pair is not the file's bytes: who sees a CURVE key does not know the cluster key.
  const auto secret = first->curve().secret_key.bytes();
  EXPECT_TRUE(std::any_of(secret.begin(), secret.end(), [](std::uint8_t b) { return b != 0; }));
}

TEST(ClusterKeyPair, PrintsAsRedacted) {
  const auto key = ClusterKey::generate();
  std::ostringstream out;
  out << key << key.curve().secret_key;
  EXPECT_EQ("[redacted][redacted]", out.str());
  EXPECT_EQ("[redacted]", to_string(key));
}

}  // namespace
}  // namespace kith::node
