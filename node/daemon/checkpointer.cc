#include "node/daemon/checkpointer.h"

#include <utility>

#include "node/daemon/state_assembly.h"

namespace kith::node {
namespace {

constexpr const char* kNotFinite = "the trainer's state is not finite";

}  // namespace

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
      exporter_(log),
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

void Checkpointer::request_export(const std::string& to, CheckpointFacts facts,
                                  Exporter::Done done) {
  if (Status free = exporter_.reserve(to); !free) return done(fail(std::move(free.error())));
  Job job;
  job.export_to = to;
  job.facts = std::move(facts);
  job.done = done;
  if (!begin(std::move(job))) exporter_.give_up({ErrorCode::kBusy, kCheckpointBusy}, done);
}

void Checkpointer::request_export_of(const std::string& from, const std::string& to,
                                     Exporter::Done done) {
  if (Status free = exporter_.reserve(to); !free) return done(fail(std::move(free.error())));
  exporter_.write([from, to] { return export_checkpoint(from, to); }, std::move(done));
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
  if (!job.export_to.empty()) return export_copy(std::move(job));
  const Result<std::string> path = write_file(job);
  count(job, path);
  tell(job, path);
  busy_ = false;
  if (job.done) job.done(path);
}

Result<std::string> Checkpointer::write_file(const Job& job) {
  if (job.image.healthy)
    return store_.write(schema_, replica_, job.image, job.ledger, job.facts,
                        [this] { after_read(); });
  after_read();
  return fail(ErrorCode::kNonFinite, kNotFinite);
}

void Checkpointer::export_copy(Job job) {
  // Shared, since std::function wants copies; there is one copy of the values.
  const auto copy = std::make_shared<const StateAssembly>(replica_, job.image.integers);
  after_read();
  busy_ = false;
  if (!job.image.healthy) return exporter_.give_up({ErrorCode::kNonFinite, kNotFinite}, job.done);
  job.image.optimizer.clear();
  exporter_.write(
      [copy, to = job.export_to, schema = schema_, image = std::move(job.image),
       facts = std::move(job.facts)] {
        return export_values(to, schema, copy->values(), image, facts);
      },
      std::move(job.done));
}

// Exchanges and merges go on.
void Checkpointer::after_read() {
  replica_.thaw();
  if (exchange_ != nullptr) exchange_->resume_exchanges();
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
  if (path)
    log_.log(LogLevel::kInfo, "checkpoint", "written",
             {{"step", std::to_string(job.image.step)}, {"path", *path}});
  else
    log_.log(LogLevel::kError, "checkpoint",
             "not written; the node goes on, the older files are intact",
             {{"error", path.error().message}});
}

CheckpointStats Checkpointer::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace kith::node
