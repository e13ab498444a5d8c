#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/hash.h"
#include "node/store/safetensors.h"
#include "node/store/safetensors_header.h"

namespace kith::node {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kHashHexLength = 64;

std::uint64_t read_length(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    value |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
  return value;
}

}  // namespace

struct SafetensorsFile::Impl {
  std::string path;
  std::span<const std::byte> map;
  std::size_t data_at = 0;
  SafetensorsHeader header;

  ~Impl() {
    if (!map.empty()) ::munmap(const_cast<std::byte*>(map.data()), map.size());
  }

  [[nodiscard]] tl::unexpected<Error> corrupt(const std::string& what) const {
    return fail(ErrorCode::kCorrupt, path + ": " + what);
  }

  Status map_file() {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
      return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kFailed,
                  "cannot read " + path + ": " + std::strerror(errno));
    struct stat info {};
    const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    const auto size = regular ? static_cast<std::size_t>(info.st_size) : 0;
    void* address = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0) : nullptr;
    const int error = errno;
    ::close(fd);
    if (!regular) return corrupt("is not a regular file");
    if (size == 0) return corrupt("is empty");
    if (address == MAP_FAILED) return fail("cannot map " + path + ": " + std::strerror(error));
    map = {static_cast<const std::byte*>(address), size};
    return {};
  }

  Status parse() {
    if (map.size() < kLengthBytes) return corrupt("is shorter than 8 bytes");
    const std::uint64_t length = read_length(map);
    if (length > kHeaderLengthMax || length > map.size() - kLengthBytes)
      return corrupt("says that its header has " + std::to_string(length) +
                     " bytes; the file has " + std::to_string(map.size()) + " in all");
    data_at = kLengthBytes + length;
    const auto parsed = parse_header(header_text(), map.size() - data_at);
    if (!parsed) return corrupt(parsed.error().message);
    header = *parsed;
    return {};
  }

  [[nodiscard]] std::string_view header_text() const {
    return {reinterpret_cast<const char*>(map.data()) + kLengthBytes, data_at - kLengthBytes};
  }
};

SafetensorsFile::SafetensorsFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile::~SafetensorsFile() = default;

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  KITH_TRY(impl->map_file());
  KITH_TRY(impl->parse());
  return SafetensorsFile(std::move(impl));
}

const std::vector<TensorEntry>& SafetensorsFile::tensors() const { return impl_->header.tensors; }

const std::map<std::string, std::string>& SafetensorsFile::metadata() const {
  return impl_->header.metadata;
}

const TensorEntry* SafetensorsFile::find(const std::string& name) const {
  const auto found = std::ranges::find(tensors(), name, &TensorEntry::name);
  return found == tensors().end() ? nullptr : &*found;
}

Result<std::span<const std::byte>> SafetensorsFile::bytes(const std::string& name) const {
  const TensorEntry* entry = find(name);
  if (entry == nullptr)
    return fail(ErrorCode::kNotFound, impl_->path + ": has no tensor '" + name + "'");
  const auto index = static_cast<std::size_t>(entry - tensors().data());
  return impl_->map.subspan(impl_->data_at + impl_->header.offsets[index], entry->byte_count());
}

Status SafetensorsFile::verify_content() const {
  const auto stored = metadata().find(kContentHashKey);
  if (stored == metadata().end() || stored->second.size() != kHashHexLength)
    return impl_->corrupt("has no content hash");
  const std::string_view header = impl_->header_text();
  const auto at = header.find(stored->second);
  if (at == std::string_view::npos) return impl_->corrupt("has no content hash");
  const std::string zeros(kHashHexLength, '0');
  const std::size_t hash_at = kLengthBytes + at;
  Hasher hasher;
  hasher.add(impl_->map.first(hash_at));
  hasher.add(std::as_bytes(std::span(zeros.data(), zeros.size())));
  hasher.add(impl_->map.subspan(hash_at + kHashHexLength));
  if (hasher.finish().hex() != stored->second)
    return impl_->corrupt("its bytes differ from the hash they were written with");
  return {};
}

}  // namespace kith::node
