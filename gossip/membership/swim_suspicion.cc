#include "gossip/membership/swim_suspicion.h"

#include <algorithm>
#include <cmath>

namespace kith::gossip {

SwimSettings SwimSettings::preset(Duration probe_interval) {
  using std::chrono::hours;
  using std::chrono::milliseconds;
  const bool local = probe_interval <= milliseconds(500);
  const bool lan = !local && probe_interval <= milliseconds(2500);
  SwimSettings out;
  out.probe_interval = probe_interval;
  out.probe_timeout = probe_interval / 2;
  // At 0.2 s a process that is stopped for 3 s must survive: 4 to 8 s. Lan 5 to 30 s, wan 30 to 180
  // s.
  out.suspicion_mult = local ? 20 : lan ? 5 : 6;
  out.suspicion_max_factor = local ? 2 : 6;
  out.gossip_interval = std::max<Duration>(milliseconds(200), probe_interval / 5);
  out.sync_interval = probe_interval * 10;
  out.sweep_interval = probe_interval * 50;
  out.dead_retry = probe_interval * 30;
  out.forget_after = local ? hours(5) : hours(24);
  return out;
}

namespace suspicion {
namespace {

// In whole microseconds: a last bit of the logarithm that differs between machines then changes no
// deadline.
Duration scaled(Duration duration, double factor) {
  const std::chrono::duration<double, std::micro> exact(duration);
  return std::chrono::microseconds(std::llround(exact.count() * factor));
}

}  // namespace

Duration shortest(const SwimSettings& settings, std::size_t members) {
  const double size =
      std::max(1.0, std::log10(static_cast<double>(std::max<std::size_t>(members, 1))));
  return scaled(settings.probe_interval * settings.suspicion_mult, size);
}

Duration longest(const SwimSettings& settings, std::size_t members) {
  return shortest(settings, members) * settings.suspicion_max_factor;
}

Duration length(Duration shortest, Duration longest, unsigned confirmations, unsigned expected) {
  if (confirmations >= expected) return shortest;
  const double done = std::log(confirmations + 1.0) / std::log(expected + 1.0);
  return std::max(shortest, longest - scaled(longest - shortest, done));
}

unsigned expected_confirmations(std::size_t voters) {
  return static_cast<unsigned>(std::min<std::size_t>(kConfirmations, voters > 0 ? voters - 1 : 0));
}

std::size_t accusers_needed(const SwimSettings& settings, std::size_t voters) {
  return std::min<std::size_t>(settings.accusers_to_convict, std::max<std::size_t>(voters, 1));
}

unsigned retransmit_limit(unsigned mult, std::size_t members) {
  return mult * static_cast<unsigned>(std::ceil(std::log10(static_cast<double>(members) + 1.0)));
}

Duration probe_timeout(const SwimSettings& settings, double rtt_seconds, unsigned health) {
  const Duration measured =
      rtt_seconds > 0 ? from_seconds(std::min(3.0 * rtt_seconds, 1e6)) : Duration(0);
  const Duration base =
      std::max(settings.probe_timeout, std::min(measured, settings.probe_timeout * 10));
  return base * (1 + health);
}

Duration probe_length(const SwimSettings& settings, double rtt_seconds, unsigned health) {
  return std::max<Duration>(settings.probe_interval * (1 + health),
                            probe_timeout(settings, rtt_seconds, health) * 2);
}

Duration dead_retry(const SwimSettings& settings, unsigned tries) {
  return settings.dead_retry * std::min(10U, 1U << std::min(tries, 4U));
}

}  // namespace suspicion
}  // namespace kith::gossip
