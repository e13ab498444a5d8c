#include "node/daemon/write_retry.h"

#include <algorithm>

namespace kith::node {

namespace {

constexpr Duration kFirstPause = std::chrono::seconds(1);
constexpr Duration kLongestPause = std::chrono::minutes(1);

}  // namespace

void WriteRetry::failed(TimePoint now) {
  pause_ = first_ ? std::min(pause_ * 2, kLongestPause) : kFirstPause;
  if (!first_) first_ = now;
  over_ = now >= end();
  next_ = std::min(now + pause_, end());
}

}  // namespace kith::node
