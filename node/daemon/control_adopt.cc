// ControlLoop: how deep this node's model is, when it is too far behind, and taking the cluster's
// state.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "node/daemon/control_loop.h"
#include "node/text/text.h"

namespace kith::node {

using schema::MemberState;
using schema::RunState;

namespace {

constexpr Duration kDonorPause =
    std::chrono::seconds(2);  // before asking a donor again that failed
constexpr int kRecoveriesAlone = 3;
constexpr Duration kNonFiniteForgotten = std::chrono::minutes(2);
constexpr int kNonFiniteDoublings = 8;
constexpr int kNewsIntervals = 10;     // news lost or late before a difference means lag
constexpr double kNewsSteps = 16.0;    // before a pace is known
constexpr double kNewsMost = 1e15;     // whatever pace somebody claims
constexpr double kNewsRounds = 4.0;    // rounds in which a node may happen to exchange with nobody
constexpr int kNoDonorIntervals = 10;  // then a node with a state of its own goes on with that
constexpr int kAloneAheadIntervals = 50;  // then a node that no two others follow follows them
constexpr double kMaxLagEndless = 1.0;    // epochs, when the run has no length

// Holds a state of this run worth taking: it has trained, and is not itself fetching or going.
bool can_give(const gossip::SwimMember& member) {
  const auto& r = member.record();
  const bool live = r.state == MemberState::kAlive || r.state == MemberState::kSuspect;
  return live && r.samples + r.step > 0 && r.run_state != RunState::kJoining &&
         r.run_state != RunState::kLeaving;
}

}  // namespace

Step ControlLoop::depth() const {
  const auto depth = static_cast<std::int64_t>(parts_.trainer->stats().steps) + depth_ahead_;
  return static_cast<Step>(std::max<std::int64_t>(depth, 0));
}

bool ControlLoop::somebody_can_give() const {
  return std::any_of(roster_.members().begin(), roster_.members().end(),
                     [](const auto& entry) { return can_give(entry.second); });
}

// The configured part of a node's steps in the run, but never less than what healthy members may
// differ by: news of each other's steps is a few probe intervals old, and some methods let steps
// pass between exchanges.
Step ControlLoop::max_lag() const {
  std::vector<double> paces;
  for (const auto& [id, member] : roster_.members())
    if (member.state() == MemberState::kAlive && member.record().run_state == RunState::kTraining)
      paces.push_back(member.record().steps_per_second);
  const double trainers = 1.0 + static_cast<double>(paces.size());
  const double pace = believed_pace(record_.steps_per_second, paces);
  const double news =
      std::min(pace * to_seconds(preset_.probe_interval * kNewsIntervals), kNewsMost) + kNewsSteps;
  const double floor = news + kNewsRounds * static_cast<double>(parts_.composition.every_steps);
  const std::string& text = parts_.config->exchange.max_lag;
  const double number = std::stod(text);  // checked by the configuration
  if (text.back() != '%') return static_cast<Step>(std::max(floor, number));
  const double batch = parts_.config->train.batch_size;
  const double length = progress_.length_samples();
  const double run =
      length > 0 ? length : kMaxLagEndless * static_cast<double>(progress_.data_samples());
  return static_cast<Step>(std::clamp(run / (batch * trainers) * number / 100.0, floor, 1e18));
}

void ControlLoop::refresh_belief() {
  belief_stale_ = false;
  std::vector<Step> training, waiting;  // who only waits knows less than who trains
  std::vector<double> ratios;
  for (const auto& [id, member] : roster_.members()) {
    const auto& r = member.record();
    if (r.step > 0) ratios.push_back(static_cast<double>(r.samples) / static_cast<double>(r.step));
    if (can_give(member))
      (r.run_state == RunState::kWaiting ? waiting : training).push_back(r.depth);
  }
  const std::vector<Step>& witnesses = training.empty() ? waiting : training;
  belief_ = {};
  belief_.max_lag = max_lag();
  belief_.witnesses = witnesses.size();
  belief_.depth = vouched(witnesses);
  if (!averages()) return;  // every model is as deep as its node is fast
  belief_.steps_max = sum(std::max(belief_.depth, depth()), belief_.max_lag);
  const auto batch = static_cast<double>(parts_.config->train.batch_size);
  belief_.samples_per_step_max = kBatchFactor * std::max(batch, vouched(std::move(ratios)));
}

// A slow node that exchanges has no lag, since an exchange gives both sides the greater depth;
// halves of a cut cluster have little; a frozen node has much, and so has the younger of two
// islands that meet.
void ControlLoop::consider_lag() {
  if (state_ != RunState::kTraining || !averages()) return;
  refresh_belief();
  if (belief_.depth > depth() + belief_.max_lag) return give_up_and_adopt(belief_.depth - depth());
  if (!alone_ahead()) return;
  say(LogLevel::kWarn,
      "all other members hold a much younger state and nobody vouches for ours: it is given up for "
      "theirs",
      {{"own_depth", std::to_string(depth())},
       {"their_depth", std::to_string(belief_.depth)},
       {"members", std::to_string(belief_.witnesses)}});
  ahead_since_.reset();
  begin_adoption("alone ahead of all others");
}

bool ControlLoop::alone_ahead() {
  bool ahead = belief_.witnesses >= 2;
  for (const auto& [id, member] : roster_.members())
    if (can_give(member) && sum(member.record().depth, belief_.max_lag) >= depth()) ahead = false;
  if (!ahead) ahead_since_.reset();
  if (ahead && !ahead_since_) ahead_since_ = now();
  return ahead && now() - *ahead_since_ > preset_.probe_interval * kAloneAheadIntervals;
}

void ControlLoop::give_up_and_adopt(Step steps_behind) {
  say(LogLevel::kWarn,
      "far behind the cluster: its state is adopted, what was trained here meanwhile is given up",
      {{"steps_behind", std::to_string(steps_behind)},
       {"max_lag_steps", std::to_string(belief_.max_lag)},
       {"own_steps", std::to_string(record_.step)}});
  begin_adoption("too far behind");
}

// Whoever can give and has not failed lately.
std::vector<NodeId> ControlLoop::adoption_donors() {
  std::vector<NodeId> donors;
  refresh_belief();
  for (const auto& [id, member] : roster_.members()) {
    const auto failed = donors_failed_.find(id);
    const bool level = unhealthy_ || belief_.is_level(member.record().depth);
    if (can_give(member) && level && (failed == donors_failed_.end() || now() >= failed->second))
      donors.push_back(id);
  }
  return donors;
}

void ControlLoop::begin_adoption(const std::string& why) {
  if (fetching_ != Fetching::kNothing || state_ == RunState::kLeaving ||
      state_ == RunState::kComplete || finish_.final())
    return;
  std::vector<NodeId> donors = adoption_donors();
  const bool anybody =
      roster_.count(MemberState::kAlive) + roster_.count(MemberState::kSuspect) > 0;
  const bool waited = state_ == RunState::kJoining &&
                      now() - adoption_began_ > preset_.probe_interval * kNoDonorIntervals;
  if (donors.empty() && unhealthy_ && (!anybody || waited))
    return recover_alone("no healthy member to take a state from");
  if (state_ != RunState::kJoining) {
    adoption_began_ = now();
    adoption_reason_ = why;
    say(LogLevel::kInfo, "fetching the cluster's state", {{"because", why}});
    enter(RunState::kJoining);
  }
  if (donors.empty()) {
    if (waited && nobody_holds_more()) {
      say(LogLevel::kWarn, "no member can give a state: going on with our own");
      synced_ = true;
      return start_training();
    }
    waiting_for_ = "waiting for a member that can give its state";
    retry_fetch_at_ = now() + preset_.probe_interval;
    return;
  }
  // Not everybody begins with the same ones.
  std::rotate(donors.begin(),
              donors.begin() + static_cast<std::ptrdiff_t>(random_.below(donors.size())),
              donors.end());
  parts_.exchange->abandon_open();
  // What an interrupted try has brought is kept, unless the cluster has gone far since.
  if (!assembly_)
    assembly_ = std::make_shared<StateAssembly>(
        *parts_.replica, std::vector<std::int64_t>(parts_.schema->integer_count, 0));
  const Samples lag = max_lag() * static_cast<Samples>(parts_.config->train.batch_size) *
                      (1 + roster_.count(MemberState::kAlive));
  const Samples not_before = progress_.samples() - std::min(progress_.samples(), lag);
  fetching_ = Fetching::kAdoption;
  donors_told_ = donors;
  parts_.exchange->fetch(std::move(donors), assembly_->missing(!unhealthy_, not_before));
}

// Who has come and who is gone while a state is fetched.
void ControlLoop::tell_donors() {
  std::vector<NodeId> donors = adoption_donors();
  std::vector<NodeId> told = donors_told_;  // in an order of its own
  std::sort(told.begin(), told.end());
  if (donors == told) return;
  donors_told_ = donors;
  parts_.exchange->set_donors(std::move(donors));
}

// True when waiting for a donor is vain: we hold a state of this run, or no live member does.
bool ControlLoop::nobody_holds_more() const {
  if (synced_) return true;
  return std::none_of(roster_.members().begin(), roster_.members().end(), [](const auto& entry) {
    const auto& r = entry.second.record();
    const bool live = r.state == MemberState::kAlive || r.state == MemberState::kSuspect;
    return live && r.samples + r.step > 0;
  });
}

void ControlLoop::on_fetched(gossip::StateTransfer::Fetched& fetched) {
  if (!assembly_ || fetching_ == Fetching::kNothing) return;  // refused a moment ago
  donor_ = fetched.from;
  if (fetched.key.item == schema::StateItem::kManifest)
    return on_manifest(fetched.bytes.contiguous());
  if (const Status added = assembly_->add(fetched); !added) {
    say(LogLevel::kWarn, "a fetched item was refused",
        {{"peer", donor_.short_hex()}, {"why", added.error().message}});
    parts_.exchange->cancel_fetch();
    on_fetch_end({donor_, fail(added.error()), {donor_}});
  }
}

void ControlLoop::on_fetch_end(const FetchEnded& end) {
  const Fetching was = std::exchange(fetching_, Fetching::kNothing);
  if (was == Fetching::kNothing) return;
  if (!end.status) {
    say(LogLevel::kWarn, "fetching a state failed: trying again",
        {{"why", end.status.error().message}});
    for (const NodeId& id : end.lost) donors_failed_[id] = now() + kDonorPause;
    if (was != Fetching::kAdoption && end.status.error().code == ErrorCode::kNotFound &&
        end.lost.size() == 1)
      finish_.on_withdrawn(end.lost.front());
    retry_fetch_at_ = now() + preset_.probe_interval;
    return;
  }
  if (was == Fetching::kAdoption) {
    adopt_assembled();
  } else if (was == Fetching::kFinalManifest) {
    fetch_final_items();
  } else if (was == Fetching::kFinalItems) {
    check_final_items();
  }
}

void ControlLoop::adopt_assembled() {
  const std::size_t bytes = assembly_->bytes();
  // After a non-finite state: fresh moments.
  compute::TrainerState state = assembly_->take(!unhealthy_);
  assembly_.reset();
  fetching_ = Fetching::kAdoption;  // until the trainer has it: no second adoption meanwhile
  parts_.trainer->adopt(std::move(state), [this, bytes] {
    post([this, bytes] {
      fetching_ = Fetching::kNothing;
      ++adoptions_;
      const bool first = !std::exchange(synced_, true);
      unhealthy_ = false;
      const auto* donor = roster_.find(donor_);
      refresh_belief();
      const Step given = donor != nullptr && belief_.is_level(donor->record().depth)
                             ? donor->record().depth
                             : belief_.depth;
      depth_ahead_ = static_cast<std::int64_t>(given) -
                     static_cast<std::int64_t>(parts_.trainer->stats().steps);
      // The one line that a person who starts a node waits for.
      say(LogLevel::kInfo,
          (first ? "joined run " : "caught up with run ") + parts_.config->run.id + " via " +
              roster_.name_of(donor_) + ": " +
              std::to_string(1 + roster_.count(MemberState::kAlive)) + " members, synced model (" +
              bytes_text(static_cast<double>(bytes)) + ") in " +
              decimals(to_seconds(now() - adoption_began_), 2) + " s, starting at step " +
              std::to_string(given),
          {{"progress", std::to_string(progress_.samples())}});
      if (state_ == RunState::kJoining) start_training();
    });
  });
}

void ControlLoop::on_nonfinite(const std::string& what) {
  post([this, what] {
    if (state_ != RunState::kTraining && state_ != RunState::kJoining)
      return;  // nobody steps; a final state is fetched anyway
    // Again and again: each time twice as long before the next try, so that neither donors nor logs
    // are flooded.
    const bool again = nonfinite_times_ > 0 && now() - last_nonfinite_ < kNonFiniteForgotten;
    if (!again) recoveries_alone_ = 0;
    nonfinite_times_ = again ? std::min(nonfinite_times_ + 1, kNonFiniteDoublings) : 1;
    last_nonfinite_ = now();
    unhealthy_ = true;
    trouble_ = what;
    say(LogLevel::kError,
        "training became non-finite: nothing is published or proposed until a sound state is taken",
        {{"what", what}});
    if (parts_.exchange != nullptr) parts_.exchange->set_active(false);
    if (parts_.exchange != nullptr && again) {
      adoption_began_ = now();
      adoption_reason_ = "own state is not finite";
      retry_fetch_at_ = now() + preset_.probe_interval * (1 << nonfinite_times_);
      enter(RunState::kJoining);
      waiting_for_ = "not finite again: a sound state is taken in a while";
      return;
    }
    begin_adoption("own state is not finite");
  });
}

// Alone with a state that is not finite: back to the checkpoint with half the learning rate, three
// times at most.
void ControlLoop::recover_alone(const std::string& what) {
  if (++recoveries_alone_ > kRecoveriesAlone) {
    say(LogLevel::kError,
        "training became non-finite again after three recoveries: lower train.learning_rate, set "
        "train.clip_norm, or look at the data",
        {{"what", trouble_}});
    exit_code_ = exit_code(ErrorCode::kFailed);
    return;
  }
  auto loaded =
      parts_.store->load_newest(*parts_.schema, parts_.schema_hash, parts_.config->run.id);
  if (!loaded || !*loaded) {
    say(LogLevel::kError, "training became non-finite and there is no checkpoint to fall back to",
        {{"what", trouble_}, {"error", loaded ? "none written yet" : loaded.error().message}});
    exit_code_ = exit_code(ErrorCode::kFailed);
    return;
  }
  say(LogLevel::kError, "back to the checkpoint with half the learning rate",
      {{"because", what}, {"path", (*loaded)->path}, {"try", std::to_string(recoveries_alone_)}});
  compute::TrainerState state = std::move((*loaded)->state);
  state.optimizer.clear();          // fresh moments
  state.own.reset();                // counters and cursor go on
  fetching_ = Fetching::kAdoption;  // until the trainer has it
  parts_.trainer->scale_learning_rate(0.5);
  parts_.trainer->adopt(std::move(state), [this] {
    post([this] {
      fetching_ = Fetching::kNothing;
      unhealthy_ = false;
      if (state_ == RunState::kTraining && parts_.exchange != nullptr)
        parts_.exchange->set_active(averages());
      if (state_ == RunState::kTraining) parts_.trainer->resume();
      if (state_ == RunState::kJoining) enter(RunState::kTraining);
    });
  });
}

}  // namespace kith::node
