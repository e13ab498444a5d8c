#include "node/mesh/cluster_key.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ostream>
#include <utility>

#include "base/check.h"

namespace kith::node {
namespace {

constexpr std::size_t kHexChars = 64;
constexpr std::string_view kDerivation = "kith cluster curve 1";

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

std::string errno_text() { return std::strerror(errno); }

CurveKeys derive(const Secret<32>& secret) {
  Secret<32> seed;
  CurveKeys keys;
  crypto_generichash(seed.bytes().data(), 32,
                     reinterpret_cast<const unsigned char*>(kDerivation.data()), kDerivation.size(),
                     secret.bytes().data(), 32);
  crypto_box_seed_keypair(keys.public_key.data(), keys.secret_key.bytes().data(),
                          seed.bytes().data());
  return keys;
}

Status check_mode(int fd, const std::string& path) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return fail("key file " + path + ": " + errno_text());
  if (!S_ISREG(info.st_mode))
    return fail(ErrorCode::kUsage, "key file " + path + " is not a regular file");
  if ((info.st_mode & 077U) == 0) return {};
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(info.st_mode & 07777U));
  return fail(ErrorCode::kUsage, "key file " + path + " can be read by others (mode " + mode +
                                     "): run chmod 600 " + path);
}

}  // namespace

template <std::size_t N>
Secret<N>::Secret() {
  KITH_CHECK(sodium_init() >= 0, "libsodium starts");
  data_.reset(static_cast<std::uint8_t*>(sodium_malloc(N)));
  KITH_CHECK(data_ != nullptr, "there is memory for a key");
  sodium_memzero(data_.get(), N);
}

template <std::size_t N>
void Secret<N>::Wipe::operator()(std::uint8_t* data) const {
  sodium_free(data);
}

template class Secret<32>;

ClusterKey::ClusterKey(Secret<32> secret) : secret_(std::move(secret)), curve_(derive(secret_)) {}

ClusterKey ClusterKey::generate() {
  Secret<32> secret;
  randombytes_buf(secret.bytes().data(), 32);
  return ClusterKey(std::move(secret));
}

Result<ClusterKey> ClusterKey::from_hex(std::string_view hex) {
  if (hex.size() != kHexChars) {
    return fail(ErrorCode::kUsage, "a cluster key has 64 hexadecimal characters, not " +
                                       std::to_string(hex.size()) +
                                       ": make one with `kith keygen`");
  }
  Secret<32> secret;
  std::size_t length = 0;
  const int rc =
      sodium_hex2bin(secret.bytes().data(), 32, hex.data(), hex.size(), nullptr, &length, nullptr);
  if (rc != 0 || length != 32) {
    return fail(ErrorCode::kUsage,
                "a cluster key has hexadecimal characters only, this one has others: make one with "
                "`kith keygen`");
  }
  return ClusterKey(std::move(secret));
}

Result<ClusterKey> ClusterKey::load(const std::string& path) {
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd() < 0) {
    const auto code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kUsage;
    return fail(code, "key file " + path + ": " + errno_text() + "; `kith keygen` makes one");
  }
  KITH_TRY(check_mode(file.fd(), path));
  char text[256] = {};  // room to see that it is too long
  const auto length = read(file.fd(), text, sizeof text - 1);
  if (length < 0) return fail("key file " + path + ": " + errno_text());
  std::string_view hex(text, static_cast<std::size_t>(length));
  while (!hex.empty() && (hex.back() == '\n' || hex.back() == '\r')) hex.remove_suffix(1);
  auto key = from_hex(hex);
  sodium_memzero(text, sizeof text);
  if (!key) return fail(key.error().code, "key file " + path + ": " + key.error().message);
  return key;
}

Status ClusterKey::save(const std::string& path) const {
  char text[kHexChars + 1];
  const File file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.fd() < 0 && errno == EEXIST)
    return fail(ErrorCode::kUsage,
                "key file " + path + " exists already: remove it first or choose another name");
  if (file.fd() < 0) return fail("key file " + path + ": " + errno_text());
  sodium_bin2hex(text, sizeof text, secret_.bytes().data(), 32);
  text[kHexChars] = '\n';
  const bool written = write(file.fd(), text, sizeof text) == static_cast<ssize_t>(sizeof text) &&
                       fsync(file.fd()) == 0;
  const std::string why = errno_text();
  sodium_memzero(text, sizeof text);
  if (written) return {};
  unlink(path.c_str());
  return fail("key file " + path + ": " + why);
}

std::ostream& operator<<(std::ostream& out, const ClusterKey&) { return out << "[redacted]"; }
std::string to_string(const ClusterKey&) { return "[redacted]"; }

}  // namespace kith::node
