#include "node/daemon/checkpointer.h"

#include <utility>

namespace kith::node {

Checkpointer::Checkpointer(CheckpointStore& store, const compute::ModelSchema& schema,
                           compute::Replica& replica, compute::Trainer& trainer,
                           ExchangeLoop* exchange, const Clock& clock, LogSink& log)
    : store_(store),
      schema_(schema),
      replica_(replica),
      trainer_(trainer),
      exchange_(exchange),
      clock_(clock),
      log_(log),
      thread_([this] { run(); }) {}

Checkpointer::~Checkpointer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ready_.notify_one();
  thread_.join();
}

bool Checkpointer::request(CheckpointFacts facts,
                           std::function<void(const Result<std::string>&)> done) {
  Job job;
  job.facts = std::move(facts);
  job.done = std::move(done);
  return begin(std::move(job));
}

bool Checkpointer::request_export(std::string to, CheckpointFacts facts,
                                  std::function<void(const Result<std::string>&)> done) {
  Job job;
  job.export_to = std::move(to);
  job.facts = std::move(facts);
  job.done = std::move(done);
  return begin(std::move(job));
}

bool Checkpointer::begin(Job job) {
  if (busy_.exchange(true)) return false;
  if (exchange_ == nullptr) {
    cut(std::move(job));
    return true;
  }
  exchange_->pause_exchanges([this, job = std::move(job)](gossip::LedgerImage ledger) mutable {
    job.ledger = std::move(ledger);
    cut(std::move(job));
  });
  return true;
}

void Checkpointer::cut(Job job) {
  auto shared =
      std::make_shared<Job>(std::move(job));  // std::function wants copies; there is one job
  trainer_.cut([this, shared](compute::TrainerImage image) {
    shared->image = std::move(image);
    run_task([this, shared] { write(std::move(*shared)); });
  });
}

void Checkpointer::run_task(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  ready_.notify_one();
}

void Checkpointer::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ready_.wait(lock, [this] { return !tasks_.empty() || stopping_; });
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

void Checkpointer::write(Job job) {
  const Result<std::string> path = write_file(job);
  if (job.export_to.empty()) count(job, path);
  tell(job, path);
  busy_ = false;
  if (job.done) job.done(path);
}

Result<std::string> Checkpointer::write_file(const Job& job) {
  const auto after_read = [this] {
    replica_.thaw();
    if (exchange_ != nullptr) exchange_->resume_exchanges();
  };
  if (!job.image.healthy) {
    after_read();
    return fail(ErrorCode::kNonFinite, "the trainer's state is not finite");
  }
  if (job.export_to.empty())
    return store_.write(schema_, replica_, job.image, job.ledger, job.facts, after_read);
  KITH_TRY(export_replica(job.export_to, schema_, replica_, job.image, job.facts, after_read));
  return job.export_to;
}

void Checkpointer::count(const Job& job, const Result<std::string>& path) {
  const std::lock_guard lock(mutex_);
  if (path) {
    ++stats_.written;
    stats_.last_step = job.image.step;
    stats_.last_success_wall_seconds = clock_.wall_seconds();
    stats_.last_success = clock_.now();
    stats_.last_error.clear();
  } else {
    ++stats_.failed;
    stats_.last_error = path.error().message;
  }
}

void Checkpointer::tell(const Job& job, const Result<std::string>& path) {
  const bool exported = !job.export_to.empty();
  if (path)
    log_.log(LogLevel::kInfo, "checkpoint", exported ? "exported" : "written",
             {{"step", std::to_string(job.image.step)}, {"path", *path}});
  else
    log_.log(
        LogLevel::kError, "checkpoint",
        exported ? "not exported" : "not written; the node goes on, the older files are intact",
        {{"error", path.error().message}});
}

CheckpointStats Checkpointer::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace kith::node
