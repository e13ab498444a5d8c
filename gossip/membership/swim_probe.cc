// Probes: one member per interval in rounds of random order, and a few that are hurried. PING;
// without an answer helpers ping in our stead (PING_REQUEST); at the end of the probe an
// accusation. A helper that could not reach the member either says so (NACK): if too few of them
// even do that, it is probably us who are slow, and local health stretches our timers.
#include <algorithm>

#include "gossip/membership/swim_impl.h"

namespace kith::gossip {

using schema::MemberState;

namespace {

constexpr std::size_t kProbesMax = 64;
constexpr std::size_t kRelaysMax = 256;
constexpr std::size_t kHurriedMax = 256;
constexpr int kHurriedPerTick = 2;
constexpr std::size_t kSweepsMax = 64;
constexpr int kSweepTries = 32;      // members looked at for one whose news is old
constexpr int kDialIntervals = 5;    // for the owner to make a link
constexpr int kNewsIntervals = 50;   // younger news says that it lives
constexpr int kSweepsWhenDying = 5;  // times as many
constexpr int kLateIntervals = 8;    // so long a late PONG still tells the round-trip time
constexpr float kRttWeight = 0.2F;   // of a new sample

std::size_t news_bytes(const SwimSettings& settings) { return settings.news_bytes_max / 4; }

}  // namespace

void Swim::Impl::change_health(int by) {
  const int top = static_cast<int>(settings.health_max) - 1;
  health = static_cast<unsigned>(std::clamp(static_cast<int>(health) + by, 0, top));
}

bool Swim::Impl::is_probed(const NodeId& id) const {
  return std::ranges::any_of(probes, [&](const auto& entry) {
    return entry.second.target == id && entry.second.phase != SwimProbe::Phase::kFailed;
  });
}

void Swim::Impl::hurry(const NodeId& id, bool unlinked_too) {
  const auto it = std::ranges::find(hurried, id, &std::pair<NodeId, bool>::first);
  if (it != hurried.end())
    it->second |= unlinked_too;
  else if (hurried.size() < kHurriedMax)
    hurried.emplace_back(id, unlinked_too);
}

SwimMember* Swim::Impl::next_target() {
  for (int tries = 0; tries < 8; ++tries) {
    SwimMember* member = nullptr;
    if (!neighbours)
      member = table.next_in_round(random);
    else if (neighbours->size() > 0)
      member = table.find(neighbours->next_in_round(random));
    if (member != nullptr && is_living(member->state()) && !is_probed(member->record().id))
      return member;
  }
  return nullptr;
}

void Swim::Impl::probe_tick(TimePoint now) {
  next_probe = now + settings.probe_interval * (1 + health);
  if (leaving) return;
  if (SwimMember* member = next_target()) start_probe(now, *member);
  for (int i = 0; i < kHurriedPerTick && !hurried.empty(); ++i) {
    const auto [id, unlinked_too] = hurried.front();
    hurried.pop_front();
    SwimMember* member = table.find(id);
    if (member == nullptr || !is_living(member->state()) || is_probed(id)) continue;
    if (neighbours && !unlinked_too && !reachable(id) && !neighbours->contains(id)) continue;
    start_probe(now, *member);
  }
  for (int i = 0; i < kHurriedPerTick && !to_sweep.empty(); ++i) {
    SwimMember* member = table.find(to_sweep.front());
    to_sweep.pop_front();
    if (neighbours && member != nullptr && is_living(member->state()) &&
        !is_probed(member->record().id))
      sweep(now, *member);
  }
}

void Swim::Impl::send_ping(const NodeId& to, std::uint64_t sequence, const NodeId& about) {
  send(to, schema::Ping{sequence, compose(to, news_bytes(settings), about, Fill::kOwn)});
}

void Swim::Impl::start_probe(TimePoint now, SwimMember& member) {
  if (probes.size() >= kProbesMax) return;
  const std::uint64_t sequence = next_sequence++;
  SwimProbe& probe = probes[sequence];
  probe.target = member.record().id;
  probe.sent = now;
  probe.verdict = now + suspicion::probe_length(settings, member.rtt_seconds, health);
  probe.next =
      std::min(probe.verdict, now + suspicion::probe_timeout(settings, member.rtt_seconds, health));
  ++counters.probes;
  if (reachable(probe.target))
    send_ping(probe.target, sequence, probe.target);
  else
    ask_helpers(now, sequence, probe);
}

// Who trains has new figures in every wave, and may be out of our reach and well. Where many are
// dying, some may have died with all who watched them: then old news is suspicious sooner.
bool Swim::Impl::is_stale(TimePoint now, const SwimMember& member) const {
  const Duration soon = settings.probe_interval * kNewsIntervals;
  const Duration due = now < many_dying_until ? soon : std::max(soon, wave_period() * 3 / 2);
  return now - std::max(member.heard, member.renewed) > due;
}

void Swim::Impl::look(TimePoint now, const NodeId& id) {
  if (!neighbours || reachable(id) || neighbours->contains(id)) return hurry(id);
  const SwimMember* member = table.find(id);
  if (member == nullptr || !is_stale(now, *member)) return;
  if (to_sweep.size() < kSweepsMax && std::ranges::find(to_sweep, id) == to_sweep.end())
    to_sweep.push_back(id);
}

// Whose neighbours are all gone would otherwise be held alive for ever. Who is suspect is being
// looked at already.
void Swim::Impl::sweep_tick(TimePoint now) {
  next_sweep = now + settings.sweep_interval / (now < many_dying_until ? kSweepsWhenDying : 1);
  if (leaving || table.living() == 0) return;
  SwimMember* stalest = nullptr;
  const auto news_of = [](const SwimMember& member) {
    return std::max(member.heard, member.renewed);
  };
  for (int tries = 0; tries < kSweepTries; ++tries) {
    SwimMember* member = table.draw(random);
    const NodeId& id = member->record().id;
    if (member->state() != MemberState::kAlive || neighbours->contains(id)) continue;
    if (is_probed(id) || !is_stale(now, *member)) continue;
    if (stalest == nullptr || news_of(*member) < news_of(*stalest)) stalest = member;
  }
  if (stalest != nullptr) sweep(now, *stalest);
}

// No helpers: they have no link to it either.
void Swim::Impl::sweep(TimePoint now, SwimMember& member) {
  if (probes.size() >= kProbesMax) return;
  const std::uint64_t sequence = next_sequence++;
  SwimProbe& probe = probes[sequence];
  probe.target = member.record().id;
  probe.sent = now;
  probe.verdict = now + suspicion::probe_length(settings, member.rtt_seconds, health) +
                  settings.probe_interval * kDialIntervals;
  probe.next = probe.verdict;
  ++counters.probes;
  send_ping(probe.target, sequence, probe.target);
}

void Swim::Impl::ask_helpers(TimePoint, std::uint64_t sequence, SwimProbe& probe) {
  probe.phase = SwimProbe::Phase::kHelpers;
  probe.next = probe.verdict;
  probe.helpers = draw_members(settings.helpers, probe.target, false);
  for (const NodeId& helper : probe.helpers) {
    ++counters.indirect_asked;
    send(helper, schema::PingRequest{sequence, probe.target,
                                     compose(helper, news_bytes(settings), probe.target)});
  }
}

void Swim::Impl::fail_probe(TimePoint now, SwimProbe& probe) {
  ++counters.probes_failed;
  probe.phase = SwimProbe::Phase::kFailed;
  probe.next = now + settings.probe_interval * kLateIntervals;
  if (probe.nacks.size() * 2 < probe.helpers.size()) change_health(+1);
  if (SwimMember* member = table.find(probe.target)) accuse(now, *member);
}

void Swim::Impl::probe_timers(TimePoint now) {
  for (auto it = probes.begin(); it != probes.end();) {
    SwimProbe& probe = it->second;
    if (probe.next > now) {
      ++it;
    } else if (probe.phase == SwimProbe::Phase::kFailed) {
      it = probes.erase(it);
    } else {
      if (probe.phase == SwimProbe::Phase::kDirect && now < probe.verdict)
        ask_helpers(now, it->first, probe);
      else
        fail_probe(now, probe);
      ++it;
    }
  }
}

void Swim::Impl::relay_timers(TimePoint now) {
  for (auto it = relays.begin(); it != relays.end();) {
    SwimRelay& relay = it->second;
    if (relay.next > now) {
      ++it;
    } else if (relay.nacked) {
      it = relays.erase(it);
    } else {
      relay.nacked = true;
      relay.next = now + settings.probe_timeout * 4;
      ++counters.nacks;
      send(relay.requester, schema::Nack{relay.sequence, relay.subject,
                                         compose(relay.requester, news_bytes(settings))});
      ++it;
    }
  }
}

void Swim::Impl::on_ping(TimePoint, const NodeId& from, const schema::Ping& ping) {
  send(from, schema::Pong{ping.sequence, own.id, compose(from, news_bytes(settings))});
}

void Swim::Impl::on_pong(TimePoint now, const NodeId& from, const schema::Pong& pong) {
  const auto it = probes.find(pong.sequence);
  if (it == probes.end()) return forward_pong(from, pong);
  SwimProbe& probe = it->second;
  const bool direct = from == probe.target;
  if (pong.subject != probe.target) return;
  if (!direct && std::ranges::find(probe.helpers, from) == probe.helpers.end()) return;
  if (SwimMember* member = table.find(probe.target); direct && member != nullptr) {
    const auto sample = static_cast<float>(to_seconds(now - probe.sent));
    float& rtt = member->rtt_seconds;
    rtt = rtt < 0 ? sample : rtt + (sample - rtt) * kRttWeight;
  }
  if (probe.phase != SwimProbe::Phase::kFailed) {
    if (!direct) ++counters.indirect_saved;
    change_health(-1);
  }
  probes.erase(it);
}

void Swim::Impl::forward_pong(const NodeId& from, const schema::Pong& pong) {
  const auto it = relays.find(pong.sequence);
  if (it == relays.end() || it->second.subject != from || pong.subject != from) return;
  const SwimRelay relay = it->second;
  relays.erase(it);
  send(relay.requester,
       schema::Pong{relay.sequence, relay.subject, compose(relay.requester, news_bytes(settings))});
}

void Swim::Impl::on_ping_request(TimePoint now, const NodeId& from,
                                 const schema::PingRequest& request) {
  if (request.subject == from || !requesters.take(now, from)) return;
  if (request.subject == own.id) {
    send(from, schema::Pong{request.sequence, own.id, compose(from, news_bytes(settings))});
    return;
  }
  if (relays.size() >= kRelaysMax || table.find(request.subject) == nullptr) return;
  const std::uint64_t sequence = next_sequence++;
  // The NACK must be there before the requester's verdict, one more timeout away.
  relays[sequence] = {from, request.sequence, request.subject,
                      now + settings.probe_timeout * 3 / 4};
  if (reachable(request.subject)) send_ping(request.subject, sequence, request.subject);
}

void Swim::Impl::on_nack(const NodeId& from, const schema::Nack& nack) {
  const auto it = probes.find(nack.sequence);
  if (it == probes.end() || it->second.target != nack.subject) return;
  SwimProbe& probe = it->second;
  const bool asked = std::ranges::find(probe.helpers, from) != probe.helpers.end();
  const bool said = std::ranges::find(probe.nacks, from) != probe.nacks.end();
  if (asked && !said) probe.nacks.push_back(from);
}

}  // namespace kith::gossip
