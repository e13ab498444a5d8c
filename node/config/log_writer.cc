#include "node/config/log_writer.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace kith::node {
namespace {

constexpr std::size_t kLineBytesMax = PIPE_BUF;

// While one lives, a SIGPIPE that write() raises on this thread is swallowed; one that was pending
// already stays.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    was_pending_ = sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigpipe() {
    const timespec at_once{};
    if (!was_pending_ && raised_) sigtimedwait(&pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;
  void raised() { raised_ = true; }

 private:
  sigset_t pipe_{}, before_{};
  bool was_pending_ = false, raised_ = false;
};

bool has_room(int fd) {
  pollfd entry{fd, POLLOUT, 0};
  return ::poll(&entry, 1, 0) == 1 && (entry.revents & POLLOUT) != 0;
}

}  // namespace

bool LogWriter::put(std::string line) const {
  if (line.size() >= kLineBytesMax) {
    line.resize(kLineBytesMax - 4);
    while (!line.empty() && (static_cast<unsigned char>(line.back()) & 0xC0) == 0x80)
      line.pop_back();
    if (!line.empty() && (static_cast<unsigned char>(line.back()) & 0x80) != 0) line.pop_back();
    line += "...";
  }
  line += '\n';
  NoSigpipe guard;
  if (!has_room(fd_)) return false;
  const ssize_t done = ::write(fd_, line.data(), line.size());
  if (done < 0 && errno == EPIPE) guard.raised();
  return done == static_cast<ssize_t>(line.size());
}

void LogWriter::write(std::string line) {
  if (!put(std::move(line))) count_lost();
}

void LogWriter::write_note(std::string line) {
  if (put(std::move(line))) owed_ = 0;
}

void LogWriter::count_lost() {
  ++lost_;
  ++owed_;
}

}  // namespace kith::node
