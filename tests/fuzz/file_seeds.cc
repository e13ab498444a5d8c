#include "tests/fuzz/file_seeds.h"

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace kith {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& content) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

void write_gz(const fs::path& path, const std::string& content) {
  fs::create_directories(path.parent_path());
  gzFile file = gzopen(path.c_str(), "wb9");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
}

std::string big_u32(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

// Two images of 3 x 2, and four numbers of each other type.
void write_idx(const fs::path& dir) {
  const std::string images =
      std::string("\0\0\x08\x03", 4) + big_u32(2) + big_u32(3) + big_u32(2) + "abcdefABCDEF";
  write(dir / "images", images);
  write_gz(dir / "images.gz", images);
  write(dir / "labels", std::string("\0\0\x08\x01", 4) + big_u32(4) + std::string("\0\1\2\1", 4));
  const std::string four = std::string("\0\0\x0D\x02", 4) + big_u32(2) + big_u32(2);
  write(dir / "float32", four + std::string("\x3F\x80\0\0", 4) + std::string(12, '\0'));
  write(dir / "float64",
        std::string("\0\0\x0E\x01", 4) + big_u32(1) + std::string("\x3F\xF0\0\0\0\0\0\0", 8));
  write(dir / "int16",
        std::string("\0\0\x0B\x01", 4) + big_u32(2) + std::string("\0\1\xFF\xFE", 4));
  write(dir / "short", images.substr(0, images.size() - 3));
  write(dir / "huge",
        std::string("\0\0\x08\x03", 4) + big_u32(~0U) + big_u32(~0U) + big_u32(~0U) + "abc");
}

std::string npy(int version, const std::string& descr, const std::string& order,
                const std::string& shape, const std::string& data) {
  std::string dict =
      "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  const std::size_t prefix = version == 1 ? 10 : 12;
  while ((prefix + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  std::string out = std::string("\x93NUMPY", 6) + static_cast<char>(version) + std::string(1, '\0');
  for (std::size_t i = 0, size = dict.size(); i < prefix - 8; ++i, size >>= 8)
    out += static_cast<char>(size & 0xFF);
  return out + dict + data;
}

void write_npy(const fs::path& dir) {
  write(dir / "u1", npy(1, "|u1", "False", "(2, 3)", "abcdef"));
  write(dir / "f4-fortran", npy(1, "<f4", "True", "(2, 3)", std::string(24, '\x3E')));
  write(dir / "f8-big", npy(2, ">f8", "False", "(2,)",
                            std::string("\x3F\xF0\0\0\0\0\0\0", 8) + std::string(8, '\0')));
  write(dir / "i8-v3", npy(3, "<i8", "False", "(1, 2)", std::string(16, '\1')));
  write(dir / "scalar", npy(1, "<f4", "False", "()", std::string(4, '\0')));
  write(dir / "object", npy(1, "|O", "False", "(2,)", std::string(16, '\0')));
  write(dir / "huge", npy(1, "<f4", "False", "(4294967296, 4294967296, 16)", "abc"));
  write_gz(dir / "u1.gz", npy(1, "|u1", "False", "(2, 3)", "abcdef"));
}

void write_csv(const fs::path& dir) {
  write(dir / "plain", "0.5,1.5,0\n-1e3,2,1\n");
  write(dir / "header-bom-crlf", "\xEF\xBB\xBFx,y,label\r\n1,2,0\r\n3,4,1");
  write(dir / "ragged", "1,2,0\n1,2\n");
  write(dir / "words", "1,two,0\nnan,2,0\ninf,2,1\n1e999,2,0\n");
  write(dir / "one-column", "1\n2\n");
  write(dir / "blank", "\n\n1,0\n\n2,1\n\n");
}

std::string tensors(const std::string& json, const std::string& data) {
  std::string padded = json;
  while (padded.size() % 8 != 0) padded += ' ';
  std::string out;
  for (std::size_t i = 0, size = padded.size(); i < 8; ++i, size >>= 8)
    out += static_cast<char>(size & 0xFF);
  return out + padded + data;
}

void write_safetensors(const fs::path& dir) {
  write(
      dir / "two",
      tensors(
          R"({"__metadata__":{"step":"7"},"a.weight":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
          R"("n":{"dtype":"I64","shape":[],"data_offsets":[8,16]}})",
          std::string(16, '\1')));
  write(dir / "empty", tensors("{}", ""));
  write(dir / "hole",
        tensors(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})", "abcdefgh"));
  write(dir / "overlap", tensors(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                                 R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                                 "abcdef"));
  write(
      dir / "overflow",
      tensors(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", ""));
  write(dir / "length", std::string(8, '\xFF') + "{}");
  write(dir / "nested", tensors(std::string(200, '['), ""));
}

}  // namespace

void write_file_seeds(const std::string& root) {
  write_idx(fs::path(root) / "idx");
  write_npy(fs::path(root) / "npy");
  write_csv(fs::path(root) / "csv");
  write_safetensors(fs::path(root) / "safetensors");
}

}  // namespace kith
