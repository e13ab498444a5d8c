#include "gossip/membership/swim.h"

#include <algorithm>
#include <type_traits>

#include "gossip/membership/swim_impl.h"

namespace kith::gossip {

using schema::MemberRecord;
using schema::MemberState;

namespace {

constexpr std::size_t kForgottenMax = 4096;
constexpr std::size_t kLimiterKeys = 1024;
// Relayed figures of others per second: with 100 us per signature 0.4 % of a core, whatever the
// size of the cluster.
constexpr double kFiguresPerSecond = 40.0;
// Signatures that one member may have us check: a WELCOME and a few repairs at once, then 1 % of a
// core.
constexpr double kChecksPerSecond = 100.0;
constexpr double kChecksAtOnce = 512.0;

}  // namespace

// ---- DrawList

bool DrawList::add(const NodeId& id) {
  if (!places_.emplace(id, ids_.size()).second) return false;
  ids_.push_back(id);
  return true;
}

void DrawList::swap_places(std::size_t a, std::size_t b) {
  std::swap(ids_[a], ids_[b]);
  places_[ids_[a]] = a;
  places_[ids_[b]] = b;
}

bool DrawList::remove(const NodeId& id) {
  const auto it = places_.find(id);
  if (it == places_.end()) return false;
  std::size_t place = it->second;
  if (place < round_) {
    swap_places(place, --round_);
    place = round_;
  }
  swap_places(place, ids_.size() - 1);
  ids_.pop_back();
  places_.erase(id);
  return true;
}

const NodeId& DrawList::next_in_round(Random& random) {
  if (round_ >= ids_.size()) round_ = 0;
  swap_places(round_, round_ + random.below(ids_.size() - round_));
  return ids_[round_++];
}

// ---- Swim::Impl: calls, messages and time

Swim::Impl::Impl(SwimSettings settings_in, MemberRecord own_in, RecordAuthority& authority_in,
                 Random random_in, TimePoint now)
    : settings(settings_in),
      authority(authority_in),
      random(random_in.fork("swim")),
      own(std::move(own_in)),
      hold_until(now),
      refute_after(now),
      table(own.id, settings.members_max),
      accusers(settings.probe_interval / std::max(1U, settings.accusations_per_interval),
               10.0 * settings.accusations_per_interval, kLimiterKeys),
      requesters(settings.probe_interval / 4, 16.0, kLimiterKeys),
      told_accusations(settings.gossip_interval, 2.0, kLimiterKeys),
      synced(settings.sync_interval / 4, 8.0, kLimiterKeys),
      checks(from_seconds(1.0 / kChecksPerSecond), kChecksAtOnce, kLimiterKeys),
      figures_taken(from_seconds(1.0 / kFiguresPerSecond), kFiguresPerSecond, 1),
      blamed(settings.probe_interval * settings.suspicion_mult * settings.suspicion_max_factor, 1.0,
             kLimiterKeys),
      next_probe(now + Duration(random.below(settings.probe_interval.count()))),
      next_gossip(now + Duration(random.below(settings.gossip_interval.count()))),
      next_sync(now + Duration(random.below(settings.sync_interval.count()))),
      next_sweep(now + Duration(random.below(settings.sweep_interval.count()))) {
  sign_own();
  own_matters();
}

void Swim::Impl::send(const NodeId& to, schema::Message message) {
  outgoing.push_back({to, std::move(message)});
}

bool Swim::Impl::reachable(const NodeId& id) const { return !links_known || links.contains(id); }

const NodeId* Swim::Impl::draw_one() {
  if (neighbours) return neighbours->size() > 0 ? &neighbours->draw(random) : nullptr;
  if (links_known) return links.size() > 0 ? &links.draw(random) : nullptr;
  const SwimMember* member = table.draw(random);
  return member == nullptr ? nullptr : &member->record().id;
}

std::vector<NodeId> Swim::Impl::draw_members(std::size_t count, const NodeId& except,
                                             bool suspects_too) {
  std::vector<NodeId> out;
  for (std::size_t tries = 0; tries < 4 * count + 4 && out.size() < count; ++tries) {
    const NodeId* id = draw_one();
    if (id == nullptr) break;
    const SwimMember* member = table.find(*id);
    if (member == nullptr || *id == except || !reachable(*id)) continue;
    const bool fits =
        suspects_too ? is_living(member->state()) : member->state() == MemberState::kAlive;
    if (fits && std::ranges::find(out, *id) == out.end()) out.push_back(*id);
  }
  return out;
}

void Swim::Impl::gossip_tick(TimePoint now) {
  next_gossip = now + settings.gossip_interval;
  gossip_to(has_news() ? settings.gossip_fanout : 1, Fill::kOthers);
}

void Swim::Impl::gossip_to(unsigned fanout, Fill first_fill) {
  Fill fill = first_fill;
  for (const NodeId& to : draw_members(fanout, own.id, true)) {
    schema::News news = compose(to, settings.news_bytes_max, NodeId(), fill);
    fill = Fill::kNothing;
    if (!news.records.empty() || !news.accusations.empty())
      send(to, schema::Gossip{std::move(news)});
  }
}

void Swim::Impl::on_message(TimePoint now, const NodeId& from, const schema::Message& message) {
  if (quiet() || from == own.id) return;
  if (const auto* leave_message = std::get_if<schema::Leave>(&message)) {
    const MemberRecord& record = leave_message->record;
    if (record.left)
      take_record(now, from, record, record.id == from ? Source::kOwner : Source::kNews);
    return;
  }
  if (std::holds_alternative<schema::Ping>(message)) answering = from;
  std::visit(
      [&](const auto& m) {
        if constexpr (requires { m.news; })
          take_news(now, from, m.news, std::is_same_v<std::decay_t<decltype(m)>, schema::Sync>);
      },
      message);
  answering = NodeId();
  SwimMember* sender = table.find(from);
  if (sender == nullptr) return;  // it did not say who it is
  sender->heard = now;
  if (const auto* ping = std::get_if<schema::Ping>(&message)) on_ping(now, from, *ping);
  if (const auto* pong = std::get_if<schema::Pong>(&message)) on_pong(now, from, *pong);
  if (const auto* request = std::get_if<schema::PingRequest>(&message))
    on_ping_request(now, from, *request);
  if (const auto* nack = std::get_if<schema::Nack>(&message)) on_nack(from, *nack);
  if (const auto* digest = std::get_if<schema::Digest>(&message)) on_digest(now, from, *digest);
  if (const auto* sync = std::get_if<schema::Sync>(&message)) on_sync(now, from, *sync);
}

void Swim::Impl::on_link(TimePoint now, const NodeId& id, bool up) {
  links_known = true;
  const bool changed = up ? links.add(id) : links.remove(id);
  // A link that goes after its member stopped being a neighbour was closed, and says nothing.
  const bool watched = !neighbours || neighbours->contains(id);
  const SwimMember* member = table.find(id);
  if (!changed || quiet() || leaving || member == nullptr) return;
  if (is_living(member->state())) {
    // A link to one who is well needs no haste: a node that starts makes hundreds.
    if (!up || member->state() == MemberState::kSuspect) hurry(id, !up && watched);
  } else if (up && told_accusations.take(now, id)) {
    send_ping(id, next_sequence++, id);
  }
}

void Swim::Impl::set_neighbours(std::optional<std::vector<NodeId>> ids) {
  std::optional<DrawList> before = std::move(neighbours);
  neighbours.reset();
  if (!ids) return;
  neighbours.emplace();
  for (const NodeId& id : *ids)
    if (id != own.id) neighbours->add(id);
  // Whoever stops being a neighbour is looked at once more: it may have been dropped because it
  // died.
  if (!before) return;
  for (const NodeId& id : before->ids())
    if (!neighbours->contains(id)) hurry(id);
}

void Swim::Impl::leave(TimePoint) {
  if (leaving) return;
  leaving = true;
  own.left = true;
  sign_own();
  own_matters();
  for (const auto& [id, member] : table.members())
    if (is_living(member.state()) && reachable(id) && (!neighbours || neighbours->contains(id)))
      send(id, schema::Leave{own});
}

void Swim::Impl::forget(SwimMember& member) {
  const NodeId id = member.record().id;
  emit(SwimEvent::Kind::kForgotten, member.record());
  if (!forgotten.contains(id)) forgotten_order.push_back(id);
  forgotten[id] = member.record().incarnation;
  if (forgotten_order.size() > kForgottenMax) {
    forgotten.erase(forgotten_order.front());
    forgotten_order.pop_front();
  }
  cases.erase(id);
  words.erase(id);
  behind.erase(id);
  timers.clear(id);
  table.erase(id);
}

void Swim::Impl::on_member_timer(TimePoint now, const NodeId& id) {
  SwimMember* member = table.find(id);
  if (member == nullptr || member->state() == MemberState::kAlive) return;
  if (member->state() == MemberState::kSuspect) return end_suspicion(now, *member);
  const TimePoint end = member->changed + settings.forget_after;
  if (now >= end) return forget(*member);
  if (member->state() == MemberState::kLeft && !member->hinted) return timers.set(id, end);
  if (reachable(id) && !leaving) send_ping(id, next_sequence++, id);
  const auto record = cases.find(id);
  const unsigned tries = record == cases.end() ? 4 : ++record->second.retries;
  timers.set(id, std::min(end, now + suspicion::dead_retry(settings, tries)));
}

void Swim::Impl::tick(TimePoint now) {
  if (quiet()) return;
  if (refute_pending && now >= refute_after) refute(now, NodeId(*refute_pending));
  probe_timers(now);
  relay_timers(now);
  while (const auto id = timers.take_due(now)) on_member_timer(now, *id);
  if (now >= next_probe) probe_tick(now);
  if (now >= next_gossip) gossip_tick(now);
  if (now >= next_sync) sync_tick(now);
  if (neighbours && now >= next_sweep) sweep_tick(now);
}

TimePoint Swim::Impl::next_deadline() const {
  if (quiet()) return TimePoint::max();
  TimePoint next = std::min({next_probe, next_gossip, next_sync, timers.next()});
  if (neighbours) next = std::min(next, next_sweep);
  if (refute_pending) next = std::min(next, refute_after);
  for (const auto& [sequence, probe] : probes) next = std::min(next, probe.next);
  for (const auto& [sequence, relay] : relays) next = std::min(next, relay.next);
  return next;
}

// ---- Swim

Swim::Swim(SwimSettings settings, MemberRecord own, RecordAuthority& authority, Random random,
           TimePoint now)
    : impl_(std::make_unique<Impl>(settings, std::move(own), authority, random, now)) {}

Swim::~Swim() = default;

void Swim::set_own(TimePoint, const MemberRecord& own) {
  MemberRecord next = own;
  MemberRecord& held = impl_->own;
  next.id = held.id;
  next.incarnation = held.incarnation;
  next.boot_nonce = held.boot_nonce;
  next.version = held.version;
  next.state = held.state;
  next.left = held.left;
  next.signature = held.signature;
  if (schema::signing_hash(next) == schema::signing_hash(held))
    return;  // NaN is equal to itself here
  const bool tell_all = matters(next, held);
  held = std::move(next);
  impl_->sign_own();
  if (tell_all) impl_->own_matters();
}

const MemberRecord& Swim::own() const { return impl_->own; }
void Swim::hurry() {
  if (!impl_->quiet()) impl_->gossip_to(impl_->settings.hurry_fanout);
}
void Swim::leave(TimePoint now) { impl_->leave(now); }

bool Swim::on_record(TimePoint now, const MemberRecord& record, bool direct) {
  if (impl_->quiet()) return true;
  impl_->in_handshake = true;
  const bool good =
      impl_->take_record(now, record.id, record, direct ? Source::kOwner : Source::kBulk);
  impl_->in_handshake = false;
  return good;
}

void Swim::on_message(TimePoint now, const NodeId& from, const schema::Message& message) {
  impl_->on_message(now, from, message);
}
void Swim::on_link(TimePoint now, const NodeId& id, bool up) { impl_->on_link(now, id, up); }
void Swim::on_own_pause(TimePoint now) { impl_->on_own_pause(now); }
void Swim::set_neighbours(std::optional<std::vector<NodeId>> neighbours) {
  impl_->set_neighbours(std::move(neighbours));
}

void Swim::tick(TimePoint now) { impl_->tick(now); }
TimePoint Swim::next_deadline() const { return impl_->next_deadline(); }
std::vector<SwimOutgoing> Swim::take_outgoing() { return std::exchange(impl_->outgoing, {}); }
std::vector<SwimEvent> Swim::take_events() { return std::exchange(impl_->events, {}); }

const std::map<NodeId, SwimMember>& Swim::members() const { return impl_->table.members(); }
const SwimMember* Swim::find(const NodeId& id) const {
  return std::as_const(impl_->table).find(id);
}
std::size_t Swim::count(MemberState state) const { return impl_->table.count(state); }

std::vector<schema::Accusation> Swim::accusations(const NodeId& id) const {
  const auto it = impl_->cases.find(id);
  return it == impl_->cases.end() ? std::vector<schema::Accusation>() : it->second.accusations;
}

bool Swim::isolated() const {
  const SwimTable& table = impl_->table;
  const std::size_t lost = table.count(MemberState::kSuspect) + table.count(MemberState::kDead);
  return lost > 0 && table.count(MemberState::kAlive) == 0;
}

unsigned Swim::local_health() const { return impl_->health; }
const SwimCounters& Swim::counters() const { return impl_->counters; }
Duration Swim::suspicion_min() const {
  return suspicion::shortest(impl_->settings, impl_->members_and_self());
}
Duration Swim::suspicion_max() const {
  return suspicion::longest(impl_->settings, impl_->members_and_self());
}

}  // namespace kith::gossip
