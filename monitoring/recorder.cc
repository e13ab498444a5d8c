#include "monitoring/recorder.h"

namespace kith::monitoring {

Recorder::~Recorder() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Recorder::run() {
  auto next = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    look_();
    lock.lock();
    // After a pause of the whole process it does not catch up.
    next = std::max(next + interval_, std::chrono::steady_clock::now());
    changed_.wait_until(lock, next, [this] { return stop_; });
  }
}

}  // namespace kith::monitoring
