// Records: what their owners say, what others relay, and what is said of ourselves.
#include <algorithm>
#include <utility>

#include "gossip/membership/swim_impl.h"

namespace kith::gossip {

using schema::MemberRecord;
using schema::MemberState;

namespace {

constexpr std::size_t kBehindMax = 64;
constexpr std::size_t kDistrustedMax = 256;
constexpr int kDistrustIntervals = 50;  // 10 s at preset local
constexpr std::size_t kIntroducersMax = 1024;
constexpr std::size_t kIntroducedAtFirst = 512;
constexpr std::uint32_t kOwnMarks = (1U << 14) - 1;  // SwimMember::told has 14 bits

bool is_gone(MemberState state) { return !is_living(state); }

SwimEvent::Kind kind_of_change(MemberState from, MemberState to) {
  if (from == to) return SwimEvent::Kind::kRecord;
  switch (to) {
    case MemberState::kSuspect:
      return SwimEvent::Kind::kSuspect;
    case MemberState::kDead:
      return SwimEvent::Kind::kDead;
    case MemberState::kLeft:
      return SwimEvent::Kind::kLeft;
    case MemberState::kAlive:
      break;
  }
  return is_gone(from) ? SwimEvent::Kind::kReturned : SwimEvent::Kind::kAlive;
}

}  // namespace

bool matters(const MemberRecord& a, const MemberRecord& b) {
  return a.incarnation != b.incarnation || a.boot_nonce != b.boot_nonce || a.left != b.left ||
         a.run_state != b.run_state || a.converged != b.converged ||
         a.control_address != b.control_address || a.bulk_address != b.bulk_address ||
         a.shares_data != b.shares_data;
}

// A signature costs 100 us to check and nothing to invent: nobody makes us check more than its
// allowance, and who showed a wrong one is not believed about others for a while. Whoever is honest
// checks before it tells on.
Swim::Impl::Verdict Swim::Impl::check(TimePoint now, const NodeId& from,
                                      const MemberRecord& record) {
  const bool own_word = from == record.id;
  if (!own_word && is_distrusted(now, from)) return Verdict::kUnchecked;
  if (!in_handshake && !checks.take(now, from)) {
    ++counters.records_dropped;
    return Verdict::kUnchecked;
  }
  if (authority.verify(record)) return Verdict::kGood;
  ++counters.bad_signatures;
  if (distrusted.size() < kDistrustedMax || distrusted.contains(from))
    distrusted[from] = now + settings.probe_interval * kDistrustIntervals;
  return Verdict::kForged;
}

bool Swim::Impl::is_distrusted(TimePoint now, const NodeId& id) {
  if (distrusted.size() >= kDistrustedMax)
    std::erase_if(distrusted, [now](const auto& entry) { return entry.second <= now; });
  const auto it = distrusted.find(id);
  if (it == distrusted.end()) return false;
  if (it->second > now) {
    ++counters.records_dropped;
    return true;
  }
  distrusted.erase(it);
  return false;
}

void Swim::Impl::emit(SwimEvent::Kind kind, const MemberRecord& record) {
  events.push_back(
      {kind, record.id, record.name, record.control_address, record.state, record.incarnation});
}

bool Swim::Impl::take_record(TimePoint now, const NodeId& from, const MemberRecord& record,
                             Source source) {
  if (record.id == own.id) return take_own(now, from, record);
  SwimMember* member = table.find(record.id);
  if (member == nullptr) return take_stranger(now, from, record, source);
  if (compare_records(record, member->record()) > 0)
    return take_newer(now, from, *member, record, source);
  if (source == Source::kOwner)
    take_older_of_owner(now, *member, record);
  else
    take_older_told(now, from, *member, record);
  return true;
}

bool Swim::Impl::take_stranger(TimePoint now, const NodeId& from, const MemberRecord& record,
                               Source source) {
  const bool hinted = source != Source::kOwner && is_gone(record.state) && !record.left;
  if (hinted) {
    const auto it = forgotten.find(record.id);
    if (it != forgotten.end() && record.incarnation <= it->second) return true;
  }
  if (table.full() || !may_introduce(now, from, record)) return true;
  if (const Verdict verdict = check(now, from, record); verdict != Verdict::kGood)
    return verdict != Verdict::kForged;
  if (source != Source::kOwner && from != record.id) ++introduced[from];
  MemberRecord kept = record;
  kept.state = record.left ? MemberState::kLeft : hinted ? record.state : MemberState::kAlive;
  SwimMember& member = table.add(now, authority.keep(kept));
  member.renewed = now;
  member.told = own_mark;  // by the handshake
  member.hinted = hinted;
  emit(SwimEvent::Kind::kJoined, kept);
  if (is_gone(kept.state))
    timers.set(kept.id, now + std::min(settings.dead_retry, settings.forget_after));
  if (source == Source::kBulk) {
    ++counters.records_repaired;
    figures.add({kept.id, {}});
    sync_soon(now);
  } else if (!hinted) {
    changes.add({kept.id, {}});
  }
  take_pending(now, kept.id);
  return true;
}

// Keys, and so ids, are made for nothing: one member may name two for each whom others named, and a
// WELCOME's worth and more at first. The counts are of this hour: who lives on knows most members
// and hears of few.
bool Swim::Impl::may_introduce(TimePoint now, const NodeId& from, const MemberRecord& record) {
  if (from == record.id) return true;
  if (now >= introduced_until) {
    introduced.clear();
    introduced_until = now + std::chrono::hours(1);
  }
  if (introduced.size() >= kIntroducersMax && !introduced.contains(from)) introduced.clear();
  const auto it = introduced.find(from);
  const std::size_t named = it == introduced.end() ? 0 : it->second;
  const std::size_t by_others = table.members().size() - std::min(table.members().size(), named);
  if (named < kIntroducedAtFirst + 2 * by_others) return true;
  ++counters.records_dropped;
  return false;
}

bool Swim::Impl::take_newer(TimePoint now, const NodeId& from, SwimMember& member,
                            const MemberRecord& record, Source source) {
  const MemberRecord& held = member.record();
  // Left is left, for this life.
  if (held.left && !record.left && life_of(record) == life_of(held)) return true;
  const bool only_figures = source != Source::kOwner && !matters(record, held);
  if (only_figures && figures_taken.empty(now, own.id)) return true;  // there will be newer ones
  if (const Verdict verdict = check(now, from, record); verdict != Verdict::kGood)
    return verdict != Verdict::kForged;
  if (only_figures) figures_taken.take(now, own.id);  // forged ones take nothing from the others
  const bool wave = next_wave(std::exchange(member.renewed, now), now);
  const bool risen = record.incarnation != held.incarnation || record.boot_nonce != held.boot_nonce;
  const bool still_gone = is_gone(held.state) && is_gone(record.state) && source != Source::kOwner;
  MemberState state = held.state;
  if (record.left) {
    state = MemberState::kLeft;
    member.hinted = false;
  } else if (risen) {
    // Whom we hold for dead and others do too is not raised by a newer record; we have not
    // convicted this incarnation.
    member.hinted = still_gone;
    if (!still_gone) state = MemberState::kAlive;
  }
  if (risen || record.left) cases.erase(record.id);
  if (risen) words.erase(record.id);
  if (risen && source == Source::kBulk) {
    ++counters.records_repaired;
    sync_soon(now);
  }
  if (risen) member.told = 0;  // another life of it knows nothing of us
  store(now, member, record, state, source, wave);
  if (risen)
    take_pending(now, record.id);
  else if (source == Source::kOwner)
    take_older_of_owner(now, member, record);  // its figures are newer, its incarnation is not
  else
    take_older_told(now, from, member, record);
  return true;
}

// The owner shows a record that is not newer than what we hold: it lives, but may not know what is
// held against it, or that another process runs with its key.
void Swim::Impl::take_older_of_owner(TimePoint now, SwimMember& member,
                                     const MemberRecord& record) {
  const MemberRecord& held = member.record();
  if (record.incarnation != held.incarnation || record.boot_nonce != held.boot_nonce) {
    if (behind.size() < kBehindMax) behind.insert(record.id);
    tell_accusations(now, record.id, record.id);
    return;
  }
  if (held.left) return;
  if (member.hinted) {
    clear_hint(now, member);
  } else if (held.state != MemberState::kAlive) {
    tell_accusations(now, record.id, record.id);
  }
}

void Swim::Impl::clear_hint(TimePoint now, SwimMember& member) {
  member.hinted = false;
  cases.erase(member.record().id);  // it is a suspicion anew, if somebody still says it
  set_state(now, member, MemberState::kAlive);
}

// Somebody tells of a member what we know already. If it takes for alive whom we convicted, it
// hears why.
void Swim::Impl::take_older_told(TimePoint now, const NodeId& from, SwimMember& member,
                                 const MemberRecord& record) {
  const MemberRecord& held = member.record();
  if (record.incarnation != held.incarnation || record.boot_nonce != held.boot_nonce) return;
  if (!is_gone(held.state) || !is_living(record.state) || held.left) return;
  if (member.hinted) {
    clear_hint(now, member);
    hurry(record.id);
  } else {
    tell_accusations(now, from, record.id);
  }
}

bool Swim::Impl::take_own(TimePoint now, const NodeId& from, const MemberRecord& record) {
  const auto theirs = life_of(record);
  const auto ours = life_of(own);
  if (theirs > ours) {
    if (const Verdict verdict = check(now, from, record); verdict != Verdict::kGood)
      return verdict != Verdict::kForged;
    if (!usurped) emit(SwimEvent::Kind::kUsurped, record);
    usurped = true;
    return true;
  }
  // An earlier start of ours says nothing; a copy of this one, or a later word of our own, is risen
  // above.
  if (theirs.first < ours.first) return true;
  const bool higher = record.incarnation > own.incarnation ||
                      (theirs != ours && record.incarnation == own.incarnation);
  const bool later =
      theirs == ours && record.incarnation == own.incarnation && record.version > own.version;
  if (!higher && !later) return true;
  if (const Verdict verdict = check(now, from, record); verdict != Verdict::kGood)
    return verdict != Verdict::kForged;
  if (later) own.version = record.version;
  if (higher) raise_own(record.incarnation);
  sign_own();
  own_matters();
  return true;
}

// Above `above` within our boot; the last refutation of a boot is never left.
void Swim::Impl::raise_own(Incarnation above) {
  if (refutations_of(above) < 0xFFFFFFFFULL) own.incarnation = above + 1;
}

void Swim::Impl::sign_own() {
  ++own.version;
  own.state = own.left ? MemberState::kLeft : MemberState::kAlive;
  authority.sign(own);
  table.set_self(own.incarnation);
}

void Swim::Impl::own_matters() {
  own_mark = own_mark % kOwnMarks + 1;
  own_repeats = suspicion::retransmit_limit(settings.retransmit_mult, members_and_self());
}

void Swim::Impl::set_state(TimePoint now, SwimMember& member, MemberState state) {
  store(now, member, member.record(), state, Source::kNews, false);
}

void Swim::Impl::store(TimePoint now, SwimMember& member, MemberRecord record, MemberState state,
                       Source source, bool wave) {
  const NodeId id = record.id;
  const MemberState before = member.state();
  record.state = state;
  const bool newer = compare_records(record, member.record()) > 0;
  const bool urgent = source != Source::kBulk && matters(record, member.record());
  emit(kind_of_change(before, state), record);
  table.replace(now, member, authority.keep(std::move(record)));
  // A state that we concluded is for others to conclude: what they need for it are the accusations.
  if (newer && urgent) changes.add({id, {}});
  if (newer && !urgent && wave) figures.add({id, {}});
  if (is_gone(state)) words.erase(id);
  if (is_gone(state) && (before != state || !timers.get(id)))
    timers.set(id, now + std::min(settings.dead_retry, settings.forget_after));
  if (state == MemberState::kAlive) timers.clear(id);
}

}  // namespace kith::gossip
