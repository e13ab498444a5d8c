#include "gossip/membership.h"

#include <algorithm>
#include <utility>

namespace kith::gossip {

using schema::MemberRecord;
using schema::MemberState;
using schema::RunState;

namespace {

bool newer(const MemberRecord& a, const MemberRecord& b) {
  return std::pair(a.incarnation, a.version) > std::pair(b.incarnation, b.version);
}

bool is_leaving(const MemberRecord& record) { return record.run_state == RunState::kLeaving; }

}  // namespace

Membership::Membership(MembershipSettings settings, NodeId self, TimePoint now)
    : settings_(settings), self_(self), next_probe_(now) {}

void Membership::set_state(Member& member, MemberState state, MemberEvent::Kind kind) {
  if (member.record.state == state && kind != MemberEvent::Kind::kJoined) return;
  member.record.state = state;
  member.relays_left = settings_.relay_times * static_cast<unsigned>(members_.size());
  events_.push_back({kind, member.record.id, member.record.name, member.record.control_address});
}

bool Membership::is_news(const MemberRecord& record) const {
  if (record.id == self_) return false;
  const auto it = members_.find(record.id);
  return it == members_.end() || newer(record, it->second.record);
}

void Membership::on_record(TimePoint now, const MemberRecord& record, bool direct) {
  if (record.id == self_) return;
  auto it = members_.find(record.id);
  if (it == members_.end()) {
    if (members_.size() >= settings_.members_max) return;
    Member member;
    member.record = record;
    // Whom others call dead or left is not taken for alive because it is new to us.
    const bool gone = !direct && (record.state == MemberState::kDead || record.state == MemberState::kLeft);
    member.record.state = MemberState::kAlive;
    member.heard = now;
    it = members_.emplace(record.id, std::move(member)).first;
    set_state(it->second, gone ? record.state : MemberState::kAlive, MemberEvent::Kind::kJoined);
    return;
  }
  Member& member = it->second;
  const bool returns = record.incarnation > member.record.incarnation;
  if (newer(record, member.record)) {
    const MemberState state = member.record.state;
    member.record = record;
    member.record.state = state;
    if (returns) {
      member.heard = now;
      member.relays_left = settings_.relay_times * static_cast<unsigned>(members_.size());
    }
  } else if (!direct || record.incarnation < member.record.incarnation) {
    return;
  }
  const bool gone = member.record.state == MemberState::kDead || member.record.state == MemberState::kLeft;
  if (direct) {
    member.heard = now;
    // A node that said LEAVE stays left until it returns with a higher incarnation.
    if (member.record.state == MemberState::kLeft && !returns) return;
    set_state(member, MemberState::kAlive,
              gone ? MemberEvent::Kind::kReturned : MemberEvent::Kind::kAlive);
  } else if (gone && returns) {
    set_state(member, MemberState::kAlive, MemberEvent::Kind::kReturned);
  }
}

void Membership::on_heartbeat(TimePoint now, const NodeId& from, const schema::Heartbeat& heartbeat) {
  on_record(now, heartbeat.record, heartbeat.record.id == from);
  const auto it = members_.find(from);
  if (it == members_.end()) return;
  echoes_[from] = {heartbeat.echo, now};
  const auto now_ns = static_cast<std::uint64_t>(now.since_start.count());
  const std::uint64_t away = now_ns - heartbeat.echo_reply;
  if (heartbeat.echo_reply == 0 || heartbeat.echo_reply > now_ns || heartbeat.echo_hold > away) return;
  const double sample = to_seconds(Duration(away - heartbeat.echo_hold));
  double& rtt = it->second.rtt_seconds;
  rtt = rtt < 0 ? sample : rtt + (sample - rtt) * 0.2;
}

void Membership::on_leave(TimePoint, const NodeId& from) {
  const auto it = members_.find(from);
  if (it != members_.end()) set_state(it->second, MemberState::kLeft, MemberEvent::Kind::kLeft);
}

void Membership::tick(TimePoint now) {
  for (auto& [id, member] : members_) {
    if (member.record.state == MemberState::kDead || member.record.state == MemberState::kLeft) continue;
    const Duration silence = now - member.heard;
    if (silence > settings_.probe_interval * settings_.dead_intervals) {
      if (is_leaving(member.record))
        set_state(member, MemberState::kLeft, MemberEvent::Kind::kLeft);
      else
        set_state(member, MemberState::kDead, MemberEvent::Kind::kDead);
    } else if (silence > settings_.probe_interval * settings_.suspect_intervals) {
      set_state(member, MemberState::kSuspect, MemberEvent::Kind::kSuspect);
    }
  }
}

bool Membership::probe_due(TimePoint now) {
  if (now < next_probe_) return false;
  next_probe_ = next_probe_ + settings_.probe_interval;
  if (next_probe_ <= now) next_probe_ = now + settings_.probe_interval;  // a pause is not made up for
  return true;
}

schema::Heartbeat Membership::heartbeat_for(TimePoint now, const NodeId& to, const MemberRecord& own,
                                            Samples progress) {
  schema::Heartbeat heartbeat;
  heartbeat.record = own;
  heartbeat.progress = progress;
  heartbeat.echo = static_cast<std::uint64_t>(now.since_start.count());
  if (const auto it = echoes_.find(to); it != echoes_.end()) {
    heartbeat.echo_reply = it->second.value;
    heartbeat.echo_hold = static_cast<std::uint64_t>((now - it->second.taken).count());
  }
  for (auto& [id, member] : members_) {
    if (heartbeat.records.size() >= settings_.relayed_max) break;
    if (member.relays_left == 0) continue;  // its own record too: a copy of a node must learn of the other
    --member.relays_left;
    heartbeat.records.push_back(member.record);
  }
  // Anti-entropy: one more by rotation, so that every record reaches everybody even if its relays were lost.
  if (!members_.empty() && heartbeat.records.size() < settings_.relayed_max) {
    auto it = members_.upper_bound(rotation_);
    if (it == members_.end()) it = members_.begin();
    rotation_ = it->first;
    if (it->first != to) heartbeat.records.push_back(it->second.record);
  }
  return heartbeat;
}

void Membership::on_own_pause(TimePoint now) {
  for (auto& [id, member] : members_) member.heard = std::max(member.heard, now);
}

const Member* Membership::find(const NodeId& id) const {
  const auto it = members_.find(id);
  return it == members_.end() ? nullptr : &it->second;
}

std::size_t Membership::count(MemberState state) const {
  return static_cast<std::size_t>(std::count_if(members_.begin(), members_.end(), [state](const auto& entry) {
    return entry.second.record.state == state;
  }));
}

std::vector<MemberEvent> Membership::take_events() { return std::exchange(events_, {}); }

}  // namespace kith::gossip
