// Lines to a file descriptor that may be closed, full, or a pipe that nobody reads: never blocks,
// throws or raises SIGPIPE. The descriptor stays as it is (its O_NONBLOCK flag would be shared with
// whoever else has it): a line goes out only when poll() says there is room, and is at most
// PIPE_BUF long, so that the kernel takes it whole or not at all. Thread: one at a time.
#pragma once

#include <cstdint>
#include <string>

namespace kith::node {

class LogWriter {
 public:
  explicit LogWriter(int fd) : fd_(fd) {}
  void write(std::string line);
  // A line about lost lines: when it gets through they are no longer owed; when not, it is not
  // counted itself.
  void write_note(std::string line);
  void count_lost();
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  [[nodiscard]] std::uint64_t lost_since_success() const { return owed_; }

 private:
  bool put(std::string line) const;
  int fd_;
  std::uint64_t lost_ = 0;
  std::uint64_t owed_ = 0;
};

}  // namespace kith::node
