#include "tests/bench/exchange_pair.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace kith::bench {
namespace {

bool write_all(int fd, const void* data, std::size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t done = send(fd, at, size, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    at += done;
    size -= static_cast<std::size_t>(done);
  }
  return true;
}

bool read_all(int fd, void* data, std::size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t done = recv(fd, at, size, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    at += done;
    size -= static_cast<std::size_t>(done);
  }
  return true;
}

[[noreturn]] void other_is_gone(int side) {
  std::fprintf(stderr, "kith_bench: side %d: the other process has ended\n", side);
  std::_Exit(1);
}

}  // namespace

Result<Pair> Pair::split() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(std::string("socketpair: ") + std::strerror(errno));
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return fail(std::string("fork: ") + std::strerror(errno));
  const int side = child == 0 ? 1 : 0;
  if (side == 1) prctl(PR_SET_PDEATHSIG, SIGKILL);
  close(ends[1 - side]);
  return Pair(side, ends[side], child);
}

Pair::Pair(Pair&& other) noexcept
    : side_(other.side_),
      fd_(std::exchange(other.fd_, -1)),
      child_(std::exchange(other.child_, 0)) {}

Pair::~Pair() {
  if (fd_ >= 0) close(fd_);
}

std::string Pair::trade(const std::string& word) {
  const std::uint64_t theirs = trade(static_cast<std::uint64_t>(word.size()));
  std::string answer(theirs, '\0');
  if (!write_all(fd_, word.data(), word.size()) || !read_all(fd_, answer.data(), answer.size()))
    other_is_gone(side_);
  return answer;
}

std::uint64_t Pair::trade(std::uint64_t number) {
  std::uint64_t answer = 0;
  if (!write_all(fd_, &number, sizeof number) || !read_all(fd_, &answer, sizeof answer))
    other_is_gone(side_);
  return answer;
}

int Pair::join() {
  int status = 0;
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace kith::bench
