// Recorder: looks at the node each second and writes it into the journal. A thread of its own that
// sleeps in between, so neither the trainer nor the control loop knows of it.
//
// A look must not throw, which its type says: on this thread nobody could catch it, and a journal
// without curves is no reason to end a node. What can fail is to be left out of the sample.
// Thread: construct and destroy on one; the destructor waits for a look in progress.
#pragma once

#include <concepts>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/clock.h"

namespace kith::monitoring {

class Recorder {
 public:
  // `look` is called at once, then every `interval`; it is noexcept.
  template <std::invocable Look>
  requires std::is_nothrow_invocable_v<Look&>
  explicit Recorder(Look look, Duration interval = std::chrono::seconds(1))
      : look_(std::move(look)), interval_(interval), thread_([this] { run(); }) {}
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
