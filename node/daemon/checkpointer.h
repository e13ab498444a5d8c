// Checkpointer: cuts and writes checkpoints without making anybody wait who trains.
//
//   request -> exchanges paused, ledger copied -> trainer's next safe point merges, publishes,
//   freezes the replica, copies moments -> this thread streams the fragments to the file, then
//   thaws and lets exchanges go on -> fsync, rename
//
// An export is cut likewise, but its values are only copied (memory: one copy of them), and
// exchanges go on: the Exporter writes the file of the user's, on whatever disk that lies, and this
// object is no longer busy. No checkpoint is counted, and none of the older ones goes for it.
//
// So values, moments, cursor and ledger of one file belong to one moment. Cost: exchanges rest
// while the values of a checkpoint are written to its file, which a slow disk prolongs once the
// page cache is full, or those of an export copied in memory; the trainer copies its moments once.
// Threads: request() on the control loop; the file is written on a thread of its own. A failure is
// logged and counted, and training goes on.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "node/daemon/exchange_loop.h"
#include "node/daemon/exporter.h"
#include "node/store/checkpoint.h"

namespace kith::node {

struct CheckpointStats {
  std::uint64_t written = 0, failed = 0;
  Step last_step = 0;
  double last_success_wall_seconds = 0.0;  // 0 = none yet
  TimePoint last_success;                  // likewise
  std::string last_error;
};

// What is told to whoever asks while it is busy.
inline constexpr const char* kCheckpointBusy =
    "a checkpoint is being written already: try again in a moment";

class Checkpointer {
 public:
  // `exchange` null: no network (standalone). All references outlive the object.
  Checkpointer(CheckpointStore& store, const compute::ModelSchema& schema,
               compute::Replica& replica, compute::Trainer& trainer, ExchangeLoop* exchange,
               const Clock& clock, LogSink& log);
  ~Checkpointer();  // finishes what it has begun

  // Begins one; `done` is called on the writer thread with the path or the error. Ignored (false)
  // while one is under way.
  bool request(CheckpointFacts facts, std::function<void(const Result<std::string>&)> done = {});
  // Likewise, for an export to the file `to`; `done` hears also of what keeps it from beginning.
  void request_export(const std::string& to, CheckpointFacts facts, Exporter::Done done);
  // Likewise, out of a file that is there.
  void request_export_of(const std::string& from, const std::string& to, Exporter::Done done);
  [[nodiscard]] bool busy() const { return busy_; }
  // Other work with files and hashes that the control loop must not wait for, on the writer thread,
  // in order with the checkpoints.
  void run_task(std::function<void()> task);
  [[nodiscard]] CheckpointStats stats() const;

 private:
  struct Job {
    std::string export_to;  // empty: a checkpoint
    CheckpointFacts facts;
    gossip::LedgerImage ledger;
    compute::TrainerImage image;
    std::function<void(const Result<std::string>&)> done;
  };
  bool begin(Job job);
  void cut(Job job);
  void write(Job job);
  Result<std::string> write_file(const Job& job);
  void export_copy(Job job);
  void after_read();
  void count(const Job& job, const Result<std::string>& path);
  void tell(const Job& job, const Result<std::string>& path);
  void run();

  CheckpointStore& store_;
  const compute::ModelSchema& schema_;
  compute::Replica& replica_;
  compute::Trainer& trainer_;
  ExchangeLoop* exchange_;
  const Clock& clock_;
  LogSink& log_;
  Exporter exporter_;
  std::atomic<bool> busy_{false};
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable ready_;
  std::deque<std::function<void()>> tasks_;  // a cut checkpoint's writing is one
  bool stopping_ = false;
  CheckpointStats stats_;
  std::thread thread_;
};

}  // namespace kith::node
