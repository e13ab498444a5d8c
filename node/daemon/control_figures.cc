// ControlLoop: figures that others are told, who is averaged with, and what people see.
#include <algorithm>
#include <cmath>
#include <utility>

#include "node/daemon/control_loop.h"

namespace kith::node {

using schema::MemberState;
using schema::RunState;

namespace {

constexpr Duration kStatusEvery = std::chrono::milliseconds(50);
constexpr std::size_t kRecentRounds = 16;

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

}  // namespace

void ControlLoop::on_exchange(const gossip::ExchangeEvent& event) {
  using Kind = gossip::ExchangeEvent::Kind;
  observe_exchange_(event);
  const auto reason =
      std::min<std::size_t>(static_cast<std::size_t>(event.reason), refused_.size() - 1);
  if (event.kind == Kind::kCompletedInitiator || event.kind == Kind::kCompletedResponder) {
    last_exchange_wall_[event.peer] = parts_.clock->wall_seconds();
    const auto steps = static_cast<std::int64_t>(parts_.trainer->stats().steps);
    // Further apart nobody exchanges, whatever the answer says.
    const Step gained = std::min({event.peer_depth, depth() + belief_.max_lag, Step{1} << 62});
    depth_ahead_ = std::max(depth_ahead_, static_cast<std::int64_t>(gained) - steps);
    const double relative =
        event.distance_squared == 0.0
            ? 0.0
            : std::sqrt(event.distance_squared / std::max(event.norm_squared, 1e-300));
    count_distance(event, relative);
    round_distance_sq_ += event.distance_squared;
    round_norm_sq_ += event.norm_squared;
    if (++round_fragments_ >= parts_.replica->fragment_count()) {
      keep_recent(distances_absolute_, std::sqrt(round_distance_sq_));
      keep_recent(distances_relative_,
                  std::sqrt(round_distance_sq_ / std::max(round_norm_sq_, 1e-300)));
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
    say(LogLevel::kWarn, "a delta that its initiator never collected was given up",
        {{"peer", event.peer.short_hex()}});
  } else if (event.kind == Kind::kLagging) {
    consider_lag();
  }
}

void ControlLoop::refresh_record() {
  const compute::TrainerStats stats = parts_.trainer->stats();
  // Who has the final state gives it like one that is complete, whether it is on disk yet or not.
  const bool gives_final = state_ == RunState::kFinishing && owed_ != nullptr;
  record_.run_state = gives_final ? RunState::kComplete : state_;
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
}

void ControlLoop::watch_keys() {
  if (parts_.control == nullptr) return;
  const auto before = std::exchange(key_refusals_, {});
  for (const KeyRefusal& refusal : parts_.control->key_refusals()) {
    key_refusals_.insert(refusal.peer);
    if (before.contains(refusal.peer)) continue;
    say(LogLevel::kWarn, "a seed or member ends the key exchange: do the cluster keys differ?",
        {{"peer", refusal.peer},
         {"why", refusal.why},
         {"check",
          "cluster.key_file there and here must be the same (sha256sum); if it is, something else "
          "listens there"}});
  }
  for (const std::string& peer : before)
    if (!key_refusals_.contains(peer))
      say(LogLevel::kInfo, "that seed or member no longer ends the key exchange", {{"peer", peer}});
}

void ControlLoop::beat() {
  next_beat_ = now() + preset_.probe_interval;
  if (roster_.view() != nullptr) peers_changed_ = true;  // it is shuffled all the time
  watch_keys();
  refresh_record();
  const auto& final = finish_.final();
  if (final && finish_.phase() == gossip::FinishPhase::kComplete)
    roster_.send(*final,
                 [](const auto& record) { return record.run_state != RunState::kComplete; });
  refresh_belief();
  count_members();
  if (parts_.control != nullptr) ask_tallies();
  parts_.donor->set_cluster_samples(progress_.samples());
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
    if ((r.state != MemberState::kAlive && r.state != MemberState::kSuspect) ||
        !roster_.is_near(id))
      continue;
    const bool trains = r.run_state == RunState::kTraining || r.run_state == RunState::kFinishing;
    peers.push_back(
        {id, r.incarnation >> 32 << 32, r.bulk_address, trains && r.state == MemberState::kAlive});
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
  status.key_refusals.assign(key_refusals_.begin(), key_refusals_.end());
  status.waiting_for = waiting_for_;
  status.trouble = trouble_;
  status.final_error = final_error_;
  const std::lock_guard lock(mutex_);
  status_ = std::move(status);
}

NodeStatus ControlLoop::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

}  // namespace kith::node
