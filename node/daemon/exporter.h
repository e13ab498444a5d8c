// Exporter: writes the files that users ask for, on a thread that nothing else depends on.
//
// Such a file may lie anywhere, also on a disk that is slow or does not answer (NFS). So what is
// written holds copies of all it needs, one export at a time; training, exchanges, checkpoints and
// the final model never wait for it, and the end of the process only for `patience`: then the
// thread is left behind with what it owns, the log names the file, and a temporary file may stay
// beside it. Threads: reserve() and write() on any.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"

namespace kith::node {

class Exporter {
 public:
  using Done = std::function<void(const Result<std::string>&)>;

  // `log` outlives the object.
  explicit Exporter(LogSink& log, Duration patience = std::chrono::seconds(5));
  ~Exporter();
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  // The place of the one export; kBusy names the file that is being written.
  Status reserve(const std::string& to);
  // Then one of both. `write` owns whatever it uses: it may outlive this object. `done` is called
  // with the path or the error, on the exporter's thread or the caller's, never after destruction;
  // it must not call this object.
  void write(std::function<Status()> write, Done done);
  void give_up(Error error, const Done& done);

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);

  const Duration patience_;
  std::shared_ptr<State> state_;  // shared with the thread, which may be left behind
  std::thread thread_;
};

}  // namespace kith::node
