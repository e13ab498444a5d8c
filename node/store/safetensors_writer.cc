#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/check.h"
#include "base/fault_point.h"
#include "base/hash.h"
#include "node/store/safetensors.h"
#include "node/store/safetensors_header.h"

namespace kith::node {
namespace {

constexpr std::size_t kHashHexLength = 64;

tl::unexpected<Error> cannot_write(const std::string& path) {
  return fail("cannot write " + path + ": " + std::strerror(errno));
}

Status write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return cannot_write(path);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
  return {};
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

Status sync_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return cannot_write(folder);
  const bool ok =
      ::fsync(fd) == 0 || errno == EINVAL;  // some file systems have nothing to sync here
  const int error = errno;
  ::close(fd);
  errno = error;
  return ok ? Status{} : cannot_write(folder);
}

// Never the name of a file that another writer, here or in another process, has open.
std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> count{0};
  return path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
}

}  // namespace

struct SafetensorsWriter::Impl {
  std::string path;
  std::string temporary;
  int fd = -1;
  std::uint64_t bytes_left = 0;
  std::uint64_t hash_at = 0;  // file offset of the 64 characters
  Hasher hasher;

  ~Impl() {
    if (fd < 0) return;
    ::close(fd);
    ::unlink(temporary.c_str());
  }

  Status open_temporary() {
    temporary = temporary_name(path);
    fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0) return cannot_write(path);
    return {};
  }

  Status put(std::span<const std::byte> bytes) {
    hasher.add(bytes);
    return write_all(fd, bytes, path);
  }

  Status put_header(const std::string& json) {
    std::array<std::byte, 8> length{};
    for (std::size_t i = 0; i < length.size(); ++i)
      length[i] = static_cast<std::byte>((json.size() >> (8 * i)) & 0xFF);
    const std::string marker = "\"" + std::string(kContentHashKey) + "\":\"";
    const auto found = json.find(marker + std::string(kHashHexLength, '0') + "\"");
    KITH_CHECK(found != std::string::npos, "the header has a place for the content hash");
    hash_at = length.size() + found + marker.size();
    KITH_TRY(put(length));
    return put(as_bytes(json));
  }

  Status patch_hash() {
    const std::string hex = hasher.finish().hex();
    const auto offset = static_cast<off_t>(hash_at);
    if (::pwrite(fd, hex.data(), hex.size(), offset) != static_cast<ssize_t>(hex.size()))
      return cannot_write(path);
    return {};
  }

  Status sync_and_rename() {
    if (::fsync(fd) != 0) return cannot_write(path);
    pass(FaultPoint::kCheckpointWritten);
    if (::rename(temporary.c_str(), path.c_str()) != 0) return cannot_write(path);
    ::close(fd);
    fd = -1;
    pass(FaultPoint::kCheckpointRenamed);
    return sync_folder(folder_of(path));
  }
};

SafetensorsWriter::SafetensorsWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter::~SafetensorsWriter() = default;

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path,
                                                    std::vector<TensorEntry> tensors,
                                                    std::map<std::string, std::string> metadata) {
  metadata[kContentHashKey] = std::string(kHashHexLength, '0');
  auto json = format_header(tensors, metadata);
  if (!json) return fail(json.error().code, path + ": " + json.error().message);
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  for (const TensorEntry& tensor : tensors) impl->bytes_left += tensor.byte_count();
  KITH_TRY(impl->open_temporary());
  KITH_TRY(impl->put_header(*json));
  return SafetensorsWriter(std::move(impl));
}

Status SafetensorsWriter::append(std::span<const std::byte> bytes) {
  KITH_CHECK(bytes.size() <= impl_->bytes_left, "no more bytes than the tensors have");
  impl_->bytes_left -= bytes.size();
  return impl_->put(bytes);
}

Status SafetensorsWriter::commit() {
  KITH_CHECK(impl_->bytes_left == 0, "every byte of every tensor was appended");
  KITH_TRY(impl_->patch_hash());
  return impl_->sync_and_rename();
}

}  // namespace kith::node
