#include "node/daemon/step_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>

namespace kith::node {

namespace {

// Lines are at most this old when they reach the file.
constexpr auto kFlushEvery = std::chrono::milliseconds(100);

// Never waits for a reader of a pipe, and never becomes the process's terminal.
int open_for_append(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                0644);
}

template <typename Value>
void add_number(std::string& line, const char* name, Value value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  line += name;
  line.append(text, end);
}

void add_real(std::string& line, const char* name, double value) {
  if (std::isfinite(value))
    add_number(line, name, value);
  else
    (line += name) += "null";
}

}  // namespace

// By hand: numbers only, and the trainer's language settings must not put commas into them.
std::string to_json_line(const StepRecord& r) {
  std::string line;
  line.reserve(192);
  add_number(line, "{\"step\":", r.step);
  add_real(line, ",\"time\":", r.wall_seconds);
  add_real(line, ",\"loss\":", r.loss);
  add_real(line, ",\"learning_rate\":", r.learning_rate);
  add_number(line, ",\"samples\":", r.samples);
  add_real(line, ",\"epoch\":", r.epoch);
  add_number(line, ",\"exchanges\":", r.exchanges);
  add_real(line, ",\"staleness\":", r.staleness_steps);
  return line += "}\n";
}

Result<std::unique_ptr<StepLog>> StepLog::open(const std::string& path) {
  const int fd = open_for_append(path);
  if (fd < 0)
    return fail(ErrorCode::kUsage, "log.steps: cannot write " + path + ": " + std::strerror(errno) +
                                       ": name a file in a folder that exists and may be written");
  return std::unique_ptr<StepLog>(new StepLog(path, fd));
}

StepLog::StepLog(std::string path, int fd) : path_(std::move(path)), fd_(fd), ring_(kStepLogRing) {
  thread_ = std::thread([this] { run(); });
}

StepLog::~StepLog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
  if (fd_ >= 0) ::close(fd_);
}

void StepLog::add(const StepRecord& record) {
  const std::uint64_t head = head_.load(std::memory_order_relaxed);
  if (head - tail_.load(std::memory_order_acquire) >= ring_.size()) return lose(1);
  ring_[head % ring_.size()] = record;
  head_.store(head + 1, std::memory_order_release);
}

monitoring::StepLogCounts StepLog::counts() const { return {written_.load(), lost_.load()}; }

// ---- writer thread

void StepLog::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    wake_.wait_for(lock, kFlushEvery, [this] { return stopping_; });
    lock.unlock();
    write_waiting();
    lock.lock();
  }
  write_waiting();
}

void StepLog::write_waiting() {
  std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  const std::uint64_t head = head_.load(std::memory_order_acquire);
  if (tail == head) return;
  std::string lines;
  const std::uint64_t count = head - tail;
  for (; tail != head; ++tail) lines += to_json_line(ring_[tail % ring_.size()]);
  tail_.store(tail, std::memory_order_release);
  write_lines(lines, count);
}

// What does not fit is cut off at the end of a line, so that a reader never meets half of one.
void StepLog::write_lines(const std::string& lines, std::uint64_t count) {
  if (!open_again()) return lose(count);
  const ssize_t wrote = ::write(fd_, lines.data(), lines.size());
  const auto bytes = static_cast<std::size_t>(std::max<ssize_t>(wrote, 0));
  const auto end = lines.rfind('\n', bytes == 0 ? std::string::npos : bytes - 1);
  const std::size_t whole = bytes == 0 || end == std::string::npos ? 0 : end + 1;
  struct stat now {};
  if (whole < bytes && ::fstat(fd_, &now) == 0 && S_ISREG(now.st_mode)) [[maybe_unused]]
    const int cut = ::ftruncate(fd_, now.st_size - static_cast<off_t>(bytes - whole));
  const auto kept = static_cast<std::uint64_t>(
      std::count(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(whole), '\n'));
  written_ += kept;
  lose(count - kept);
}

bool StepLog::open_again() {
  struct stat held {
  }, named{};
  const bool same = fd_ >= 0 && ::fstat(fd_, &held) == 0 && ::stat(path_.c_str(), &named) == 0 &&
                    held.st_ino == named.st_ino && held.st_dev == named.st_dev;
  if (same) return true;
  if (fd_ >= 0) ::close(fd_);
  fd_ = open_for_append(path_);
  return fd_ >= 0;
}

}  // namespace kith::node
