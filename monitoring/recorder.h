// Recorder: looks at the node each second and writes it into the journal. A thread of its own that
// sleeps in between, so neither the trainer nor the control loop knows of it.
// Thread: construct and destroy on one; the destructor waits for a look in progress.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/clock.h"

namespace kith::monitoring {

class Recorder {
 public:
  // `look` is called at once, then every `interval`.
  explicit Recorder(std::function<void()> look, Duration interval = std::chrono::seconds(1));
  ~Recorder();

 private:
  void run();

  const std::function<void()> look_;
  const Duration interval_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;   // guarded by mutex_
  std::thread thread_;  // last: starts when the rest is there
};

}  // namespace kith::monitoring
