// The loop itself and what comes in. How it is made: control_setup.cc; records, peers and status:
// control_figures.cc; the state machine: control_state.cc; adoption: control_adopt.cc; the end of a
// run: control_finish.cc.
#include "node/daemon/control_loop.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "node/text/address.h"

namespace kith::node {

using schema::MemberState;
using schema::RunState;

namespace {

constexpr Duration kLookAtLeastEvery = std::chrono::milliseconds(100);
constexpr Duration kOwnPause =
    std::chrono::seconds(2);  // the loop did not run for so long: we were stopped
constexpr std::size_t kRefusalsSaidMax = 1024;

}  // namespace

void ControlLoop::say(LogLevel level, std::string_view message,
                      std::initializer_list<LogField> fields) {
  parts_.log->log(level, "node", message, fields);
}

void ControlLoop::wake() { wake_.ring(); }

void ControlLoop::post(std::function<void()> command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  wake_.ring();
}

void ControlLoop::checkpoint_interval_changed() {
  post([this] { schedule_checkpoint(); });
}

void ControlLoop::request_leave() {
  leave_requested_ = true;
  wake_.ring();
}

void ControlLoop::checkpoint_now(std::function<void(const Result<std::string>&)> done) {
  post([this, done = on_loop(std::move(done))] { write_checkpoint(done); });
}

void ControlLoop::export_now(const std::string& to,
                             std::function<void(const Result<std::string>&)> done) {
  post([this, to, done = on_loop(std::move(done))] { write_export(to, done); });
}

// The writer's answer comes on its own thread.
std::function<void(const Result<std::string>&)> ControlLoop::on_loop(
    std::function<void(const Result<std::string>&)> done) {
  return [this, done = std::move(done)](const Result<std::string>& result) {
    post([done, result] { done(result); });
  };
}

void ControlLoop::join(const std::string& address) {
  post([this, address] { roster_.seek(address); });
}

void ControlLoop::on_evaluated(const compute::EvalResult& result) {
  post([this, result] {
    if (std::isfinite(result.accuracy))
      say(LogLevel::kInfo, "evaluated",
          {{"accuracy", std::to_string(result.accuracy)}, {"loss", std::to_string(result.loss)}});
    if (after_evaluation_) std::exchange(after_evaluation_, nullptr)(result);
  });
}

int ControlLoop::run() {
  say(LogLevel::kInfo, "up",
      {{"members_needed", std::to_string(parts_.config->run.start_members)}});
  std::vector<std::string> seeds = parts_.config->cluster.join;
  for (std::size_t i = 0; i + 1 < seeds.size(); ++i)
    std::swap(seeds[i], seeds[i + random_.below(seeds.size() - i)]);
  for (const std::string& seed : seeds) roster_.seek(seed);
  while (!exit_code_) {
    turn();
    if (exit_code_) break;
    std::vector<MeshEvent> events;
    if (parts_.control != nullptr)
      events = parts_.control->poll(deadline(), wake_.fd());
    else
      wake_.wait(deadline() - now());
    wake_.clear();
    for (MeshEvent& event : events) handle(event);
  }
  ended_ = true;
  parts_.trainer->stop();
  return *exit_code_;
}

TimePoint ControlLoop::deadline() const {
  return std::min(
      {now() + kLookAtLeastEvery, roster_.next_deadline(), join_.next_deadline(), next_beat_});
}

void ControlLoop::turn() {
  const TimePoint at = now();
  if (at - last_turn_ > kOwnPause) {
    say(LogLevel::kWarn,
        "this process did not run for a while: no member is blamed for that silence",
        {{"seconds", std::to_string(to_seconds(at - last_turn_))}});
    roster_.on_own_pause();
    note_absence(at - last_turn_);
  }
  last_turn_ = at;
  std::vector<std::function<void()>> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(commands_);
  }
  for (auto& command : commands) command();
  if (leave_requested_ && state_ != RunState::kLeaving) enter(RunState::kLeaving);
  handle_happenings();
  for (const gossip::SwimEvent& event : roster_.turn()) on_member_event(event);
  if (const auto twin = parts_.policy->take_twin())
    identity_in_use(twin->name + " at " + twin->control_address);
  join_.tick(at);
  const compute::TrainerStats stats = parts_.trainer->stats();
  progress_.note(self_, stats.samples, stats.steps);
  if (belief_stale_) {
    refresh_belief();
    count_members();
  }
  parts_.others_samples->store(progress_.samples() - std::min(progress_.samples(), stats.samples));
  parts_.others_steps->store(progress_.steps() - std::min(progress_.steps(), stats.steps));
  parts_.length_samples->store(parts_.length.steps > 0 ? 0.0 : progress_.length_samples());
  data_share_.turn({at, state_, progress_.epoch(), adoptions_}, roster_.members(), record_);
  advance();
  refresh_peers();
  if (at >= next_beat_) beat();
  if (at >= next_status_) publish_status();
  note_company();
}

void ControlLoop::handle(MeshEvent& event) {
  if (auto* received = std::get_if<Received>(&event)) {
    handle_message(received->from, received->message);
  } else if (const auto* up = std::get_if<PeerUp>(&event)) {
    on_peer_up(*up);
  } else if (const auto* down = std::get_if<PeerDown>(&event)) {
    roster_.on_peer_down(*down);
    tally_peers_.erase(down->id);
  } else if (const auto* refused = std::get_if<Refused>(&event)) {
    on_refused(*refused);
  } else if (const auto* failed = std::get_if<DialFailed>(&event)) {
    join_.on_unreachable(failed->address, failed->why);
  }
}

void ControlLoop::on_refused(const Refused& refused) {
  using schema::RejectCode;
  const schema::Reject& reject = refused.reject;
  if (reject.code == RejectCode::kNotReady) return;
  // Only a node that is not in yet believes this: for members there are signed records.
  if (reject.code == RejectCode::kIdentity && join_.state() == JoinState::kSeeking &&
      reject.seen_incarnation > roster_.own().incarnation)
    return identity_in_use(reject.detail);
  const bool self = reject.code == RejectCode::kSelf;
  // A name may stand for others too, so it stays dialled.
  std::string& said = refusals_said_[refused.address];
  if (refusals_said_.size() > kRefusalsSaidMax) {
    refusals_said_.clear();
  } else if (said != reject.detail) {
    said = reject.detail;
    say(self ? LogLevel::kDebug : LogLevel::kWarn,
        "refused by a seed or member; it is asked again for ever",
        {{"address", refused.address}, {"reason", reject.detail}});
  }
  join_.on_refused(refused.address, reject, refused.by_all);
}

// A copied data directory. Of the two processes this is the one that ends.
void ControlLoop::identity_in_use(const std::string& where) {
  say(LogLevel::kError,
      "this node's identity is in use elsewhere: a copied data directory? Give the copy an empty "
      "one, and it "
      "becomes a node of its own",
      {{"other", where}});
  exit_code_ = exit_code(ErrorCode::kDataDirInUse);
}

void ControlLoop::pass_incarnation(Incarnation seen, const NodeId& teller) {
  if (incarnation_to_pass_ || state_ == RunState::kLeaving) return;
  say(LogLevel::kWarn,
      "members know a later start of this node than its data directory does: starting again above "
      "it",
      {{"peer", teller.short_hex()},
       {"boot_there", std::to_string(seen >> 32)},
       {"boot_here", std::to_string(parts_.incarnation >> 32)}});
  incarnation_to_pass_ = seen;
}

// Nobody's memory grows with everybody who was ever there; what they trained stays counted.
void ControlLoop::forget(const NodeId& id) {
  last_exchange_wall_.erase(id);
  donors_failed_.erase(id);
  false_finals_.erase(id);
  progress_.forget(id);
}

void ControlLoop::on_peer_up(const PeerUp& up) {
  if (up.welcome) {
    if (const auto difference = parts_.policy->judge_welcome(*up.welcome)) {
      say(LogLevel::kWarn, "a member's run differs from ours",
          {{"peer", up.id.short_hex()}, {"what", *difference}});
      return;
    }
    // The incarnation file is gone or old: what others remember of this node would make it deaf.
    const Incarnation seen = up.welcome->seen_incarnation;
    if (join_.state() == JoinState::kSeeking && seen >= parts_.incarnation)
      return pass_incarnation(seen, up.id);
  }
  if (!roster_.on_peer_up(up)) {
    say(LogLevel::kWarn, "a member record with a wrong signature was dropped",
        {{"id", up.id.short_hex()}});
    return;
  }
  join_.on_peer(now());
  if ((up.hello && up.hello->tallies) || (up.welcome && up.welcome->tallies))
    tally_peers_.insert(up.id);
}

void ControlLoop::on_member_event(const gossip::SwimEvent& event) {
  using Kind = gossip::SwimEvent::Kind;
  peers_changed_ = true;
  if (event.kind == Kind::kUsurped) {
    // A later start of ours that is gone: the boot counter was lost. One that lives is another
    // process.
    if (event.state == schema::MemberState::kDead || event.state == schema::MemberState::kLeft)
      return pass_incarnation(event.incarnation, event.id);
    return identity_in_use(event.name + " at " + event.address);
  }
  if (event.kind == Kind::kForgotten) return forget(event.id);
  const gossip::SwimMember* member = roster_.find(event.id);
  if (member == nullptr) return;
  const schema::MemberRecord& record = member->record();
  if (event.kind != Kind::kRecord) belief_stale_ = true;
  if (event.kind == Kind::kJoined || event.kind == Kind::kReturned) tally_asker_.hurry();
  count(record);
  progress_.note_data(record);
  // Somebody knows that the run's length is reached. Counts that are up to date let everybody see
  // it now: a node that trains on while others rest pulls the average to its own data.
  if (record.run_state == RunState::kFinishing && state_ == RunState::kTraining &&
      now() >= next_hurry_) {
    next_hurry_ = now() + preset_.probe_interval / 10;
    refresh_record();
    roster_.hurry();
  }
}

void ControlLoop::handle_message(const NodeId& from, schema::Message& message) {
  if (roster_.on_message(from, message)) return;
  if (const auto* final = std::get_if<schema::Final>(&message)) accept_final(from, *final);
  if (const auto* tally = std::get_if<schema::Tally>(&message)) on_tally(from, *tally);
}

void ControlLoop::handle_happenings() {
  if (parts_.exchange == nullptr) return;
  for (Happening& happening : parts_.exchange->take_happenings()) {
    if (auto* event = std::get_if<gossip::ExchangeEvent>(&happening))
      on_exchange(*event);
    else if (auto* fetched = std::get_if<gossip::StateTransfer::Fetched>(&happening))
      on_fetched(*fetched);
    else if (const auto* end = std::get_if<FetchEnded>(&happening))
      on_fetch_end(*end);
  }
}

}  // namespace kith::node
