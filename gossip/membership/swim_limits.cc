#include "gossip/membership/swim_limits.h"

#include <algorithm>

namespace kith::gossip {

double RateLimiter::tokens_at(const Bucket& bucket, TimePoint now) const {
  const double earned =
      static_cast<double>((now - bucket.filled).count()) / static_cast<double>(interval_.count());
  return std::min(burst_, bucket.tokens + std::max(earned, 0.0));
}

void RateLimiter::drop_full(TimePoint now) {
  std::erase_if(buckets_,
                [&](const auto& entry) { return tokens_at(entry.second, now) >= burst_; });
}

bool RateLimiter::take(TimePoint now, const NodeId& key) {
  auto it = buckets_.find(key);
  if (it == buckets_.end()) {
    if (buckets_.size() >= keys_max_) drop_full(now);
    if (buckets_.size() >= keys_max_) return false;
    it = buckets_.emplace(key, Bucket{burst_, now}).first;
  }
  const double tokens = tokens_at(it->second, now);
  it->second = {tokens >= 1.0 ? tokens - 1.0 : tokens, std::max(now, it->second.filled)};
  return tokens >= 1.0;
}

bool RateLimiter::empty(TimePoint now, const NodeId& key) const {
  const auto it = buckets_.find(key);
  return it != buckets_.end() && tokens_at(it->second, now) < 1.0;
}

}  // namespace kith::gossip
