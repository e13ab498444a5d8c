// The arithmetic of Swim: how long a suspicion lasts, how often a change is told, who suffices to
// convict. Pure functions of few numbers, so that tables can test them; the machine keeps no time
// constant of its own.
//
// Formulas: memberlist's suspicion and retransmit limits; the shrinking suspicion is Lifeguard's
// (Dadgar, Phillips, Currey, arXiv 1707.00788, section IV-B). `members` always counts this node and
// whoever is alive or suspect. Thread: any.
#pragma once

#include <cstddef>

#include "base/clock.h"
#include "gossip/membership/swim.h"

namespace kith::gossip::suspicion {

// Independent confirmations after which a suspicion lasts only its minimum (Lifeguard's K).
inline constexpr unsigned kConfirmations = 3;

// mult * max(1, log10 members) * probe_interval: long enough for the accusation to reach the
// accused and its answer to come back, whatever the size.
Duration shortest(const SwimSettings& settings, std::size_t members);
Duration longest(const SwimSettings& settings, std::size_t members);

// Length of a suspicion with so many distinct accusers beyond the first, out of `expected` that
// would make it shortest: max - (max - min) * log(confirmations + 1) / log(expected + 1). With
// nobody to confirm it is the shortest.
Duration length(Duration shortest, Duration longest, unsigned confirmations, unsigned expected);
// How many others could confirm: at most kConfirmations. `voters`: this node and all who are alive
// and not suspect.
unsigned expected_confirmations(std::size_t voters);

// Distinct accusers that convict: `accusers_to_convict`, less only if fewer are left who could
// accuse at all.
std::size_t accusers_needed(const SwimSettings& settings, std::size_t voters);

// mult * ceil(log10(members + 1)).
unsigned retransmit_limit(unsigned mult, std::size_t members);

// Wait for a direct answer before helpers are asked: three times the measured round trip if that is
// more than the setting, at most ten settings, times (1 + health).
Duration probe_timeout(const SwimSettings& settings, double rtt_seconds, unsigned health);
// From the PING to the verdict: the probe interval times (1 + health), and at least two timeouts.
Duration probe_length(const SwimSettings& settings, double rtt_seconds, unsigned health);

// Waits before a dead member is asked again: first, doubled each time, at most ten times the first.
Duration dead_retry(const SwimSettings& settings, unsigned tries);

}  // namespace kith::gossip::suspicion
