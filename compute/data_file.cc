#include "compute/data_file.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace kith::compute {

struct DataFile::Handle {
  gzFile file = nullptr;  // zlib reads plain files as they are
  ~Handle() {
    if (file) gzclose(file);
  }
};

tl::unexpected<Error> refuse_data(const std::string& path, const std::string& what) {
  return fail(ErrorCode::kDataRefused, path + ": " + what);
}

DataFile::DataFile(std::string path, std::unique_ptr<Handle> handle)
    : path_(std::move(path)), handle_(std::move(handle)) {}
DataFile::DataFile(DataFile&&) noexcept = default;
DataFile& DataFile::operator=(DataFile&&) noexcept = default;
DataFile::~DataFile() = default;

Result<DataFile> DataFile::open(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return refuse_data(path, "no such file");
  if (std::filesystem::is_directory(status))
    return refuse_data(path, "is a folder, expected a file");
  auto handle = std::make_unique<Handle>();
  handle->file = gzopen(path.c_str(), "rb");
  if (!handle->file)
    return refuse_data(path, std::string("cannot be opened: ") + std::strerror(errno));
  gzbuffer(handle->file, 1U << 17);
  return DataFile(path, std::move(handle));
}

Result<std::size_t> DataFile::read_some(std::span<std::byte> out) {
  constexpr std::size_t kMost = std::size_t{1} << 30;
  const auto wanted = static_cast<unsigned>(std::min(out.size(), kMost));
  const int got = gzread(handle_->file, out.data(), wanted);
  int code = Z_OK;
  const char* text = gzerror(handle_->file, &code);
  if (got < 0 || code == Z_BUF_ERROR || code == Z_DATA_ERROR) {
    if (code == Z_BUF_ERROR) return refuse_data(path_, "truncated: the compressed data ends early");
    return refuse_data(
        path_, std::string("cannot be read: ") + (code == Z_ERRNO ? std::strerror(errno) : text));
  }
  return static_cast<std::size_t>(got);
}

Status DataFile::read(std::span<std::byte> out, const std::string& part) {
  std::size_t done = 0;
  while (done < out.size()) {
    KITH_ASSIGN(const std::size_t got, read_some(out.subspan(done)));
    if (got == 0) {
      return refuse_data(path_, "truncated in its " + part + ": " + std::to_string(out.size()) +
                                    " bytes expected, " + std::to_string(done) + " there");
    }
    done += got;
  }
  return {};
}

Result<std::vector<std::byte>> DataFile::read_content(std::size_t bytes) {
  constexpr std::size_t kStep = std::size_t{16} << 20;
  std::vector<std::byte> content;
  while (content.size() < bytes) {
    const std::size_t had = content.size();
    content.resize(std::min(bytes, had + kStep));
    std::size_t filled = had;
    while (filled < content.size()) {
      KITH_ASSIGN(const std::size_t got, read_some(std::span(content).subspan(filled)));
      if (got == 0) {
        return refuse_data(path_, "truncated: its header announces " + std::to_string(bytes) +
                                      " bytes of values, " + std::to_string(filled) + " are there");
      }
      filled += got;
    }
  }
  return content;
}

Status DataFile::expect_end() {
  std::byte one{};
  KITH_ASSIGN(const std::size_t got, read_some({&one, 1}));
  if (got != 0) return refuse_data(path_, "longer than its header announces");
  return {};
}

}  // namespace kith::compute
