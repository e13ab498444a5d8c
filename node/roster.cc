#include "node/roster.h"

#include <algorithm>
#include <utility>

namespace kith::node {

using gossip::SwimEvent;
using gossip::SwimMember;
using schema::MemberRecord;
using schema::MemberState;

namespace {

gossip::SwimSettings swim_settings(const RosterSettings& settings) {
  gossip::SwimSettings swim = gossip::SwimSettings::preset(settings.probe_interval);
  if (settings.forget_after > Duration{0}) swim.forget_after = settings.forget_after;
  return swim;
}

const char* words_of(SwimEvent::Kind kind) {
  switch (kind) {
    case SwimEvent::Kind::kJoined: return "member joined";
    case SwimEvent::Kind::kAlive: return "member alive again";
    case SwimEvent::Kind::kSuspect: return "member suspect: it does not answer";
    case SwimEvent::Kind::kDead: return "member dead";
    case SwimEvent::Kind::kLeft: return "member left";
    case SwimEvent::Kind::kReturned: return "member returned";
    case SwimEvent::Kind::kForgotten: return "member forgotten: gone for long";
    case SwimEvent::Kind::kRefuted: return "this node was called dead or suspect, and answered";
    default: return "";
  }
}

}  // namespace

Roster::Roster(RosterSettings settings, const Identity& identity, MemberRecord own, Mesh* control, const Clock& clock,
               LogSink& log, Random random)
    : identity_(identity),
      control_(control),
      clock_(clock),
      log_(log),
      random_(random.fork("roster")),
      swim_(swim_settings(settings), std::move(own), *this, random.fork("swim"), clock.now()) {}

void Roster::sign(MemberRecord& own) { sign_record(identity_, own); }
void Roster::sign(schema::Accusation& own) { own.signature = identity_.sign(schema::accusation_hash(own)); }
bool Roster::verify(const MemberRecord& record) { return verify_record(record); }
bool Roster::verify(const schema::Accusation& accusation) {
  return node::verify(accusation.accuser, schema::accusation_hash(accusation), accusation.signature);
}

bool Roster::on_peer_up(const PeerUp& up) {
  const TimePoint now = clock_.now();
  links_changed_ = true;
  if (up.hello && !swim_.on_record(now, up.hello->record, true)) return false;
  if (up.welcome) {
    if (!swim_.on_record(now, up.welcome->record, true)) return false;
    for (const MemberRecord& record : up.welcome->records) swim_.on_record(now, record, false);
  }
  swim_.on_link(now, up.id, true);
  return true;
}

void Roster::on_peer_down(const PeerDown& down) {
  links_changed_ = true;
  swim_.on_link(clock_.now(), down.id, false);
}

bool Roster::on_message(const NodeId& from, const schema::Message& message) {
  using namespace schema;
  const bool ours = std::holds_alternative<Ping>(message) || std::holds_alternative<Pong>(message) ||
                    std::holds_alternative<PingRequest>(message) || std::holds_alternative<Nack>(message) ||
                    std::holds_alternative<Gossip>(message) || std::holds_alternative<Digest>(message) ||
                    std::holds_alternative<Sync>(message) || std::holds_alternative<Leave>(message);
  if (ours) swim_.on_message(clock_.now(), from, message);
  return ours;
}

void Roster::set_own(const MemberRecord& own, Samples progress) { swim_.set_own(clock_.now(), own, progress); }

void Roster::leave() {
  swim_.leave(clock_.now());
  send_all();
}

void Roster::send(const schema::Message& message, const std::function<bool(const MemberRecord&)>& wanted) {
  if (control_ == nullptr) return;
  for (const auto& [id, member] : swim_.members())
    if (control_->linked(id) && wanted(member.record())) control_->send(id, message);
}

std::vector<SwimEvent> Roster::turn() {
  swim_.tick(clock_.now());
  send_all();
  std::vector<SwimEvent> events = swim_.take_events();
  for (const SwimEvent& event : events) {
    say(event);
    if (event.kind == SwimEvent::Kind::kForgotten) drop_link(event.id);
    if (event.kind != SwimEvent::Kind::kRefuted) links_changed_ = true;
  }
  dial_members();
  if (swim_.isolated() != isolated_) {
    isolated_ = !isolated_;
    log_.log(isolated_ ? LogLevel::kWarn : LogLevel::kInfo, "node",
             isolated_ ? "no member answers: this node is cut off; it goes on alone and asks the others and the seeds for ever"
                       : "members answer again");
  }
  return events;
}

void Roster::send_all() {
  for (auto& out : swim_.take_outgoing())
    if (control_ != nullptr) control_->send(out.to, out.message);  // no link or no room: lost, like any message
}

// One link per pair: the member with the lower id dials, the other waits for it a while.
void Roster::dial_members() {
  if (control_ == nullptr || (!links_changed_ && dial_after_.empty())) return;
  const TimePoint at = clock_.now();
  for (const auto& [id, member] : swim_.members()) keep_link(id, member, at);
  links_changed_ = false;
}

void Roster::keep_link(const NodeId& id, const SwimMember& member, TimePoint at) {
  auto& dialled = dialled_[id];
  const MemberRecord& r = member.record();
  if (r.state == MemberState::kLeft || (!dialled.empty() && dialled != r.control_address)) {
    drop_link(id);
    if (r.state == MemberState::kLeft) return;
  }
  if (!dialled_[id].empty() || control_->linked(id)) {
    dial_after_.erase(id);
    return;
  }
  const auto [it, fresh] = dial_after_.try_emplace(id, identity_.id() < id ? at : at + kDialPatience);
  if (at < it->second) return;
  dialled_[id] = r.control_address;
  control_->dial(r.control_address);
  dial_after_.erase(it);
}

void Roster::drop_link(const NodeId& id) {
  const auto it = dialled_.find(id);
  if (it != dialled_.end() && !it->second.empty() && control_ != nullptr) control_->undial(it->second);
  if (it != dialled_.end()) dialled_.erase(it);
  dial_after_.erase(id);
}

void Roster::say(const SwimEvent& event) {
  if (event.kind == SwimEvent::Kind::kRecord || event.kind == SwimEvent::Kind::kUsurped) return;
  log_.log(event.kind == SwimEvent::Kind::kDead ? LogLevel::kWarn : LogLevel::kInfo, "node", words_of(event.kind),
           {{"name", event.name}, {"id", event.id.short_hex()}, {"address", event.address}});
}

std::string Roster::name_of(const NodeId& id) const {
  const SwimMember* member = swim_.find(id);
  return member != nullptr && !member->record().name.empty() ? member->record().name : id.short_hex();
}

std::optional<MemberRecord> Roster::record_of(const NodeId& id) const {
  const SwimMember* member = swim_.find(id);
  return member == nullptr ? std::nullopt : std::optional(member->record());
}

// Those that can be dialled, at random: a WELCOME has room for few. Some of the others, so that a joiner knows of them.
std::vector<MemberRecord> Roster::sample(std::size_t most) {
  std::vector<const MemberRecord*> live, gone;
  for (const auto& [id, member] : swim_.members())
    (member.state() == MemberState::kAlive || member.state() == MemberState::kSuspect ? live : gone)
        .push_back(&member.record());
  for (auto* list : {&live, &gone})
    for (std::size_t i = 0; i + 1 < list->size() && i < most; ++i)
      std::swap((*list)[i], (*list)[i + random_.below(list->size() - i)]);
  live.insert(live.end(), gone.begin(), gone.end());
  if (live.size() > most) live.resize(most);
  std::vector<MemberRecord> records;
  for (const MemberRecord* record : live) records.push_back(*record);
  return records;
}

}  // namespace kith::node
