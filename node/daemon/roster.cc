#include "node/daemon/roster.h"

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

constexpr std::size_t kWaitingMax = 256;
constexpr Duration kWaitingPatience = std::chrono::seconds(10);
constexpr Duration kGoodbyePatience = std::chrono::seconds(1);
constexpr unsigned kFirstNeighbours = 3;  // asked when the partial view is taken up

const char* words_of(SwimEvent::Kind kind) {
  switch (kind) {
    case SwimEvent::Kind::kJoined:
      return "member joined";
    case SwimEvent::Kind::kAlive:
      return "member alive again";
    case SwimEvent::Kind::kSuspect:
      return "member suspect: it does not answer";
    case SwimEvent::Kind::kDead:
      return "member dead";
    case SwimEvent::Kind::kLeft:
      return "member left";
    case SwimEvent::Kind::kReturned:
      return "member returned";
    case SwimEvent::Kind::kForgotten:
      return "member forgotten: gone for long";
    case SwimEvent::Kind::kRefuted:
      return "this node was called dead or suspect, and answered";
    default:
      return "";
  }
}

}  // namespace

Roster::Roster(RosterSettings settings, const Identity& identity, MemberRecord own, Mesh* control,
               const Clock& clock, LogSink& log, Random random)
    : identity_(identity),
      control_(control),
      clock_(clock),
      log_(log),
      random_(random.fork("roster")),
      settings_(settings),
      swim_(swim_settings(settings), std::move(own), *this, random.fork("swim"), clock.now()) {
  if (control == nullptr) return;
  PeerLinks::Wires wires = PeerLinks::wires_of(*control);
  wires.undial = [this](const std::string& address) {
    if (!seeds_.contains(address)) control_->undial(address);
  };
  links_.emplace(std::move(wires));
}

void Roster::sign(MemberRecord& own) { sign_record(identity_, own); }
void Roster::sign(schema::Accusation& own) {
  own.signature = identity_.sign(schema::accusation_hash(own));
}
bool Roster::verify(const MemberRecord& record) { return verify_record(record); }
bool Roster::verify(const schema::Accusation& accusation) {
  return node::verify(accusation.accuser, schema::accusation_hash(accusation),
                      accusation.signature);
}

void Roster::seek(const std::string& seed) {
  if (control_ == nullptr || !seeds_.insert(seed).second) return;
  control_->dial(seed);
}

bool Roster::on_peer_up(const PeerUp& up) {
  const TimePoint now = clock_.now();
  links_changed_ = true;
  const SwimMember* before = swim_.find(up.id);
  const bool apart = before == nullptr || before->state() == MemberState::kDead;
  if (up.hello && !swim_.on_record(now, up.hello->record, true)) return false;
  if (up.welcome) {
    if (!swim_.on_record(now, up.welcome->record, true)) return false;
    for (const MemberRecord& record : up.welcome->records) swim_.on_record(now, record, false);
  }
  swim_.on_link(now, up.id, true);
  if (view_) {
    if (const SwimMember* member = swim_.find(up.id);
        member != nullptr && (apart || view_->isolated()))
      view_->join(now, member->record());
  }
  if (const auto it = waiting_.find(up.id); it != waiting_.end() && it->second.message) {
    control_->send(up.id, *it->second.message);
    it->second = {std::nullopt, now + kWaitingPatience};
  }
  return true;
}

void Roster::on_peer_down(const PeerDown& down) {
  links_changed_ = true;
  if (const auto it = waiting_.find(down.id); it != waiting_.end() && !it->second.message)
    waiting_.erase(it);  // no reason to dial again
  swim_.on_link(clock_.now(), down.id, false);
}

bool Roster::on_message(const NodeId& from, const schema::Message& message) {
  using namespace schema;
  if (const auto* view = std::get_if<View>(&message)) {
    if (view_) view_->on_view(clock_.now(), from, *view);
    return true;
  }
  const bool ours =
      std::holds_alternative<Ping>(message) || std::holds_alternative<Pong>(message) ||
      std::holds_alternative<PingRequest>(message) || std::holds_alternative<Nack>(message) ||
      std::holds_alternative<Gossip>(message) || std::holds_alternative<Digest>(message) ||
      std::holds_alternative<Sync>(message) || std::holds_alternative<Leave>(message);
  if (ours) swim_.on_message(clock_.now(), from, message);
  return ours;
}

void Roster::set_own(const MemberRecord& own) { swim_.set_own(clock_.now(), own); }

void Roster::hurry() {
  swim_.hurry();
  send_all();
}

void Roster::leave() {
  swim_.leave(clock_.now());
  send_all();
}

void Roster::send(const schema::Message& message,
                  const std::function<bool(const MemberRecord&)>& wanted) {
  if (control_ == nullptr) return;
  for (const auto& [id, member] : swim_.members())
    if (control_->linked(id) && wanted(member.record())) control_->send(id, message);
}

std::vector<SwimEvent> Roster::turn() {
  swim_.tick(clock_.now());
  send_all();
  std::vector<SwimEvent> events = swim_.take_events();
  choose_view();
  if (view_) turn_view(events);
  for (const SwimEvent& event : events) {
    say(event);
    if (event.kind == SwimEvent::Kind::kRefuted) continue;
    if (event.kind != SwimEvent::Kind::kRecord) links_changed_ = true;
    // Figures are new all the time: only this one is looked at, for its address.
    else if (const SwimMember* member = swim_.find(event.id); member != nullptr && links_)
      if (const auto peer = link_to(event.id, member->record())) links_->keep(*peer, clock_.now());
  }
  link_members();
  if (swim_.isolated() != isolated_) {
    isolated_ = !isolated_;
    log_.log(isolated_ ? LogLevel::kWarn : LogLevel::kInfo, "node",
             isolated_ ? "no member answers: this node is cut off; it goes on alone and asks the "
                         "others and the seeds for ever"
                       : "members answer again");
  }
  return events;
}

void Roster::send_all() {
  for (auto& out : swim_.take_outgoing()) {
    if (view_ && std::holds_alternative<schema::Ping>(out.message))
      send_or_dial(std::move(out));
    else if (control_ != nullptr)
      control_->send(out.to, out.message);  // no link or no room: lost, like any message
  }
}

bool Roster::is_near(const NodeId& id) const { return !view_ || view_->record_of(id) != nullptr; }

// With hysteresis, so that a cluster at the edge does not change its links all the time.
void Roster::choose_view() {
  const std::size_t members = 1 + swim_.count(MemberState::kAlive);
  const TimePoint at = clock_.now();
  if (!view_ && members > settings_.partial_view_above) {
    view_.emplace(gossip::PartialViewSettings::preset(settings_.probe_interval), swim_.own(),
                  static_cast<gossip::RecordAuthority&>(*this), random_.fork("view"), at);
    swim_.set_neighbours(std::vector<NodeId>{});  // links that go now say nothing
    std::vector<const MemberRecord*> linked;
    for (const auto& [id, member] : swim_.members()) {
      if (member.state() != MemberState::kAlive) continue;
      view_->offer(member.record());
      if (control_ != nullptr && control_->linked(id)) linked.push_back(&member.record());
    }
    for (unsigned i = 0; i < kFirstNeighbours && !linked.empty(); ++i)
      view_->join(at, *linked[random_.below(linked.size())]);
    log_.log(LogLevel::kInfo, "node",
             "many members: links only with the neighbours of a partial view from now on",
             {{"members", std::to_string(members)}});
  } else if (view_ && members < settings_.partial_view_above * 3 / 4) {
    view_.reset();
    watched_.clear();
    waiting_.clear();
    swim_.set_neighbours(std::nullopt);
    links_changed_ = true;
    log_.log(LogLevel::kInfo, "node", "fewer members: links with all of them from now on",
             {{"members", std::to_string(members)}});
  }
}

void Roster::turn_view(const std::vector<SwimEvent>& events) {
  const TimePoint at = clock_.now();
  view_->set_own(swim_.own());
  for (const SwimEvent& event : events) {
    const SwimMember* member = swim_.find(event.id);
    if (member == nullptr) continue;
    if (member->state() == MemberState::kDead || member->state() == MemberState::kLeft)
      view_->on_gone(at, event.id, member->record().incarnation);
    else if (event.kind == SwimEvent::Kind::kJoined || event.kind == SwimEvent::Kind::kReturned)
      view_->offer(member->record());
  }
  view_->tick(at);
  if (view_->take_changed() || links_changed_) watch_neighbours();
  for (auto& out : view_->take_outgoing()) send_or_dial(std::move(out));
  std::erase_if(waiting_, [&](const auto& entry) {
    if (entry.second.until > at) return false;
    if (entry.second.message) view_->on_link_lost(at, entry.first);  // none could be made
    links_changed_ = true;
    return true;
  });
}

// Watched is who is in the active view and has had a link with us since it came there: nobody is
// suspect because a link is still being made, and who dies is watched until Swim has said so.
void Roster::watch_neighbours() {
  const std::vector<NodeId> active = view_->active();
  std::vector<NodeId> watched;
  for (const NodeId& id : active)
    if (control_ == nullptr || control_->linked(id) ||
        std::find(watched_.begin(), watched_.end(), id) != watched_.end())
      watched.push_back(id);
  links_changed_ = true;
  if (watched == watched_) return;
  watched_ = watched;
  swim_.set_neighbours(std::move(watched));
}

// Walks of a partial view end at members that we have no link with. Who is told that it is no
// neighbour any more keeps its link until it has read that: one that is lost first would look to it
// like our death, and what comes over a lost link is not read.
void Roster::send_or_dial(gossip::SwimOutgoing out) {
  if (control_ == nullptr) return;
  if (control_->linked(out.to)) {
    control_->send(out.to, out.message);
    const auto* view = std::get_if<schema::View>(&out.message);
    if (view != nullptr && view->kind == schema::ViewKind::kDisconnect &&
        waiting_.size() < kWaitingMax)
      waiting_.try_emplace(out.to, Waiting{std::nullopt, clock_.now() + kGoodbyePatience});
  } else if (waiting_.size() < kWaitingMax || waiting_.contains(out.to)) {
    waiting_.insert_or_assign(out.to,
                              Waiting{std::move(out.message), clock_.now() + kWaitingPatience});
    links_changed_ = true;
  }
}

bool Roster::wants_link(const NodeId& id) const {
  if (!view_ || waiting_.contains(id)) return true;
  const auto active = view_->active();
  return std::find(active.begin(), active.end(), id) != active.end();
}

std::optional<PeerLinks::Peer> Roster::link_to(const NodeId& id, const MemberRecord& r) const {
  if (r.state == MemberState::kLeft || !wants_link(id)) return std::nullopt;
  return PeerLinks::Peer{id, r.control_address, r.state != MemberState::kDead,
                         view_ || identity_.id() < id};
}

void Roster::link_members() {
  const TimePoint at = clock_.now();
  if (!links_ || (!links_changed_ && at < links_->next_deadline())) return;
  std::vector<PeerLinks::Peer> wanted;
  const auto add = [&](const NodeId& id, const MemberRecord& record) {
    if (auto peer = link_to(id, record)) wanted.push_back(std::move(*peer));
  };
  for (const auto& [id, member] : swim_.members()) add(id, member.record());
  for (const auto& [id, message] : waiting_)
    if (const MemberRecord* record = view_ ? view_->record_of(id) : nullptr;
        record != nullptr && swim_.find(id) == nullptr)
      add(id, *record);
  links_->keep_all(wanted, at);
  links_changed_ = false;
}

void Roster::say(const SwimEvent& event) {
  if (event.kind == SwimEvent::Kind::kRecord || event.kind == SwimEvent::Kind::kUsurped) return;
  log_.log(event.kind == SwimEvent::Kind::kDead ? LogLevel::kWarn : LogLevel::kInfo, "node",
           words_of(event.kind),
           {{"name", event.name}, {"id", event.id.short_hex()}, {"address", event.address}});
}

TimePoint Roster::next_deadline() const {
  TimePoint at = swim_.next_deadline();
  if (links_) at = std::min(at, links_->next_deadline());
  return view_ ? std::min(at, view_->next_deadline()) : at;
}

std::string Roster::name_of(const NodeId& id) const {
  const SwimMember* member = swim_.find(id);
  return member != nullptr && !member->record().name.empty() ? member->record().name
                                                             : id.short_hex();
}

std::optional<MemberRecord> Roster::record_of(const NodeId& id) const {
  const SwimMember* member = swim_.find(id);
  return member == nullptr ? std::nullopt : std::optional(member->record());
}

// Those that can be dialled, at random: a WELCOME has room for few. Some of the others, so that a
// joiner knows of them.
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
