#include "node/identity/identity.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/check.h"

namespace kith::node {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSeedHexDigits = 2 * crypto_sign_SEEDBYTES;
constexpr std::size_t kSmallFileBytesMax = 4096;
constexpr std::uint32_t kBootMax = 0xFFFFFFFFU;
// How far what others claim may push the boot counter in one start. Without a bound a single lying
// member could drive the counter to its end, and the node could never start again under this
// identity.
constexpr std::uint32_t kBootJumpMax = 1U << 20;

using Seed = std::array<std::uint8_t, crypto_sign_SEEDBYTES>;

void ensure_sodium() {
  static const int ready = sodium_init();
  KITH_CHECK(ready >= 0, "libsodium must initialise");
}

std::string with_errno(const std::string& path, const char* what) {
  const int error = errno;
  return path + ": " + what + ": " + std::strerror(error);
}

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] int release() && { return std::exchange(fd_, -1); }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }

 private:
  int fd_;
};

std::string file_in(const std::string& data_dir, const char* name) {
  return (fs::path(data_dir) / name).string();
}

Result<std::string> read_small(const File& file, const std::string& path) {
  std::string text(kSmallFileBytesMax + 1, '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = ::read(file.fd(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(with_errno(path, "cannot be read"));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  text.resize(filled);
  return text;
}

Status write_all(const File& file, const std::string& path, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file.fd(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(with_errno(path, "cannot be written"));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Status sync_directory(const std::string& data_dir) {
  const File dir(::open(data_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir.is_open() || ::fsync(dir.fd()) != 0)
    return fail(with_errno(data_dir, "directory cannot be synced"));
  return {};
}

Status write_temporary(const std::string& path, std::string_view text) {
  ::unlink(path.c_str());  // left by a start that was killed; the lock says nobody else is at it
  const File file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open()) return fail(with_errno(path, "cannot be created"));
  KITH_TRY(write_all(file, path, text));
  if (::fsync(file.fd()) != 0) return fail(with_errno(path, "cannot be synced"));
  return {};
}

// The file has either its old content or all of the new one, also after a power failure.
Status replace_file(const std::string& data_dir, const char* name, std::string_view text) {
  const std::string path = file_in(data_dir, name);
  const std::string temporary = path + ".tmp";
  KITH_TRY(write_temporary(temporary, text));
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return fail(with_errno(path, "cannot be replaced"));
  return sync_directory(data_dir);
}

// Parents get ordinary permissions, the data directory itself 0700.
Status ensure_directory(const std::string& data_dir) {
  if (data_dir.empty()) return fail(ErrorCode::kUsage, "data_dir is empty; name a directory");
  fs::path path = fs::path(data_dir).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(ErrorCode::kUsage, with_errno(data_dir, "data directory cannot be made"));
  if (!fs::is_directory(path, error))
    return fail(ErrorCode::kUsage, data_dir + ": data_dir is not a directory");
  return {};
}

std::string octal(mode_t mode) {
  std::string text = "0000";
  for (int i = 3; i >= 0; --i, mode >>= 3) text[static_cast<std::size_t>(i)] += mode & 7U;
  return text;
}

Status check_private(const File& file, const std::string& path) {
  struct stat info {};
  if (::fstat(file.fd(), &info) != 0) return fail(with_errno(path, "cannot be examined"));
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::kUsage, path + ": not a regular file");
  const mode_t mode = info.st_mode & 07777U;
  if ((mode & 077U) != 0)
    return fail(ErrorCode::kUsage, path + ": the secret key has mode " + octal(mode) +
                                       ", others may read it; run: chmod 600 " + path);
  return {};
}

void trim_newline(std::string& text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
}

Result<Seed> parse_seed(std::string text, const std::string& path) {
  trim_newline(text);
  auto raw = from_hex(text);
  if (text.size() != kSeedHexDigits || !raw)
    return fail(
        ErrorCode::kCorrupt,
        path + ": not a secret key (" + std::to_string(kSeedHexDigits) +
            " hexadecimal digits expected, " + std::to_string(text.size()) +
            " characters found); restore it, or start as a new node with an empty --data-dir: "
            "the checkpoints here are this key's");
  Seed seed;
  std::memcpy(seed.data(), raw->data(), seed.size());
  sodium_memzero(raw->data(), raw->size());
  sodium_memzero(text.data(), text.size());
  return seed;
}

Result<Seed> load_seed(const std::string& path, const File& file) {
  KITH_TRY(check_private(file, path));
  KITH_ASSIGN(std::string text, read_small(file, path));
  return parse_seed(std::move(text), path);
}

Result<Seed> create_seed(const std::string& data_dir) {
  Seed seed;
  randombytes_buf(seed.data(), seed.size());
  std::string text = to_hex(std::as_bytes(std::span(seed))) + "\n";
  auto written = replace_file(data_dir, "identity.key", text);
  sodium_memzero(text.data(), text.size());
  KITH_TRY(std::move(written));
  return seed;
}

Result<Seed> load_or_create_seed(const std::string& data_dir) {
  const std::string path = file_in(data_dir, "identity.key");
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.is_open()) return load_seed(path, file);
  if (errno != ENOENT) return fail(ErrorCode::kUsage, with_errno(path, "cannot be opened"));
  return create_seed(data_dir);
}

std::string holder_of(const File& file) {
  std::array<char, 32> text{};
  const ssize_t got = ::pread(file.fd(), text.data(), text.size() - 1, 0);
  std::uint64_t pid = 0;
  if (got <= 0 || std::from_chars(text.data(), text.data() + got, pid).ec != std::errc{})
    return "another process";
  return "process " + std::to_string(pid);
}

Status write_holder(const File& file, const std::string& path) {
  const std::string text = std::to_string(::getpid()) + "\n";
  // Written before it is cut to length, so that a reader never finds the file empty.
  const ssize_t written = ::pwrite(file.fd(), text.data(), text.size(), 0);
  if (written != static_cast<ssize_t>(text.size()) ||
      ::ftruncate(file.fd(), static_cast<off_t>(text.size())) != 0)
    return fail(with_errno(path, "cannot be written"));
  return {};
}

Result<std::uint32_t> parse_boot(std::string_view text, const std::string& path) {
  std::uint32_t boot = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, boot);
  if (error != std::errc{} ||
      std::string_view(stopped, static_cast<std::size_t>(end - stopped)) != "\n")
    return fail(ErrorCode::kCorrupt,
                path +
                    ": not a boot counter (one decimal number and a line end expected); remove it: "
                    "the checkpoints here, or the members reached through --join, know this node's "
                    "last start");
  return boot;
}

Result<std::uint32_t> stored_boot(const std::string& path) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open() && errno == ENOENT) return std::uint32_t{0};
  if (!file.is_open()) return fail(with_errno(path, "cannot be opened"));
  KITH_ASSIGN(const std::string text, read_small(file, path));
  return parse_boot(text, path);
}

Result<std::uint32_t> next_boot(std::uint32_t stored, std::uint32_t claimed,
                                const std::string& path) {
  if (claimed > stored && claimed - stored > kBootJumpMax)
    return fail(ErrorCode::kCorrupt, path + ": boot " + std::to_string(claimed) +
                                         " of this node is claimed by a checkpoint or a member, it "
                                         "knows " +
                                         std::to_string(stored) +
                                         "; too far to be true, so the claim is refused: start "
                                         "with an empty --data-dir, or through another member");
  const std::uint32_t highest = std::max(stored, claimed);
  if (highest == kBootMax)
    return fail(ErrorCode::kCorrupt,
                path + ": the boot counter is at its end; start with an empty --data-dir");
  return highest + 1;
}

}  // namespace

Result<Identity> Identity::load_or_create(const std::string& data_dir) {
  ensure_sodium();
  KITH_TRY(ensure_directory(data_dir));
  KITH_ASSIGN(Seed seed, load_or_create_seed(data_dir));
  Identity identity;
  crypto_sign_seed_keypair(identity.id_.bytes.data(), identity.secret_.data(), seed.data());
  sodium_memzero(seed.data(), seed.size());
  return identity;
}

Identity Identity::ephemeral(std::uint64_t seed) {
  ensure_sodium();
  const Hash256 derived = Hasher().add("kith ephemeral identity").add(seed).finish();
  Identity identity;
  crypto_sign_seed_keypair(identity.id_.bytes.data(), identity.secret_.data(),
                           derived.bytes.data());
  return identity;
}

schema::Signature Identity::sign(const Hash256& hash) const {
  schema::Signature signature{};
  crypto_sign_detached(signature.data(), nullptr, hash.bytes.data(), hash.bytes.size(),
                       secret_.data());
  return signature;
}

bool verify(const NodeId& id, const Hash256& hash, const schema::Signature& signature) {
  ensure_sodium();
  return crypto_sign_verify_detached(signature.data(), hash.bytes.data(), hash.bytes.size(),
                                     id.bytes.data()) == 0;
}

void sign_record(const Identity& identity, schema::MemberRecord& record) {
  KITH_CHECK(record.id == identity.id(), "a node signs records of its own only");
  record.signature = identity.sign(schema::signing_hash(record));
}

bool verify_record(const schema::MemberRecord& record) {
  return verify(record.id, schema::signing_hash(record), record.signature);
}

Result<DataDirLock> DataDirLock::acquire(const std::string& data_dir) {
  KITH_TRY(ensure_directory(data_dir));
  const std::string path = file_in(data_dir, "lock");
  File file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.is_open()) return fail(ErrorCode::kUsage, with_errno(path, "cannot be opened"));
  if (::flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail(with_errno(path, "cannot be locked"));
    return fail(ErrorCode::kDataDirInUse, data_dir + ": data directory is in use by " +
                                              holder_of(file) +
                                              "; stop it, or choose another --data-dir");
  }
  KITH_TRY(write_holder(file, path));
  return DataDirLock(std::move(file).release());
}

DataDirLock::DataDirLock(DataDirLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

DataDirLock::~DataDirLock() {
  if (fd_ >= 0) ::close(fd_);
}

Result<Incarnation> next_incarnation(const std::string& data_dir, Incarnation at_least) {
  const std::string path = file_in(data_dir, "incarnation");
  KITH_ASSIGN(const std::uint32_t stored, stored_boot(path));
  KITH_ASSIGN(const std::uint32_t boot,
              next_boot(stored, static_cast<std::uint32_t>(at_least >> 32), path));
  KITH_TRY(replace_file(data_dir, "incarnation", std::to_string(boot) + "\n"));
  return static_cast<Incarnation>(boot) << 32;
}

}  // namespace kith::node
