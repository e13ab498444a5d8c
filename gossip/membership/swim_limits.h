// How much one member may ask of us or say of others: a token bucket per member, for few members at
// once. Swim keeps one for each kind of thing that a liar could flood it with.
//
// Bounded: a bucket that is full again is worth nothing and goes first; when `keys_max` members are
// really drawing on their buckets, a further one gets nothing. Thread: one owner.
#pragma once

#include <cstddef>
#include <unordered_map>

#include "base/clock.h"
#include "base/ids.h"

namespace kith::gossip {

class RateLimiter {
 public:
  // One token per `interval`, `burst` tokens at most (and at first).
  RateLimiter(Duration interval, double burst, std::size_t keys_max)
      : interval_(interval), burst_(burst), keys_max_(keys_max) {}

  // Takes a token of `key`, or returns false.
  bool take(TimePoint now, const NodeId& key);
  // Whether take() would get nothing from what is there.
  [[nodiscard]] bool empty(TimePoint now, const NodeId& key) const;
  [[nodiscard]] std::size_t size() const { return buckets_.size(); }

 private:
  struct Bucket {
    double tokens = 0;
    TimePoint filled;
  };
  [[nodiscard]] double tokens_at(const Bucket& bucket, TimePoint now) const;
  void drop_full(TimePoint now);

  Duration interval_;
  double burst_;
  std::size_t keys_max_;
  std::unordered_map<NodeId, Bucket, NodeIdHasher> buckets_;
};

}  // namespace kith::gossip
