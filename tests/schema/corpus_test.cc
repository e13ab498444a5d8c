// The committed seeds of the fuzzers, run as a plain test by every compiler. `valid` is also the
// golden wire format: as long as it decodes to the sample, no field was renumbered, retyped or
// reused.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "schema/codec.h"
#include "tests/schema/samples.h"

namespace kith::schema {
namespace {

namespace fs = std::filesystem;

fs::path corpus_of(std::size_t kind) {
  return fs::path(KITH_SOURCE_DIR) / "tests/fuzz/corpus" / kind_name(kind);
}

std::vector<std::byte> read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(GoldenBytes, OfEveryMessageStillDecodeToTheSample) {
  for (std::size_t kind = 0; kind < kMessageKinds; ++kind) {
    const auto decoded = decode(read(corpus_of(kind) / "valid"));
    ASSERT_TRUE(decoded) << kind_name(kind) << ": " << decoded.error().message;
    EXPECT_TRUE(*decoded == sample_messages()[kind]) << kind_name(kind);
  }
}

TEST(Corpus, HasSeedsForEveryMessageThatDecodeAsTheirNamesSay) {
  for (std::size_t kind = 0; kind < kMessageKinds; ++kind) {
    std::size_t files = 0;
    for (const auto& entry : fs::directory_iterator(corpus_of(kind))) {
      const std::string name = entry.path().filename().string();
      const auto decoded = decode(read(entry.path()));
      const bool good =
          name == "valid" || name.starts_with("random") || name.starts_with("earlier");
      EXPECT_EQ(decoded.has_value(), good) << entry.path();
      ++files;
    }
    EXPECT_GE(files, 8U) << kind_name(kind);
  }
}

}  // namespace
}  // namespace kith::schema
