#include "node/daemon/signal_watch.h"

#include <signal.h>
#include <unistd.h>

#include <utility>

namespace kith::node {

namespace {

sigset_t signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

void SignalWatch::block() {
  const sigset_t set = signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

SignalWatch::SignalWatch(std::function<void()> leave, std::function<void()> reload) {
  thread_ = std::thread(
      [this, leave = std::move(leave), reload = std::move(reload)] { run(leave, reload); });
}

void SignalWatch::run(const std::function<void()>& leave, const std::function<void()>& reload) {
  const sigset_t set = signals();
  for (int count = 0;;) {
    int number = 0;
    if (sigwait(&set, &number) != 0 || stopping_) return;
    if (number == SIGHUP) {
      reload();
      continue;
    }
    if (++count == 2) ::_exit(kInterruptedExit);
    leave();
  }
}

SignalWatch::~SignalWatch() {
  stopping_ = true;
  ::pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
}

}  // namespace kith::node
