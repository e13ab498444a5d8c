// Reading data files, plain or compressed with gzip, as a stream. Errors are kDataRefused and name
// the file. Thread: one owner. Nothing is allocated on the word of a header: content is read in
// steps, so that a file that lies about its size ends as "truncated", not as a failed allocation.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace kith::compute {

class DataFile {
 public:
  static Result<DataFile> open(const std::string& path);
  DataFile(DataFile&&) noexcept;
  DataFile& operator=(DataFile&&) noexcept;
  ~DataFile();

  // Exactly out.size() bytes; fewer are an error that says which part is truncated.
  Status read(std::span<std::byte> out, const std::string& part);
  // `bytes` more bytes, in steps.
  Result<std::vector<std::byte>> read_content(std::size_t bytes);
  // Up to out.size() bytes; 0 at the end.
  Result<std::size_t> read_some(std::span<std::byte> out);
  // An error if anything follows.
  Status expect_end();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  struct Handle;
  DataFile(std::string path, std::unique_ptr<Handle> handle);
  std::string path_;
  std::unique_ptr<Handle> handle_;
};

tl::unexpected<Error> refuse_data(const std::string& path, const std::string& what);

}  // namespace kith::compute
