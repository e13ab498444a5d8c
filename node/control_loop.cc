// The loop itself: what comes in, heartbeats, records, status. The state machine is in control_state.cc, the end of a
// run in control_finish.cc.
#include "node/control_loop.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "node/address.h"

namespace kith::node {

using schema::MemberState;
using schema::RunState;

namespace {

constexpr Duration kLookAtLeastEvery = std::chrono::milliseconds(100);
constexpr Duration kOwnPause = std::chrono::seconds(2);      // the loop did not run for so long: we were stopped
constexpr Duration kStatusEvery = std::chrono::milliseconds(50);
constexpr std::size_t kRefusalsSaidMax = 1024;
constexpr std::size_t kRecentRounds = 16;
constexpr Duration kNonFiniteForgotten = std::chrono::minutes(2);
constexpr int kNonFiniteDoublings = 8;

JoinSettings join_settings(const ControlParts& parts) {
  const Config& config = *parts.config;
  JoinSettings settings;
  if (parts.control != nullptr) settings.seeds = config.cluster.join;
  const std::string bound = parts.control != nullptr ? parts.control->bound_address() : "";
  settings.own_address_among_seeds = std::any_of(
      settings.seeds.begin(), settings.seeds.end(),
      [&](const std::string& seed) { return seed == bound || seed == config.node.listen || seed == config.node.advertise; });
  settings.bootstrap = config.bootstrap;
  settings.grace = config.cluster.preset.grace;
  settings.join_timeout = config.join_timeout;
  return settings;
}

gossip::FinishSettings finish_settings(const ControlParts& parts) {
  gossip::FinishSettings settings;
  settings.self = parts.identity->id();
  settings.fragments = parts.replica->fragment_count();
  // Four times the silence after which a member is dead: time to fetch again from somebody else.
  settings.linger_max = parts.config->cluster.preset.probe_interval * 100;
  return settings;
}

// What others should dial: `advertise` (host or host:port) over the bound address.
std::string advertised(const std::string& advertise, const std::string& bound) {
  if (advertise.empty() || bound.empty()) return bound;
  if (const auto given = parse_mesh_address(advertise)) return advertise;
  const auto colon = bound.rfind(':');
  return advertise + bound.substr(colon);
}

// The bulk plane is advertised under the same host as the control plane, with its own port.
std::string advertised_bulk(const std::string& control, const std::string& bulk) {
  if (control.empty() || bulk.empty()) return bulk;
  return control.substr(0, control.rfind(':')) + bulk.substr(bulk.rfind(':'));
}

schema::MemberRecord first_record(const ControlParts& parts) {
  schema::MemberRecord record;
  record.id = parts.identity->id();
  record.incarnation = parts.incarnation;
  record.boot_nonce = parts.boot_nonce;
  record.name = parts.config->node.name;
  if (parts.control != nullptr) {
    record.control_address = advertised(parts.config->node.advertise, parts.control->bound_address());
    record.bulk_address = advertised_bulk(record.control_address, parts.bulk_address);
  }
  record.http_address = parts.http_address;
  record.data_fingerprint = parts.data->fingerprint;
  record.data_samples = parts.data->whole_count;
  record.shard_samples = parts.data->train.count;
  record.shard_index = parts.data->shard_index;
  record.shard_count = parts.data->shard_count;
  record.version_text = KITH_VERSION;
  return record;
}

template <typename T>
void keep_recent(std::deque<T>& values, T value) {
  values.push_back(value);
  if (values.size() > kRecentRounds) values.pop_front();
}

double median(std::deque<double> values) {
  if (values.empty()) return -1.0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

DataShareSettings share_settings(const ControlParts& parts) {
  const compute::LoadedData& data = *parts.data;
  return {parts.identity->id(), parts.config->data.shard == "auto", data.fingerprint, data.whole_count, data.train.count,
          parts.config->run.seed, parts.config->cluster.preset.probe_interval};
}

}  // namespace

ControlLoop::ControlLoop(ControlParts parts, std::function<void(const gossip::ExchangeEvent&)> observe_exchange)
    : parts_(std::move(parts)),
      observe_exchange_(std::move(observe_exchange)),
      preset_(parts_.config->cluster.preset),
      self_(parts_.identity->id()),
      random_(parts_.seed),
      record_(first_record(parts_)),
      roster_({preset_.probe_interval, parts_.config->cluster.forget_after, parts_.config->cluster.partial_view_above}, *parts_.identity, record_, parts_.control,
              *parts_.clock, *parts_.log, random_),
      progress_(parts_.length),
      data_share_(share_settings(parts_), [this](auto mask, auto at) { parts_.trainer->share(std::move(mask), at); }, *parts_.log),
      finish_(finish_settings(parts_)),
      join_(join_settings(parts_), parts_.clock->now()),
      last_turn_(now()),
      waiting_since_(now()),
      next_waiting_word_(now() + std::chrono::seconds(2)) {
  schedule_checkpoint();
  data_share_.describe(record_);
  parts_.policy->set_book(&roster_);
  if (parts_.restored) {
    depth_ahead_ = static_cast<std::int64_t>(std::clamp(parts_.restored->depth_ahead, -1e15, 1e15));
    for (const auto& [hex, samples] : parts_.restored->others_samples) {
      const auto id = NodeId::from_hex(hex);
      const auto steps = parts_.restored->others_steps.find(hex);
      if (id) progress_.note(*id, samples, steps == parts_.restored->others_steps.end() ? 0 : steps->second);
    }
    synced_ = false;  // decided when the others' progress is known
  }
  refresh_record();
}

ControlLoop::~ControlLoop() = default;

void ControlLoop::say(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
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

void ControlLoop::request_leave() {
  leave_requested_ = true;
  wake_.ring();
}

void ControlLoop::checkpoint_now(std::function<void(const Result<std::string>&)> done) {
  post([this, done = std::move(done)]() mutable {
    // The writer's answer comes on its own thread.
    write_checkpoint([this, done = std::move(done)](const Result<std::string>& result) {
      post([done, result] { done(result); });
    });
  });
}

void ControlLoop::join(const std::string& address) {
  post([this, address] {
    roster_.seek(address);
  });
}

void ControlLoop::on_evaluated(const compute::EvalResult& result) {
  post([this, result] {
    if (std::isfinite(result.accuracy))
      say(LogLevel::kInfo, "evaluated",
          {{"accuracy", std::to_string(result.accuracy)}, {"loss", std::to_string(result.loss)}});
    if (after_evaluation_) std::exchange(after_evaluation_, nullptr)(result);
  });
}

void ControlLoop::on_nonfinite(const std::string& what) {
  post([this, what] {
    if (state_ != RunState::kTraining && state_ != RunState::kJoining) return;  // nobody steps; a final state is fetched anyway
    // Again and again: each time twice as long before the next try, so that neither donors nor logs are flooded.
    const bool again = nonfinite_times_ > 0 && now() - last_nonfinite_ < kNonFiniteForgotten;
    if (!again) recoveries_alone_ = 0;
    nonfinite_times_ = again ? std::min(nonfinite_times_ + 1, kNonFiniteDoublings) : 1;
    last_nonfinite_ = now();
    unhealthy_ = true;
    trouble_ = what;
    say(LogLevel::kError, "training became non-finite: nothing is published or proposed until a sound state is taken",
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

int ControlLoop::run() {
  say(LogLevel::kInfo, "up", {{"members_needed", std::to_string(parts_.config->run.start_members)}});
  std::vector<std::string> seeds = parts_.config->cluster.join;
  for (std::size_t i = 0; i + 1 < seeds.size(); ++i) std::swap(seeds[i], seeds[i + random_.below(seeds.size() - i)]);
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
  return std::min({now() + kLookAtLeastEvery, roster_.next_deadline(), join_.next_deadline(), next_beat_});
}

void ControlLoop::turn() {
  const TimePoint at = now();
  if (at - last_turn_ > kOwnPause) {
    say(LogLevel::kWarn, "this process did not run for a while: no member is blamed for that silence",
        {{"seconds", std::to_string(to_seconds(at - last_turn_))}});
    roster_.on_own_pause();
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
  if (const auto twin = parts_.policy->take_twin()) identity_in_use(twin->name + " at " + twin->control_address);
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
}

void ControlLoop::handle(MeshEvent& event) {
  if (auto* received = std::get_if<Received>(&event)) {
    handle_message(received->from, received->message);
  } else if (const auto* up = std::get_if<PeerUp>(&event)) {
    on_peer_up(*up);
  } else if (const auto* down = std::get_if<PeerDown>(&event)) {
    roster_.on_peer_down(*down);
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
    say(self ? LogLevel::kDebug : LogLevel::kWarn, "refused by a seed or member; it is asked again for ever",
        {{"address", refused.address}, {"reason", reject.detail}});
  }
  join_.on_refused(refused.address, reject, refused.by_all);
}

// A copied data directory. Of the two processes this is the one that ends.
void ControlLoop::identity_in_use(const std::string& where) {
  say(LogLevel::kError, "this node's identity is in use elsewhere: a copied data directory? Give the copy an empty one, and it "
                        "becomes a node of its own", {{"other", where}});
  exit_code_ = exit_code(ErrorCode::kDataDirInUse);
}

void ControlLoop::pass_incarnation(Incarnation seen, const NodeId& teller) {
  if (incarnation_to_pass_ || state_ == RunState::kLeaving) return;
  say(LogLevel::kWarn, "members know a later start of this node than its data directory does: starting again above it",
      {{"peer", teller.short_hex()}, {"boot_there", std::to_string(seen >> 32)},
       {"boot_here", std::to_string(parts_.incarnation >> 32)}});
  incarnation_to_pass_ = seen;
}

// Nobody's memory grows with everybody who was ever there; what they trained stays counted.
void ControlLoop::forget(const NodeId& id) {
  last_exchange_wall_.erase(id);
  donors_failed_.erase(id);
  false_finals_.erase(id);
}

void ControlLoop::on_peer_up(const PeerUp& up) {
  if (up.welcome) {
    if (const auto difference = parts_.policy->judge_welcome(*up.welcome)) {
      say(LogLevel::kWarn, "a member's run differs from ours", {{"peer", up.id.short_hex()}, {"what", *difference}});
      return;
    }
    // The incarnation file is gone or old: what others remember of this node would make it deaf.
    const Incarnation seen = up.welcome->seen_incarnation;
    if (join_.state() == JoinState::kSeeking && seen >= parts_.incarnation) return pass_incarnation(seen, up.id);
  }
  if (!roster_.on_peer_up(up)) {
    say(LogLevel::kWarn, "a member record with a wrong signature was dropped", {{"id", up.id.short_hex()}});
    return;
  }
  join_.on_peer(now());
}

void ControlLoop::on_member_event(const gossip::SwimEvent& event) {
  using Kind = gossip::SwimEvent::Kind;
  peers_changed_ = true;
  if (event.kind == Kind::kUsurped) {
    // A later start of ours that is gone: the boot counter was lost. One that lives is another process.
    if (event.state == schema::MemberState::kDead || event.state == schema::MemberState::kLeft)
      return pass_incarnation(event.incarnation, event.id);
    return identity_in_use(event.name + " at " + event.address);
  }
  if (event.kind == Kind::kForgotten) return forget(event.id);
  const gossip::SwimMember* member = roster_.find(event.id);
  if (member == nullptr) return;
  const schema::MemberRecord& record = member->record();
  if (event.kind != Kind::kRecord) belief_stale_ = true;
  count(record);
  progress_.note_data(record);
  // Somebody knows that the run's length is reached. Counts that are up to date let everybody see it now: a node that trains on
  // while others rest pulls the average to its own data.
  if (record.run_state == RunState::kFinishing && state_ == RunState::kTraining && now() >= next_hurry_) {
    next_hurry_ = now() + preset_.probe_interval / 10;
    refresh_record();
    roster_.hurry();
  }
}

void ControlLoop::handle_message(const NodeId& from, schema::Message& message) {
  if (roster_.on_message(from, message)) return;
  if (const auto* final = std::get_if<schema::Final>(&message)) accept_final(from, *final);
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

void ControlLoop::on_exchange(const gossip::ExchangeEvent& event) {
  using Kind = gossip::ExchangeEvent::Kind;
  observe_exchange_(event);
  const auto reason = std::min<std::size_t>(static_cast<std::size_t>(event.reason), refused_.size() - 1);
  if (event.kind == Kind::kCompletedInitiator || event.kind == Kind::kCompletedResponder) {
    last_exchange_wall_[event.peer] = parts_.clock->wall_seconds();
    const auto steps = static_cast<std::int64_t>(parts_.trainer->stats().steps);
    // Further apart nobody exchanges, whatever the answer says.
    const Step gained = std::min({event.peer_depth, depth() + belief_.max_lag, Step{1} << 62});
    depth_ahead_ = std::max(depth_ahead_, static_cast<std::int64_t>(gained) - steps);
    const double relative =
        event.distance_squared == 0.0 ? 0.0 : std::sqrt(event.distance_squared / std::max(event.norm_squared, 1e-300));
    finish_.on_distance(event.fragment, relative);
    round_distance_sq_ += event.distance_squared;
    round_norm_sq_ += event.norm_squared;
    if (++round_fragments_ >= parts_.replica->fragment_count()) {
      keep_recent(distances_absolute_, std::sqrt(round_distance_sq_));
      keep_recent(distances_relative_, std::sqrt(round_distance_sq_ / std::max(round_norm_sq_, 1e-300)));
      round_distance_sq_ = round_norm_sq_ = 0.0;
      round_fragments_ = 0;
    }
    if (event.kind == Kind::kCompletedInitiator)
      keep_recent(staleness_, static_cast<double>(event.staleness_steps));
  } else if (event.kind == Kind::kRefused && !event.busy) {
    ++refused_[reason];
  } else if (event.kind == Kind::kRefusedOther) {
    if (event.busy)
      ++refused_others_busy_;
    else
      ++refused_others_[reason];
  } else if (event.kind == Kind::kForfeited) {
    say(LogLevel::kWarn, "a delta that its initiator never collected was given up", {{"peer", event.peer.short_hex()}});
  } else if (event.kind == Kind::kLagging) {
    consider_lag();
  }
}

void ControlLoop::refresh_record() {
  const compute::TrainerStats stats = parts_.trainer->stats();
  record_.run_state = state_;
  record_.converged = finish_.converged();
  record_.step = stats.steps;
  record_.samples = stats.samples;
  record_.loss = stats.loss;
  record_.accuracy = final_accuracy_ >= 0 ? final_accuracy_ : stats.eval_accuracy;
  record_.learning_rate = stats.learning_rate;
  record_.steps_per_second = stats.steps_per_second;
  record_.depth = depth();
  roster_.set_own(record_);
  record_ = roster_.own();
  progress_.note_data(record_);
  parts_.policy->set_record(record_);
  parts_.policy->set_progress(progress_.samples());
}

void ControlLoop::beat() {
  next_beat_ = now() + preset_.probe_interval;
  if (roster_.view() != nullptr) peers_changed_ = true;  // it is shuffled all the time
  refresh_record();
  const auto& final = finish_.final();
  if (final && finish_.phase() == gossip::FinishPhase::kComplete)
    roster_.send(*final, [](const auto& record) { return record.run_state != RunState::kComplete; });
  refresh_belief();
  count_members();
  parts_.donor->set_progress(progress_.samples());
  if (parts_.exchange == nullptr) return;
  parts_.exchange->set_depth(record_.depth, record_.step, belief_.max_lag);
  consider_lag();
}

// Who may be averaged with, and who only linked to.
void ControlLoop::refresh_peers() {
  if (parts_.exchange == nullptr || !std::exchange(peers_changed_, false)) return;
  std::vector<BulkPeer> peers;
  for (const auto& [id, member] : roster_.members()) {
    const auto& r = member.record();
    if ((r.state != MemberState::kAlive && r.state != MemberState::kSuspect) || !roster_.is_near(id)) continue;
    const bool trains = r.run_state == RunState::kTraining || r.run_state == RunState::kFinishing;
    peers.push_back({id, r.incarnation >> 32 << 32, r.bulk_address, trains && r.state == MemberState::kAlive});
  }
  if (peers == bulk_peers_) return;
  bulk_peers_ = peers;
  parts_.exchange->set_peers(std::move(peers));
}

void ControlLoop::publish_status() {
  next_status_ = now() + kStatusEvery;
  NodeStatus status;
  status.self = record_;
  status.self.run_state = state_;
  status.members.reserve(roster_.members().size());
  for (const auto& [id, member] : roster_.members()) status.members.push_back(member);
  status.swim = roster_.swim().counters();
  if (const auto* view = roster_.view()) status.neighbours = view->active().size();
  status.isolated = roster_.swim().isolated();
  status.local_health = roster_.swim().local_health();
  status.now = now();
  status.progress = progress_.samples();
  status.epoch = progress_.epoch();
  status.length_samples = progress_.length_samples();
  if (parts_.exchange != nullptr) status.exchange = parts_.exchange->snapshot();
  if (parts_.control != nullptr) status.control = parts_.control->counters();
  status.last_exchange_wall_seconds = last_exchange_wall_;
  status.refused_by_reason = refused_;
  status.refused_others_by_reason = refused_others_;
  status.refused_others_busy = refused_others_busy_;
  status.consensus_relative = median(distances_relative_);
  status.consensus_absolute = median(distances_absolute_);
  status.staleness_steps = median(staleness_);
  status.checkpoints = parts_.checkpointer->stats();
  status.adoptions = adoptions_;
  status.final_accuracy = final_accuracy_;
  status.waiting_for = waiting_for_;
  status.trouble = trouble_;
  const std::lock_guard lock(mutex_);
  status_ = std::move(status);
}

NodeStatus ControlLoop::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

}  // namespace kith::node
