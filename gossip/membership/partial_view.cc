#include "gossip/membership/partial_view.h"

#include <algorithm>
#include <utility>

#include "gossip/membership/swim_table.h"

namespace kith::gossip {

using schema::MemberRecord;
using schema::View;
using schema::ViewKind;

namespace {

constexpr std::size_t kGoneMax = 1024;
constexpr std::size_t kLimiterKeys = 1024;
constexpr double kReturnedShare = 0.1;
constexpr int kHungrier = 4;  // times as often are shuffles while the passive view is not half full
constexpr std::size_t kRequestsMax = 3;  // NEIGHBOUR on their way at once
constexpr int kConfirmationsPerShuffle = 12;
// Evictions of all together, at most at once and per third of a shuffle interval: a crowd that
// joins at one member goes on by its walks, and strangers cannot keep replacing whom we watch.
constexpr double kEvictions = 12.0;
constexpr double kMessages = 60.0;  // of one sender, likewise

}  // namespace

PartialViewSettings PartialViewSettings::preset(Duration probe_interval) {
  PartialViewSettings out;
  out.shuffle_interval = probe_interval * 60;
  out.request_timeout = probe_interval * 2;
  return out;
}

PartialView::PartialView(PartialViewSettings settings, const MemberRecord& own,
                         RecordAuthority& authority, Random random, TimePoint now)
    : settings_(settings),
      authority_(authority),
      random_(random.fork("partial view")),
      own_(own),
      messages_(
          Duration(static_cast<Duration::rep>(settings.shuffle_interval.count() / (3 * kMessages))),
          kMessages, kLimiterKeys),
      evictions_(Duration(static_cast<Duration::rep>(settings.shuffle_interval.count() /
                                                     (3 * kEvictions))),
                 kEvictions, 1),
      next_promotion_(now),
      next_shuffle_(now + Duration(random_.below(settings.shuffle_interval.count()))),
      next_confirmation_(next_shuffle_) {}

void PartialView::set_own(const MemberRecord& own) { own_ = own; }

// ---- the views

bool PartialView::check(const MemberRecord& record, Word word) {
  if (record.id == own_.id || record.id.is_zero() || record.left) return false;
  if (word == Word::kOthers) {
    const auto it = gone_.find(record.id);
    if (!is_living(record.state) || (it != gone_.end() && record.incarnation <= it->second))
      return false;
  }
  const MemberRecord* held = record_of(record.id);
  if (held != nullptr && compare_records(record, *held) <= 0) return true;  // the held one stays
  if (authority_.verify(record)) return true;
  ++counters_.bad_signatures;
  return false;
}

const MemberRecord* PartialView::own_record_of(const NodeId& id, const NodeId& from,
                                               const View& view) {
  if (view.records.empty() || view.records.front().id != id) return nullptr;
  const Word word = id == from ? Word::kItsOwn : Word::kOthers;
  return check(view.records.front(), word) ? &view.records.front() : nullptr;
}

const MemberRecord* PartialView::record_of(const NodeId& id) const {
  const MemberRecord* record = active_.find(id);
  return record != nullptr ? record : passive_.find(id);
}

// A record that was checked, or the newer one that is held.
bool PartialView::activate(TimePoint now, const MemberRecord& record, bool may_evict) {
  const NodeId id = record.id;
  if (active_.contains(id)) return true;
  if (active_.size() >= settings_.active_max) {
    if (!may_evict || !evictions_.take(now, own_.id)) return false;
    const NodeId evicted = active_.at(random_.below(active_.size())).id;
    ++counters_.evictions;
    send(evicted, ViewKind::kDisconnect, sequence_++);
    deactivate(evicted, true);
  }
  const MemberRecord* held = passive_.find(id);
  const bool newer = held == nullptr || compare_records(record, *held) > 0;
  MemberRecord kept = newer ? record : *held;
  kept.state = schema::MemberState::kAlive;
  passive_.remove(id);
  active_.put(authority_.keep(std::move(kept)));
  asked_.erase(id);
  changed_ = true;
  return true;
}

void PartialView::deactivate(const NodeId& id, bool keep_passive) {
  const MemberRecord* held = active_.find(id);
  if (held == nullptr) return;
  const MemberRecord record = *held;
  active_.remove(id);
  changed_ = true;
  if (keep_passive) add_passive(record, nullptr);
}

// Room is made by what we gave away in exchange, then by chance.
void PartialView::add_passive(const MemberRecord& record, std::vector<NodeId>* given_away) {
  if (active_.contains(record.id)) return;
  if (const MemberRecord* held = passive_.find(record.id)) {
    if (compare_records(record, *held) > 0) passive_.put(authority_.keep(record));
    return;
  }
  while (passive_.size() >= settings_.passive_max) {
    const bool swap = given_away != nullptr && !given_away->empty();
    const NodeId victim =
        swap ? given_away->back() : passive_.at(random_.below(passive_.size())).id;
    if (swap) given_away->pop_back();
    passive_.remove(victim);
  }
  passive_.put(authority_.keep(record));
}

std::vector<MemberRecord> PartialView::sample_records(std::size_t active, std::size_t passive,
                                                      const NodeId& except) {
  std::vector<MemberRecord> out;
  for (const auto& record : active_.draw(random_, active, except)) out.push_back(*record);
  for (const auto& record : passive_.draw(random_, passive, except)) out.push_back(*record);
  return out;
}

bool PartialView::take_changed() { return std::exchange(changed_, false); }

std::optional<NodeId> PartialView::sample(Random& random) const {
  const std::size_t all = active_.size() + passive_.size();
  if (all == 0) return std::nullopt;
  const std::size_t index = random.below(all);
  return index < active_.size() ? active_.at(index).id : passive_.at(index - active_.size()).id;
}

// ---- what the owner says

void PartialView::join(TimePoint now, const MemberRecord& contact) {
  if (!check(contact, Word::kItsOwn)) return;
  if (active_.contains(contact.id)) return;
  add_passive(contact, nullptr);
  ++counters_.joins;
  if (asked_.size() < settings_.active_max)
    asked_[contact.id] = {now + settings_.request_timeout, true};
  send(contact.id, ViewKind::kJoin, sequence_++, {own_});
}

void PartialView::offer(const MemberRecord& record) {
  // Of those who return some replace others: after a partition half of all do.
  const bool returned = gone_.contains(record.id) && random_.chance(kReturnedShare);
  const bool room = passive_.size() < settings_.passive_max;
  // Of all that are offered a uniform sample stays (a reservoir): whoever comes to know hundreds
  // does so in the order of ids.
  const bool drawn = random_.below(++offered_) < settings_.passive_max;
  if ((room || returned || drawn) && record_of(record.id) == nullptr &&
      check(record, Word::kOthers))
    add_passive(record, nullptr);
}

void PartialView::on_link_lost(TimePoint now, const NodeId& id) {
  asked_.erase(id);
  passive_.remove(id);
  deactivate(id, false);
  promote(now);
}

void PartialView::on_gone(TimePoint now, const NodeId& id, Incarnation incarnation) {
  if (gone_.size() >= kGoneMax && !gone_.contains(id)) gone_.erase(gone_.begin());
  Incarnation& known = gone_[id];
  known = std::max(known, incarnation);
  on_link_lost(now, id);
}

// ---- time

void PartialView::tick(TimePoint now) {
  expire_requests(now);
  if (now >= next_promotion_) {
    next_promotion_ = now + settings_.request_timeout;
    promote(now);
  }
  if (now >= next_confirmation_) {
    next_confirmation_ = now + settings_.shuffle_interval / kConfirmationsPerShuffle;
    if (active_.size() > 0) {
      const NodeId id = active_.at(next_check_++ % active_.size()).id;
      send(id, ViewKind::kNeighbour, sequence_++);  // a bare one: it knows us, if it holds us
    }
  }
  if (now >= next_shuffle_) {
    const bool knows_few = passive_.size() < settings_.passive_max / 2;
    next_shuffle_ = now + settings_.shuffle_interval / (knows_few ? kHungrier : 1);
    shuffle(now);
  }
}

TimePoint PartialView::next_deadline() const {
  TimePoint next = std::min({next_promotion_, next_confirmation_, next_shuffle_});
  for (const auto& [id, request] : asked_) next = std::min(next, request.until);
  return next;
}

std::vector<SwimOutgoing> PartialView::take_outgoing() { return std::exchange(outgoing_, {}); }

void PartialView::send(const NodeId& to, ViewKind kind, std::uint64_t sequence,
                       std::vector<MemberRecord> records) {
  outgoing_.push_back({to, View{kind, 0, sequence, own_.id, std::move(records)}});
}

// Who did not answer is no use as a fall-back, unless it is the last hope.
void PartialView::expire_requests(TimePoint now) {
  std::erase_if(asked_, [&](const auto& entry) {
    if (entry.second.until > now) return false;
    ++counters_.timeouts;
    if (active_.size() > 0 || passive_.size() > 1) passive_.remove(entry.first);
    return true;
  });
}

void PartialView::promote(TimePoint now) {
  if (active_.size() >= settings_.active_max) return;
  const std::size_t at_once = active_.size() < settings_.active_low ? kRequestsMax : 1;
  while (asked_.size() < at_once)
    if (!ask_somebody(now)) return;
}

bool PartialView::ask_somebody(TimePoint now) {
  std::vector<NodeId> candidates;
  for (const NodeId& id : passive_.ids())
    if (!asked_.contains(id)) candidates.push_back(id);
  if (candidates.empty()) return false;
  const NodeId id = candidates[random_.below(candidates.size())];
  asked_[id] = {now + settings_.request_timeout, false};
  send(id, active_.size() == 0 ? ViewKind::kNeighbourUrgent : ViewKind::kNeighbour, sequence_++,
       {own_});
  return true;
}

void PartialView::shuffle(TimePoint) {
  if (active_.size() == 0) return;
  const NodeId to = active_.at(random_.below(active_.size())).id;
  std::vector<MemberRecord> records = {own_};
  given_away_.clear();
  for (const auto& record : active_.draw(random_, settings_.shuffle_active, to))
    records.push_back(*record);
  for (const auto& record : passive_.draw(random_, settings_.shuffle_passive, to)) {
    records.push_back(*record);
    given_away_.push_back(record->id);
  }
  ++counters_.shuffles;
  shuffle_sequence_ = sequence_++;
  outgoing_.push_back({to, View{ViewKind::kShuffle, settings_.shuffle_walk, shuffle_sequence_,
                                own_.id, std::move(records)}});
}

}  // namespace kith::gossip
