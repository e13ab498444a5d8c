// SignalWatch: SIGTERM and SIGINT leave in order; a second one ends the process at once, without a
// checkpoint, with exit code 130. SIGHUP reloads the configuration. A thread of its own waits for
// them, so no handler runs; both functions are called on it. Thread: construct and destroy on one.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace kith::node {

inline constexpr int kInterruptedExit = 130;  // 128 + SIGINT, as shells have it

class SignalWatch {
 public:
  // Before any other thread is made: they all inherit the mask. A write to a closed pipe is an
  // error, not a signal.
  static void block();

  SignalWatch(std::function<void()> leave, std::function<void()> reload);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  void run(const std::function<void()>& leave, const std::function<void()>& reload);

  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace kith::node
