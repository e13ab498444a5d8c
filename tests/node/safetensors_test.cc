#include "node/store/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "base/random.h"
#include "tests/node/scratch_folder.h"

namespace kith::node {
namespace {

using testing::HasSubstr;

std::string file_of(const std::string& header, const std::string& data) {
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  return length + header + data;
}

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Reads as a stranger would: by the published format only.
TEST(Safetensors, FollowTheFormat) {
  const ScratchFolder folder;
  const std::string path = folder.file("a.safetensors");
  auto writer = SafetensorsWriter::create(
      path, {{"b", "F32", {1}}, {"a", "U8", {3}}, {"n", "I64", {}}}, {{"k", "v"}});
  ASSERT_TRUE(writer) << writer.error().message;
  const std::string data(
      "\0\0\x80\x3f"
      "xyz"
      "\x01\0\0\0\0\0\0\0",
      15);
  ASSERT_TRUE(writer->append(as_bytes(data.substr(0, 5))));
  ASSERT_TRUE(writer->append(as_bytes(data.substr(5))));
  ASSERT_TRUE(writer->commit());
  const std::string bytes = read_whole(path);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0U);
  const std::string header = bytes.substr(8, length);
  EXPECT_EQ(header.front(), '{');
  EXPECT_THAT(header, HasSubstr(R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})"));
  EXPECT_THAT(header, HasSubstr(R"("a":{"dtype":"U8","shape":[3],"data_offsets":[4,7]})"));
  EXPECT_THAT(header, HasSubstr(R"("n":{"dtype":"I64","shape":[],"data_offsets":[7,15]})"));
  EXPECT_THAT(header, HasSubstr(R"("k":"v")"));
  EXPECT_EQ(bytes.substr(8 + length), data);
}

TEST(Safetensors, ReadBackWhatWasWritten) {
  const ScratchFolder folder;
  const std::string path = folder.file("a.safetensors");
  auto writer = SafetensorsWriter::create(path, {{"x", "U8", {2, 2}}, {"empty", "F32", {0}}}, {});
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->append(as_bytes("abcd")));
  ASSERT_TRUE(writer->commit());
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->verify_content());
  EXPECT_EQ(file->bytes("x")->size(), 4U);
  EXPECT_EQ(std::memcmp(file->bytes("x")->data(), "abcd", 4), 0);
  EXPECT_EQ(file->bytes("empty")->size(), 0U);
  EXPECT_EQ(file->bytes("none").error().code, ErrorCode::kNotFound);
}

TEST(Safetensors, AWriterThatDoesNotCommitLeavesNothing) {
  const ScratchFolder folder;
  {
    auto writer = SafetensorsWriter::create(folder.file("a"), {{"x", "U8", {4}}}, {});
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->append(as_bytes("ab")));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Safetensors, ReplacingAFileIsAllOrNothing) {
  const ScratchFolder folder;
  const std::string path = folder.write("a", "before");
  auto writer = SafetensorsWriter::create(path, {{"x", "U8", {1}}}, {});
  ASSERT_TRUE(writer);
  EXPECT_EQ(read_whole(path), "before");
  ASSERT_TRUE(writer->append(as_bytes("a")));
  EXPECT_EQ(read_whole(path), "before");
  ASSERT_TRUE(writer->commit());
  EXPECT_TRUE(SafetensorsFile::open(path));
}

TEST(Safetensors, RefuseWhatCannotBeWritten) {
  const ScratchFolder folder;
  const std::string path = folder.file("a");
  EXPECT_FALSE(SafetensorsWriter::create(path, {{"x", "U8", {1}}, {"x", "U8", {1}}}, {}));
  EXPECT_FALSE(SafetensorsWriter::create(path, {{"x", "COMPLEX", {1}}}, {}));
  EXPECT_FALSE(SafetensorsWriter::create(path, {{"x", "I64", {1ULL << 62}}}, {}));
  EXPECT_FALSE(SafetensorsWriter::create(path, {{"x\xff", "U8", {1}}}, {}));
  const auto nowhere = SafetensorsWriter::create(folder.file("no/such/folder/a"), {}, {});
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message, HasSubstr("No such file or directory"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// -- hostile files --

struct BadFile {
  const char* name;
  std::string bytes;
  const char* why;
};
class BadSafetensors : public testing::TestWithParam<BadFile> {};

TEST_P(BadSafetensors, AreCorruptWithTheReason) {
  const ScratchFolder folder;
  const auto file = SafetensorsFile::open(folder.write("a", GetParam().bytes));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(file.error().message, HasSubstr(folder.file("a")));
  EXPECT_THAT(file.error().message, HasSubstr(GetParam().why));
}

std::string tensor(const std::string& fields) { return R"({"x":{)" + fields + "}}"; }
const std::string kHuge = "18446744073709551615";

const BadFile kBadFiles[] = {
    {"Empty", "", "empty"},
    {"Short", "1234567", "shorter than 8"},
    {"HeaderLongerThanFile", file_of("{}", "").substr(0, 9), "header has 2 bytes"},
    {"HugeHeader", std::string(8, '\xff') + "{}", "18446744073709551615"},
    {"HeaderAboveLimit", std::string("\0\0\0\x40\0\0\0\0", 8) + "{}", "1073741824"},
    {"EmptyHeader", std::string(8, '\0'), "begin with '{'"},
    {"NotJson", file_of("{\"x\":", ""), "not valid JSON"},
    {"BlankFirst", file_of(" {}", ""), "begin with '{'"},
    {"ListNotObject", file_of("[]", ""), "begin with '{'"},
    {"TwoObjects", file_of("{}{}", ""), "not valid JSON"},
    {"DeepNesting", file_of("{\"x\":" + std::string(100000, '['), ""), "nested"},
    {"NameTwice",
     file_of(
         R"({"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
         ""),
     "twice"},
    {"NotUtf8", file_of("{\"\xff\":1}", ""), "not valid JSON"},
    {"TensorIsNumber", file_of(R"({"x":1})", ""), "needs dtype"},
    {"NoDtype", file_of(tensor(R"("shape":[1],"data_offsets":[0,1])"), "a"), "needs dtype"},
    {"MoreFields", file_of(tensor(R"("dtype":"U8","shape":[1],"data_offsets":[0,1],"z":1)"), "a"),
     "nothing else"},
    {"UnknownDtype", file_of(tensor(R"("dtype":"U9","shape":[1],"data_offsets":[0,1])"), "a"),
     "U9"},
    {"DtypeNumber", file_of(tensor(R"("dtype":8,"shape":[1],"data_offsets":[0,1])"), "a"),
     "dtype is not text"},
    {"NegativeShape", file_of(tensor(R"("dtype":"U8","shape":[-1],"data_offsets":[0,1])"), "a"),
     "shape"},
    {"FractionShape", file_of(tensor(R"("dtype":"U8","shape":[1.0],"data_offsets":[0,1])"), "a"),
     "shape"},
    {"ShapeOverflow",
     file_of(tensor(R"("dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0])"), ""),
     "another number of bytes"},
    {"ShapeOverflowBytes",
     file_of(tensor(R"("dtype":"I64","shape":[)" + kHuge + R"(],"data_offsets":[0,1])"), "a"),
     "another number of bytes"},
    {"ShapeBeyondU64",
     file_of(tensor(R"("dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,1])"), "a"),
     "shape"},
    {"RankTooHigh",
     file_of(
         tensor(R"("dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,1])"),
         "a"),
     "short list"},
    {"OffsetsBackwards", file_of(tensor(R"("dtype":"U8","shape":[1],"data_offsets":[1,0])"), "a"),
     "rising"},
    {"OneOffset", file_of(tensor(R"("dtype":"U8","shape":[1],"data_offsets":[1])"), "a"),
     "two rising"},
    {"OffsetBeyondFile", file_of(tensor(R"("dtype":"U8","shape":[2],"data_offsets":[0,2])"), "a"),
     "describes 2 bytes"},
    {"HugeOffset",
     file_of(tensor(R"("dtype":"U8","shape":[1],"data_offsets":[)" + kHuge + "," + kHuge + "]"),
             "a"),
     "another number"},
    {"DataLeftOver", file_of(tensor(R"("dtype":"U8","shape":[1],"data_offsets":[0,1])"), "ab"),
     "the file has 2"},
    {"HoleAtStart", file_of(tensor(R"("dtype":"U8","shape":[1],"data_offsets":[1,2])"), "ab"),
     "begins at byte 1"},
    {"Overlap",
     file_of(
         R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"y":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
         "abc"),
     "begins at byte 1"},
    {"MetadataList", file_of(R"({"__metadata__":[]})", ""), "__metadata__"},
    {"MetadataNumber", file_of(R"({"__metadata__":{"k":1}})", ""), "not text"},
};
INSTANTIATE_TEST_SUITE_P(Table, BadSafetensors, testing::ValuesIn(kBadFiles),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Safetensors, AFolderOrAMissingFileIsNoFile) {
  const ScratchFolder folder;
  EXPECT_EQ(SafetensorsFile::open(folder.path()).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(SafetensorsFile::open(folder.file("x")).error().code, ErrorCode::kNotFound);
}

// Any one byte changed anywhere: found when opening or by the content hash.
TEST(Safetensors, AnyChangedByteIsFound) {
  const ScratchFolder folder;
  const std::string path = folder.file("a");
  auto writer = SafetensorsWriter::create(path, {{"x", "U8", {64}}}, {{"k", "v"}});
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->append(as_bytes(std::string(64, 'd'))));
  ASSERT_TRUE(writer->commit());
  const std::string good = read_whole(path);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x04);
    const auto file = SafetensorsFile::open(folder.write("b", bad));
    EXPECT_TRUE(!file || !file->verify_content()) << "byte " << i;
  }
}

// Random damage, several bytes at once, may be refused or read, but never crashes (the sanitizers
// watch).
TEST(Safetensors, RandomDamageNeverCrashes) {
  const ScratchFolder folder;
  Random random(1);
  const std::string good = file_of(
      R"({"__metadata__":{"k":"v"},"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"y":{"dtype":"U8","shape":[],"data_offsets":[24,25]}})",
      std::string(25, 'd'));
  for (int round = 0; round < 1000; ++round) {
    std::string bad = good;
    for (std::uint64_t k = 1 + random.below(4); k > 0; --k) {
      const std::size_t at = random.below(bad.size());
      switch (random.below(4)) {
        case 0:
          bad[at] = static_cast<char>(random.next());
          break;
        case 1:
          bad.erase(at, 1 + random.below(8));
          break;
        case 2:
          bad.insert(at, 1, "{}[]\",:0123456789e-"[random.below(19)]);
          break;
        default:
          bad.insert(at, bad.substr(random.below(bad.size()), random.below(20)));
      }
    }
    const auto file = SafetensorsFile::open(folder.write("b", bad));
    if (!file) continue;
    for (const auto& entry : file->tensors()) EXPECT_TRUE(file->bytes(entry.name));
    EXPECT_FALSE(file->verify_content());
  }
}

}  // namespace
}  // namespace kith::node
