// ControlLoop: the final model on disk, and with what the process ends.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "node/daemon/control_loop.h"
#include "node/text/text.h"

namespace kith::node {

using schema::MemberState;
using schema::RunState;

namespace {

constexpr double kFasterThanTold = 2.0;  // a member that nobody heard of may have trained

}  // namespace

bool ControlLoop::nobody_lives() const {
  return roster_.count(MemberState::kAlive) + roster_.count(MemberState::kSuspect) == 0;
}

// This process stood still, long enough for the others to have gone on without it, agreed and
// ended. Until a member has exchanged with it since, it counts on nothing that it knew of them.
void ControlLoop::note_absence(Duration length) {
  if (state_ == RunState::kLeaving) return;
  if (!company_ || !averages() || parts_.composition.finish == gossip::Finish::kNone) return;
  handle_happenings();  // of before
  absence_ =
      Absence{absence_ ? length + absence_->length : length, now(),
              absence_ ? std::min(absence_->progress, progress_.samples()) : progress_.samples()};
  if (!finish_.on_own_pause()) return;
  say(LogLevel::kWarn, "what was declared before is asked for again: the others may have another");
  agree_again();
  enter(RunState::kFinishing);
}

// Of those that are gone nobody has agreed on anything, if all that they can have trained while
// this process stood still is less than what was left of the run.
void ControlLoop::note_company() {
  const bool had = std::exchange(company_, !nobody_lives());
  if (!had || company_ || !absence_ || progress_.done()) return;
  double most = static_cast<double>(absence_->progress);
  for (const auto& [id, member] : roster_.members()) {
    const auto& r = member.record();
    if (r.run_state == RunState::kFinishing || r.run_state == RunState::kComplete) return;
    const double pace = std::max(r.steps_per_second, record_.steps_per_second);
    const double batch =
        static_cast<double>(r.samples) / std::max(1.0, static_cast<double>(r.step));
    if (member.state() != MemberState::kLeft)
      most += kFasterThanTold * pace * batch * to_seconds(absence_->length);
  }
  if (most < progress_.length_samples()) absence_.reset();
}

// What was on its way while this process stood still says nothing about who is there now; what
// was begun since then does.
void ControlLoop::count_distance(const gossip::ExchangeEvent& event, double relative) {
  const bool initiated = event.kind == gossip::ExchangeEvent::Kind::kCompletedInitiator;
  if (absence_ && initiated && now() - event.duration > absence_->back + preset_.probe_interval) {
    absence_.reset();
    waiting_for_.clear();
  }
  if (!absence_) finish_.on_distance(event.fragment, relative);
}

// This state is to be on disk before the process ends.
void ControlLoop::complete(std::shared_ptr<const FinalState> made) {
  owed_ = std::move(made);
  final_written_ = false;
  final_retry_.reset();
  write_final();
  beat();
  roster_.hurry();
}

// It is written, or void.
void ControlLoop::drop_owed_final() {
  owed_.reset();
  final_written_ = false;
  final_retry_.reset();
  final_error_.clear();
}

// What is declared or followed from now on is another state.
void ControlLoop::void_final() {
  const bool may_be_there = final_written_ || final_writes_ > 0;
  parts_.donor->withdraw_final();
  drop_owed_final();
  final_accuracy_ = -1.0;
  if (may_be_there) remove_void_final();
}

// After the write that is under way, before that of another state.
void ControlLoop::remove_void_final() {
  ++final_writes_;
  parts_.checkpointer->run_task([this] {
    std::error_code error;
    const bool removed = final_on_disk_ && std::filesystem::remove(final_path(), error);
    if (!error) final_on_disk_ = false;
    post([this, removed, why = error ? error.message() : ""] {
      --final_writes_;
      void_final_error_ = why;
      if (removed)
        say(LogLevel::kInfo, "final model removed: it is no longer what is declared",
            {{"path", final_path()}});
    });
  });
}

// Writing, hashing and fsync take as long as they take: members go on being answered meanwhile.
void ControlLoop::write_final() {
  ++final_writes_;
  parts_.checkpointer->run_task([this, made = owed_] {
    Status written =
        write_final_model(final_path(), *parts_.schema, made->values, made->integers, made->facts);
    if (written) final_on_disk_ = true;
    post([this, made, written = std::move(written)] {
      --final_writes_;
      if (made != owed_) return;
      if (written)
        on_final_written(made->facts);
      else
        on_final_failed(written.error());
    });
  });
}

void ControlLoop::on_final_written(const FinalFacts& facts) {
  if (!final_error_.empty()) trouble_.clear();
  drop_owed_final();
  final_written_ = true;
  void_final_error_.clear();
  finish_.written();
  final_accuracy_ = std::isfinite(facts.accuracy) ? facts.accuracy : -1.0;
  say(LogLevel::kInfo, "final model written",
      {{"path", final_path()},
       {"accuracy", std::to_string(facts.accuracy)},
       {"progress", std::to_string(facts.progress)}});
  if (state_ != RunState::kLeaving) enter(RunState::kComplete);
}

// The state stays in memory and is given to whoever asks; members need not wait for this disk. Said
// once, and again when the reason changes.
void ControlLoop::on_final_failed(const Error& error) {
  const bool first = !final_retry_.failing();
  const bool news = final_error_ != error.message;
  const bool hopeless = error.code == ErrorCode::kNonFinite;  // the same state, for ever
  final_error_ = trouble_ = error.message;
  final_retry_.failed(now());
  if (state_ == RunState::kLeaving) return;  // its last word tells
  if (hopeless || final_retry_.over()) {
    say(LogLevel::kError, "final model not written: no further try", {{"error", final_error_}});
    return enter(RunState::kLeaving);
  }
  if (news)
    say(LogLevel::kError,
        "final model not written: it is kept in memory and tried again; make room, or mend the "
        "folder",
        {{"error", final_error_}, {"for", seconds_text(final_retry_.end() - now())}});
  if (first) write_checkpoint();
}

void ControlLoop::retry_final() {
  if (!owed_ || final_writes_ > 0) return;
  if (final_retry_.due(now())) return write_final();
  waiting_for_ = "the final model is not on disk, it is tried again within " +
                 seconds_text(final_retry_.next() - now()) + ", for " +
                 seconds_text(final_retry_.end() - now()) + ": make room, or mend the folder";
}

// Leaving: once more, whenever the next try would have been. False: nothing to wait for.
bool ControlLoop::final_tried_last() {
  if (final_writes_ > 0) return false;
  if (!owed_ || final_retry_.over() || std::exchange(final_last_try_, true)) return true;
  write_final();
  return false;
}

// The process's exit code, and what it has to say at last.
int ControlLoop::last_word() {
  const bool void_stays = !void_final_error_.empty();
  if (void_stays)
    say(LogLevel::kWarn,
        "the final model on disk is one that was given up: it could not be removed",
        {{"error", void_final_error_}, {"path", final_path()}});
  if (!owed_ && final_written_ && absence_ && !finish_.shared()) {
    say(LogLevel::kWarn,
        std::string("this process stood still for a while and found nobody to ask afterwards: the "
                    "final model is this node's own, the others ") +
            (followed_ ? "agreed on another" : "may have agreed on another"),
        {{"seconds", std::to_string(to_seconds(absence_->length))}, {"path", final_path()}});
    return exit_code(ErrorCode::kFailed);
  }
  if (!owed_) return void_stays ? exit_code(ErrorCode::kFailed) : 0;
  const bool saved = leave_checkpoint_.has_value();
  say(LogLevel::kError,
      saved ? "ending without the final model: a start goes on from the checkpoint"
            : "ending without the final model, and without a checkpoint of its state",
      {{"error", final_error_}, {"checkpoint", saved ? *leave_checkpoint_ : "-"}});
  return exit_code(ErrorCode::kFailed);
}

}  // namespace kith::node
