#include "node/daemon/exporter.h"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace kith::node {

struct Exporter::State {
  explicit State(LogSink& sink) : log(sink) {}

  // With `mutex` held, so that nobody is told who has gone.
  void end(const Status& status, const Done& done) {
    const std::string to = std::exchange(path, {});
    if (status)
      log.log(LogLevel::kInfo, "export", "exported", {{"path", to}});
    else
      log.log(LogLevel::kError, "export", "not exported",
              {{"path", to}, {"error", status.error().message}});
    if (done) done(status ? Result<std::string>(to) : fail(Error(status.error())));
  }

  LogSink& log;  // not used once left_behind
  std::mutex mutex;
  std::condition_variable changed;
  std::string path;  // of the export under way, empty: none
  std::function<Status()> write;
  Done done;
  bool stopping = false, ended = false, left_behind = false;
};

Exporter::Exporter(LogSink& log, Duration patience)
    : patience_(patience),
      state_(std::make_shared<State>(log)),
      thread_([state = state_] { run(state); }) {}

Exporter::~Exporter() {
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  state_->changed.notify_all();
  if (state_->changed.wait_for(lock, patience_, [this] { return state_->ended; })) {
    lock.unlock();
    thread_.join();
    return;
  }
  state_->left_behind = true;
  state_->log.log(LogLevel::kError, "export",
                  "ending without an export that its disk holds up; a temporary file may stay",
                  {{"path", state_->path}});
  thread_.detach();
}

Status Exporter::reserve(const std::string& to) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->path.empty())
    return fail(ErrorCode::kBusy, "an export to " + state_->path +
                                      " is being written: one at a time, try again after it");
  state_->path = to;
  return {};
}

void Exporter::write(std::function<Status()> write, Done done) {
  const std::lock_guard lock(state_->mutex);
  state_->write = std::move(write);
  state_->done = std::move(done);
  state_->log.log(LogLevel::kInfo, "export", "exporting", {{"path", state_->path}});
  state_->changed.notify_all();
}

void Exporter::give_up(Error error, const Done& done) {
  const std::lock_guard lock(state_->mutex);
  state_->end(fail(std::move(error)), done);
}

void Exporter::run(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  for (;;) {
    state->changed.wait(lock, [&] { return state->write || state->stopping; });
    if (!state->write) break;
    std::function<Status()> write = std::exchange(state->write, nullptr);
    lock.unlock();
    const Status status = write();
    write = nullptr;  // and the copies with it
    lock.lock();
    if (state->left_behind) return;
    state->end(status, std::exchange(state->done, nullptr));
  }
  state->ended = true;
  state->changed.notify_all();
}

}  // namespace kith::node
