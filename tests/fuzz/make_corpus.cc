// Writes the seeds of all fuzzers: make_corpus DIRECTORY. For each message: `valid` (every
// field set; also the golden bytes of tests/schema/corpus_test.cc, so a changed wire format shows),
// three random ones, truncations with and without a fitting table, and hostile values of single
// words. Run it only when a message gains a field, and keep its `valid` from before as `earlier-N`
// (tests/schema/versions_test.cc).

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "schema/codec.h"
#include "tests/fuzz/file_seeds.h"
#include "tests/schema/samples.h"

namespace kith::schema {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

void write(const fs::path& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

Bytes cut_to(const Bytes& whole, std::size_t words) {
  Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(8 * (1 + words)));
  const auto count = static_cast<std::uint32_t>(words);
  std::memcpy(cut.data() + 4, &count, 4);
  return cut;
}

// The smallest of several random messages, so that seeds stay small.
Bytes small_random(std::size_t kind, std::uint64_t seed) {
  Bytes smallest;
  for (std::uint64_t i = 0; i < 20; ++i) {
    Random random(seed * 1000 + i);
    Bytes bytes = encode(random_message(kind, random));
    if (smallest.empty() || bytes.size() < smallest.size()) smallest = std::move(bytes);
  }
  return smallest;
}

void write_kind(const fs::path& root, std::size_t kind) {
  const fs::path dir = root / kind_name(kind);
  fs::create_directories(dir);
  const Bytes valid = encode(sample_messages()[kind]);
  const std::size_t words = valid.size() / 8 - 1;
  write(dir / "valid", valid);
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    write(dir / ("random-" + std::to_string(seed)), small_random(kind, seed));
  for (const std::size_t part : {1, 2, 3}) {
    write(dir / ("cut-" + std::to_string(part)), std::span(valid).first(valid.size() * part / 4));
    write(dir / ("short-" + std::to_string(part)),
          cut_to(valid, std::max<std::size_t>(words * part / 4, 1)));
  }
  Bytes segments = valid;
  std::memset(segments.data(), 0xFF, 4);
  write(dir / "segments", segments);
  Bytes pointer = valid;
  std::memset(pointer.data() + 24, 0xFF, 8);  // the envelope's pointer
  write(dir / "pointer", pointer);
}

}  // namespace
}  // namespace kith::schema

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  for (std::size_t kind = 0; kind < kith::schema::kMessageKinds; ++kind)
    kith::schema::write_kind(argv[1], kind);
  kith::write_file_seeds(argv[1]);
  return 0;
}
