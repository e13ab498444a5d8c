// StepLog: one line of JSON for each optimiser step, for people who plot by step:
//
//   {"step":12,"time":1770000000.25,"loss":0.71,"learning_rate":0.05,"samples":384,"epoch":0.4,"exchanges":9,"staleness":1}
//
// `time` in seconds since 1970; `loss` of this very batch; `epoch` of the whole cluster;
// `exchanges` completed so far by this node; what is not known or not finite is null. The file is
// appended to, and made anew when somebody moved it away.
//
// Contract: add() never waits: it puts the step into a ring of kStepLogRing places, and a thread of
// its own writes them. A full disk, a file that cannot be written or a disk that is too slow costs
// lines, which are counted; what was written are whole lines. Threads: add() on the trainer's,
// counts() on any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "monitoring/snapshot.h"

namespace kith::node {

inline constexpr std::size_t kStepLogRing = 8192;

struct StepRecord {
  Step step = 0;
  double wall_seconds = 0.0;
  double loss = std::numeric_limits<double>::quiet_NaN();
  double learning_rate = std::numeric_limits<double>::quiet_NaN();
  Samples samples = 0;
  double epoch = 0.0;
  std::uint64_t exchanges = 0;
  double staleness_steps = std::numeric_limits<double>::quiet_NaN();  // of the latest exchange
};

std::string to_json_line(const StepRecord& record);

class StepLog {
 public:
  // kUsage if the file cannot be opened for writing: better said now than after a night.
  static Result<std::unique_ptr<StepLog>> open(const std::string& path);
  ~StepLog();  // writes what waits
  StepLog(const StepLog&) = delete;
  StepLog& operator=(const StepLog&) = delete;

  void add(const StepRecord& record);
  [[nodiscard]] monitoring::StepLogCounts counts() const;

 private:
  StepLog(std::string path, int fd);

  void lose(std::uint64_t lines) { lost_.fetch_add(lines, std::memory_order_relaxed); }
  void run();
  void write_waiting();
  void write_lines(const std::string& lines, std::uint64_t count);
  bool open_again();  // if the path leads elsewhere by now

  // constant after construction
  const std::string path_;
  // writer thread only
  int fd_ = -1;
  // one side each: add() moves head_, the writer tail_
  std::vector<StepRecord> ring_;
  std::atomic<std::uint64_t> head_{0}, tail_{0};
  std::atomic<std::uint64_t> written_{0}, lost_{0};

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace kith::node
