// ControlLoop's state machine: waiting, joining, training, leaving.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "node/daemon/control_loop.h"
#include "node/daemon/counts.h"
#include "node/text/text.h"

namespace kith::node {

using gossip::FinishPhase;
using schema::MemberState;
using schema::RunState;

namespace {

constexpr Duration kDrain = std::chrono::seconds(10);  // of a leave: inside the usual grace of 30 s
constexpr Duration kLinger = std::chrono::milliseconds(300);  // for LEAVE to get out of the socket
constexpr Duration kSayAgain = std::chrono::seconds(30);
constexpr int kSeedRetryIntervals = 19;  // the longest pause of a dial with its jitter (mesh.h)
constexpr int kFinishAloneGraces = 10;

}  // namespace

void ControlLoop::enter(RunState state) {
  if (state == state_) return;
  say(LogLevel::kInfo, "state",
      {{"from", schema::name_of(state_)}, {"to", schema::name_of(state)}});
  state_ = state;
  waiting_for_.clear();
  false_finals_.clear();
  beat();
  roster_.hurry();
  ExchangeLoop* exchange = parts_.exchange;
  switch (state) {
    case RunState::kTraining:
      if (exchange != nullptr) exchange->set_active(averages());
      parts_.trainer->resume();
      break;
    case RunState::kFinishing:
      parts_.trainer->hold();
      if (exchange == nullptr || parts_.composition.what == gossip::What::kNothing) break;
      exchange->set_codec(CodecId::kFp32);
      exchange->set_active(true);
      exchange->set_rounds_every(preset_.probe_interval / 10);
      break;
    case RunState::kLeaving:
      parts_.trainer->hold();
      leave_deadline_ = now() + kDrain;
      say(LogLevel::kInfo, "leaving: finishing exchanges");
      if (exchange != nullptr) exchange->set_draining(true);
      break;
    case RunState::kWaiting:
    case RunState::kJoining:
    case RunState::kComplete:
      parts_.trainer->hold();
      if (exchange != nullptr) exchange->set_active(false);
      break;
  }
}

void ControlLoop::advance() {
  if (incarnation_to_pass_) return advance_passing();
  if (starting_ && state_ != RunState::kLeaving) return;
  switch (state_) {
    case RunState::kWaiting:
      advance_waiting();
      break;
    case RunState::kJoining:
      if (fetching_ == Fetching::kAdoption && assembly_) tell_donors();
      if (fetching_ == Fetching::kNothing && now() >= retry_fetch_at_)
        begin_adoption(adoption_reason_);
      break;
    case RunState::kTraining:
      advance_training();
      break;
    case RunState::kFinishing:
    case RunState::kComplete:
      advance_finish();
      break;
    case RunState::kLeaving:
      advance_leaving();
      break;
  }
}

void ControlLoop::advance_waiting() {
  switch (join_.state()) {
    case JoinState::kSeeking:
      waiting_for_ = "no seed reached yet, each is tried again within " +
                     decimals(to_seconds(preset_.probe_interval * kSeedRetryIntervals), 0) +
                     " s: " + join_.explain();
      // Nothing is left to train and nobody is left to ask: the others have finished and gone.
      if (progress_.done() && now() - waiting_since_ > preset_.grace * kFinishAloneGraces) {
        say(LogLevel::kWarn,
            "the run's length was reached before and no member answers: finishing from the "
            "checkpoint",
            {{"tried", join_.explain()}});
        return begin_finish();
      }
      break;
    case JoinState::kTimedOut:
      say(LogLevel::kError, "no seed reached within --join-timeout", {{"tried", join_.explain()}});
      exit_code_ = exit_code(ErrorCode::kNoSeed);
      return;
    case JoinState::kRefused:
      say(LogLevel::kError, "every seed refused this node", {{"why", join_.explain()}});
      exit_code_ = exit_code(ErrorCode::kIncompatible);
      return;
    case JoinState::kAlone:
    case JoinState::kJoined: {
      if (!synced_) {
        const Samples own = record_.samples;
        const bool givers = somebody_can_give();
        refresh_belief();
        const bool fresh = !parts_.restored || !parts_.restored->has_trained;
        if (averages() && givers && fresh && own == 0)
          return begin_adoption("this node is new to a run in progress");
        if (averages() && givers && belief_.depth > depth() + belief_.max_lag)
          return begin_adoption("the checkpoint is too far behind");
        synced_ = true;
        if (join_.state() == JoinState::kAlone && !parts_.config->cluster.join.empty() &&
            parts_.control != nullptr)
          say(LogLevel::kWarn, "no seed answered: starting alone, and asking the seeds for ever",
              {{"tried", join_.explain()}});
      }
      if (progress_.done()) return begin_finish();
      if (enough_members()) return start_training();
      waiting_for_ = "waiting for " + std::to_string(parts_.config->run.start_members) +
                     " members, " + std::to_string(1 + roster_.count(MemberState::kAlive)) +
                     " here";
      break;
    }
  }
  if (now() >= next_waiting_word_) {
    next_waiting_word_ = now() + kSayAgain;
    say(LogLevel::kInfo, waiting_for_);
  }
}

bool ControlLoop::enough_members() {
  const std::size_t here = 1 + roster_.count(MemberState::kAlive);
  if (here >= parts_.config->run.start_members || progress_.samples() > 0) return true;
  const Duration limit = parts_.config->run.start_timeout;
  if (limit == Duration{0} || now() - waiting_since_ < limit) return false;
  say(LogLevel::kWarn, "starting with fewer members than start_members: start_timeout has passed",
      {{"members", std::to_string(here)}});
  return true;
}

void ControlLoop::start_training() {
  epochs_evaluated_ = static_cast<std::uint64_t>(progress_.epoch());
  if (!parts_.store->files().empty()) return enter(RunState::kTraining);
  // A run can always fall back to a checkpoint, even from its first step. If none can be written,
  // that is said, and training goes on.
  starting_ = true;
  write_checkpoint([this](const Result<std::string>&) {
    post([this] {
      starting_ = false;
      if (state_ == RunState::kWaiting || state_ == RunState::kJoining) enter(RunState::kTraining);
    });
  });
}

void ControlLoop::advance_training() {
  // Who came late may not know what members did that were gone by then: it would train on alone
  // while all others rest and wait for it.
  if (progress_.done() || most_have_ended()) return begin_finish();
  // The trainer stops itself at the length it knew; news of more data can make the run longer.
  if (parts_.trainer->holding() && !unhealthy_) parts_.trainer->resume();
  const auto epochs = static_cast<std::uint64_t>(progress_.epoch());
  if (epochs > epochs_evaluated_) {
    epochs_evaluated_ = epochs;
    parts_.trainer->evaluate();
  }
  if (now() >= next_checkpoint_) write_checkpoint();
}

CheckpointFacts ControlLoop::facts() const {
  CheckpointFacts facts;
  facts.run_id = parts_.config->run.id;
  facts.cluster = parts_.config->cluster.name;
  facts.schema_hash = parts_.schema_hash;
  facts.node = self_;
  facts.incarnation = parts_.incarnation;
  put_counts(progress_, self_, facts);
  facts.model_json = parts_.model_json;
  facts.data_mean = parts_.data->mean;
  facts.data_std = parts_.data->std;
  facts.classes = parts_.data->classes;
  facts.has_trained = synced_;
  facts.depth_ahead = static_cast<double>(depth_ahead_);
  return facts;
}

// 0 seconds: only when leaving, and at the end.
void ControlLoop::schedule_checkpoint() {
  const double seconds = parts_.live != nullptr ? parts_.live->checkpoint_every_seconds.load()
                                                : parts_.config->checkpoint.every_seconds;
  next_checkpoint_ = seconds > 0 ? now() + from_seconds(seconds) : TimePoint::max();
}

void ControlLoop::write_checkpoint(std::function<void(const Result<std::string>&)> done) {
  schedule_checkpoint();
  if (unhealthy_) {
    if (done)
      done(fail(ErrorCode::kNonFinite,
                "the state is not finite: it is not written over a sound one"));
    return;
  }
  if (!parts_.checkpointer->request(facts(), done) && done)
    done(fail(ErrorCode::kBusy, kCheckpointBusy));
}

void ControlLoop::write_export(const std::string& to,
                               std::function<void(const Result<std::string>&)> done) {
  if (state_ == RunState::kComplete)
    return parts_.checkpointer->request_export_of(final_path(), to, std::move(done));
  if (unhealthy_) return done(fail(ErrorCode::kNonFinite, "the state is not finite"));
  parts_.checkpointer->request_export(to, facts(), std::move(done));
}

// The process starts again at once: what was trained is kept.
void ControlLoop::advance_passing() {
  if (passing_ || parts_.checkpointer->busy()) return;
  passing_ = true;
  const auto end = [this](const Result<std::string>&) {
    post([this] { exit_code_ = exit_code(ErrorCode::kFailed); });
  };
  if (synced_)
    write_checkpoint(end);
  else
    end(std::string());
}

void ControlLoop::advance_leaving() {
  if (leave_sent_) {
    if (now() >= leave_deadline_) exit_code_ = last_word();
    return;
  }
  if (now() > leave_deadline_ + kDrain) {
    say(LogLevel::kError, "leaving without a checkpoint: the disk or the model does not answer");
    exit_code_ = exit_code(ErrorCode::kFailed);
    return;
  }
  // After a common final model no exchange changes anything any more, here or there.
  const bool common = final_written_ && parts_.composition.finish == gossip::Finish::kConsensus;
  const bool drained = parts_.exchange == nullptr || common || parts_.exchange->snapshot().drained;
  if (!drained && now() < leave_deadline_) return;
  if (!final_tried_last()) return;
  if (final_written_ || leave_checkpointed_) return finish_leaving();
  if (parts_.checkpointer->busy()) return;
  leave_checkpointed_ = true;
  leave_saving_ = true;
  write_checkpoint([this](const Result<std::string>& path) {
    post([this, path] {
      leave_saving_ = false;
      if (!path) return;
      leave_checkpoint_ = *path;
      say(LogLevel::kInfo, "leaving: checkpoint written",
          {{"step", std::to_string(parts_.checkpointer->stats().last_step)}});
    });
  });
}

void ControlLoop::finish_leaving() {
  if (settling_ || leave_saving_) return;
  refresh_record();
  roster_.leave();
  leave_sent_ = true;
  leave_deadline_ = now() + (parts_.control != nullptr ? kLinger : Duration{0});
  say(LogLevel::kInfo, "left", {{"step", std::to_string(record_.step)}});
}

}  // namespace kith::node
