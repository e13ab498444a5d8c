// Accusations: who says that whom did not answer; how a suspicion begins, shrinks and ends; what we
// do when it is us.
#include <algorithm>

#include "gossip/membership/swim_impl.h"

namespace kith::gossip {

using schema::Accusation;
using schema::MemberState;

namespace {

constexpr std::size_t kPendingMax = 64;
constexpr std::size_t kWordsMax = 256;
// About so many of all who hear an accusation go and look for themselves at once; the others do
// when its turn comes.
constexpr double kVerifiers = 8.0;
constexpr std::size_t kManyDying = 20;  // every twentieth

}  // namespace

bool Swim::Impl::holds(const Accusation& accusation) const {
  const auto it = cases.find(accusation.subject);
  return it != cases.end() &&
         std::ranges::any_of(it->second.accusations, [&](const Accusation& held) {
           return held.accuser == accusation.accuser;
         });
}

void Swim::Impl::take_accusation(TimePoint now, const NodeId& from, const Accusation& accusation) {
  if (accusation.accuser == own.id || accusation.accuser == accusation.subject) return;
  if (accusation.subject == own.id) {
    // What we told it of our answer was lost.
    if (SwimMember* teller = table.find(from);
        teller != nullptr && accusation.incarnation < own.incarnation)
      teller->told = 0;
    if (accusation.incarnation == own.incarnation && believe(now, accusation)) {
      refute(now, accusation.accuser);
      answer_accusation(now, from);
    }
    return;
  }
  SwimMember* subject = table.find(accusation.subject);
  if (subject == nullptr || accusation.incarnation > subject->record().incarnation)
    return keep_for_later(accusation);
  if (accusation.incarnation < subject->record().incarnation)
    return tell_answer(now, from, *subject);
  if (subject->state() == MemberState::kLeft || holds(accusation)) return;
  if (may_accuse(accusation.accuser)) {
    if (believe(now, accusation)) add_accusation(now, *subject, accusation);
    return;
  }
  const auto word = words.find(accusation.subject);
  const bool told_before = word != words.end() && word->second == accusation;
  if (told_before || believe(now, accusation)) pass_on(*subject, accusation);
}

bool Swim::Impl::may_accuse(const NodeId& accuser) const {
  const SwimMember* member = table.find(accuser);
  return accuser == own.id || (member != nullptr && is_living(member->state()));
}

// Signed, and its accuser says not too much. Strangers share one allowance: ids are made for
// nothing.
bool Swim::Impl::believe(TimePoint now, const Accusation& accusation) {
  const bool known = table.find(accusation.accuser) != nullptr;
  if (!accusers.take(now, known ? accusation.accuser : own.id)) {
    ++counters.accusations_dropped;
    return false;
  }
  if (authority.verify(accusation)) return true;
  ++counters.bad_signatures;
  return false;
}

// Verified when its subject, or that incarnation of it, is known.
void Swim::Impl::keep_for_later(const Accusation& accusation) {
  if (std::ranges::find(pending, accusation) != pending.end()) return;
  pending.push_back(accusation);
  if (pending.size() <= kPendingMax) return;
  pending.pop_front();
  ++counters.accusations_dropped;
}

// The word of the dead, or of strangers, counts against nobody. But those whom we hold for dead may
// hold our side for dead, after a partition, and the accused can only answer what it hears: one
// such accusation of each living member is told on.
void Swim::Impl::pass_on(const SwimMember& subject, const Accusation& accusation) {
  ++counters.accusations_dropped;
  if (!is_living(subject.state())) return;
  const auto it = words.find(accusation.subject);
  if (it == words.end() && words.size() >= kWordsMax) return;
  if (it == words.end()) words.emplace(accusation.subject, accusation);
  changes.add({accusation.subject, words.at(accusation.subject).accuser});
}

void Swim::Impl::take_pending(TimePoint now, const NodeId& subject) {
  std::vector<Accusation> found;
  for (const Accusation& accusation : pending)
    if (accusation.subject == subject) found.push_back(accusation);
  std::erase_if(pending,
                [&](const Accusation& accusation) { return accusation.subject == subject; });
  for (const Accusation& accusation : found) take_accusation(now, accusation.accuser, accusation);
}

void Swim::Impl::add_accusation(TimePoint now, SwimMember& subject, const Accusation& accusation) {
  SwimCase& record = cases[accusation.subject];
  if (record.accusations.size() >= kAccusationsPerCase) {
    if (accusation.accuser != own.id) return;
    record.accusations.pop_back();  // ours decides whether we may convict alone
  }
  record.accusations.push_back(accusation);
  changes.add({accusation.subject, accusation.accuser});
  if (subject.state() == MemberState::kAlive) {
    record.since = now;
    ++counters.suspicions;
    set_state(now, subject, MemberState::kSuspect);
    note_dying(now);
    if (accusation.accuser != own.id &&
        random.uniform() * static_cast<double>(table.living()) < kVerifiers)
      look(now, accusation.subject);
  }
  if (subject.state() == MemberState::kSuspect)
    set_suspicion_timer(now, accusation.subject, record);
}

void Swim::Impl::note_dying(TimePoint now) {
  const std::size_t suspects = table.count(MemberState::kSuspect);
  if (suspects * kManyDying >= table.living())
    many_dying_until = now + 2 * suspicion::longest(settings, members_and_self());
}

void Swim::Impl::set_suspicion_timer(TimePoint now, const NodeId& id, const SwimCase& record) {
  const Duration shortest = suspicion::shortest(settings, members_and_self());
  const Duration longest = suspicion::longest(settings, members_and_self());
  const auto confirmations =
      static_cast<unsigned>(record.accusations.empty() ? 0 : record.accusations.size() - 1);
  const Duration length = suspicion::length(shortest, longest, confirmations,
                                            suspicion::expected_confirmations(voters()));
  timers.set(id, std::max({record.since + length, hold_until, now}));
}

// A probe of `subject` failed.
void Swim::Impl::accuse(TimePoint now, SwimMember& subject) {
  if (now < hold_until || leaving || !is_living(subject.state())) return;
  const Accusation accusation{subject.record().id, subject.record().incarnation, own.id, {}};
  if (holds(accusation)) {
    changes.add({accusation.subject, own.id});  // it may have been lost
    return;
  }
  Accusation ours = accusation;
  authority.sign(ours);
  add_accusation(now, subject, ours);
}

bool Swim::Impl::enough_to_convict(const SwimCase& record) const {
  const std::size_t needed = suspicion::accusers_needed(settings, voters());
  std::size_t accusers_now = 0;
  bool we_accuse = false;
  for (const Accusation& accusation : record.accusations) {
    we_accuse |= accusation.accuser == own.id;
    if (may_accuse(accusation.accuser)) ++accusers_now;
  }
  // With fewer voters than accusers needed, only what we saw ourselves will do.
  return accusers_now >= needed && (needed >= settings.accusers_to_convict || we_accuse);
}

void Swim::Impl::end_suspicion(TimePoint now, SwimMember& member) {
  const NodeId id = member.record().id;
  if (now < hold_until) return timers.set(id, hold_until);
  const auto it = cases.find(id);
  if (it == cases.end())
    return set_state(now, member, MemberState::kAlive);  // nobody says it any more
  if (enough_to_convict(it->second)) {
    ++counters.convictions;
    it->second.retries = 0;
    // Who said that it was leaving and fell silent has left; its LEAVE was lost.
    const bool was_leaving = member.record().run_state == schema::RunState::kLeaving;
    return set_state(now, member, was_leaving ? MemberState::kLeft : MemberState::kDead);
  }
  // Not enough: look again and have others look, until it is confirmed or refuted.
  for (const Accusation& accusation : it->second.accusations) changes.add({id, accusation.accuser});
  look(now, id);
  timers.set(id, now + settings.probe_interval * 2 * (1 + health));
}

void Swim::Impl::refute(TimePoint now, const NodeId& accuser) {
  if (leaving) return;
  if (now < refute_after) {
    refute_pending = accuser;
    return;
  }
  refute_pending.reset();
  refute_after = now + settings.gossip_interval;
  raise_own(own.incarnation);
  sign_own();
  own_matters();
  ++counters.refutations;
  // Said once, however often it is repeated: a liar may go on for hours.
  if (now >= refuted_quiet_until) emit(SwimEvent::Kind::kRefuted, own);
  refuted_quiet_until = now + 2 * suspicion::longest(settings, members_and_self());
  // Being accused says that we may be slow; one accuser says it once in a while, however often it
  // repeats itself.
  if (blamed.take(now, accuser)) change_health(+1);
}

void Swim::Impl::tell_accusations(TimePoint now, const NodeId& to, const NodeId& subject) {
  if (to == answering || !reachable(to)) return;
  if (!told_accusations.take(now, to)) return;
  send(to, schema::Gossip{compose(to, settings.news_bytes_max / 4, subject)});
}

void Swim::Impl::answer_accusation(TimePoint now, const NodeId& to) {
  if (to == answering || refute_pending || table.find(to) == nullptr || !reachable(to)) return;
  if (told_accusations.take(now, to))
    send(to, schema::Gossip{compose(to, settings.news_bytes_max / 4)});
}

// It still says what has been answered.
void Swim::Impl::tell_answer(TimePoint now, const NodeId& to, const SwimMember& subject) {
  if (to == subject.record().id || table.find(to) == nullptr || !reachable(to)) return;
  if (!told_accusations.take(now, to)) return;
  schema::Gossip answer{compose(to, settings.news_bytes_max / 4)};
  const bool there = std::ranges::any_of(
      answer.news.records,
      [&](const schema::MemberRecord& record) { return record.id == subject.record().id; });
  if (!there) answer.news.records.push_back(subject.record());
  send(to, std::move(answer));
}

// What we saw, or did not see, before the pause was our own doing: our accusations are withdrawn,
// everybody who is suspect is looked at again, and for one whole suspicion nobody is accused or
// convicted.
void Swim::Impl::on_own_pause(TimePoint now) {
  hold_until = now + suspicion::longest(settings, members_and_self());
  probes.clear();
  relays.clear();
  std::vector<NodeId> cleared;
  for (auto& [id, record] : cases) {
    SwimMember* member = table.find(id);
    if (member == nullptr || member->state() != MemberState::kSuspect) continue;
    std::erase_if(record.accusations,
                  [&](const Accusation& accusation) { return accusation.accuser == own.id; });
    hurry(id);
    if (record.accusations.empty()) cleared.push_back(id);
  }
  for (const NodeId& id : cleared) {
    cases.erase(id);
    set_state(now, *table.find(id), MemberState::kAlive);
  }
}

}  // namespace kith::gossip
