#include "node/text/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "node/text/text.h"

namespace kith::node {
namespace {

constexpr std::size_t kLineBytesMax = 4096;

Result<std::string> read_start(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return fail(ErrorCode::kUsage, path + ": " + std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return fail(ErrorCode::kUsage, path + " is no regular file: move it away");
  std::string text(kLineBytesMax, '\0');
  const auto got = ::read(fd, text.data(), text.size());
  if (got < 0) return fail(ErrorCode::kUsage, path + ": " + std::strerror(errno));
  text.resize(static_cast<std::size_t>(got));
  return text;
}

}  // namespace

Result<std::string> first_line_in(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) return std::string();
  if (fd < 0) return fail(ErrorCode::kUsage, path + ": " + std::strerror(errno));
  auto text = read_start(fd, path);
  ::close(fd);
  if (!text) return text;
  return std::string(trimmed(text->substr(0, text->find('\n'))));
}

}  // namespace kith::node
