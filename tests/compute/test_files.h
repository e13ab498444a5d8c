// Small data files for tests, in a folder that goes away with the test.
#pragma once

#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace kith::compute::testing {

class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "kith-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string write(const std::string& name, const std::string& bytes) const {
    const std::string path = (path_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// The bytes of numbers, in the machine's order or reversed.
template <typename T>
std::string bytes_of(const std::vector<T>& values, bool big_endian) {
  std::string bytes;
  for (const T value : values) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    for (std::size_t i = 0; i < sizeof(T); ++i) bytes += raw[big_endian ? sizeof(T) - 1 - i : i];
  }
  return bytes;
}

inline std::string idx_header(unsigned char type, const std::vector<std::uint32_t>& dims) {
  std::string bytes{'\0', '\0', static_cast<char>(type), static_cast<char>(dims.size())};
  return bytes + bytes_of(dims, true);
}

// An npy file; `version` 1 to 3.
inline std::string npy(const std::string& descr, bool fortran, const std::string& shape,
                       const std::string& data, int version = 1) {
  std::string header = "{'descr': '" + descr +
                       "', 'fortran_order': " + (fortran ? "True" : "False") +
                       ", 'shape': " + shape + ", }";
  const std::size_t head = version == 1 ? 10 : 12;
  while ((head + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  if (version == 1) {
    bytes += bytes_of(std::vector<std::uint16_t>{static_cast<std::uint16_t>(header.size())}, false);
  } else {
    bytes += bytes_of(std::vector<std::uint32_t>{static_cast<std::uint32_t>(header.size())}, false);
  }
  return bytes + header + data;
}

inline std::string digits(const std::string& name) {
  return std::string(KITH_SOURCE_DIR) + "/data/mnist/" + name;
}

}  // namespace kith::compute::testing
