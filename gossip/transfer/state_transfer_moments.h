// MomentsQueue: the part of a fetch that one donor must give whole: the integers of its running
// state and the pieces of its optimiser's, which belong to one safe point. What is still to be
// asked for, from whom, and of which image; if the donor is lost or has taken a new image
// meanwhile, all of it starts again. Thread: one owner.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "gossip/transfer/state_transfer.h"

namespace kith::gossip {

class MomentsQueue {
 public:
  static bool is_part(const ItemKey& key) {
    return !key.final_state &&
           (key.item == schema::StateItem::kIntegers || key.item == schema::StateItem::kOptimizer);
  }

  void begin(std::vector<ItemKey> wanted);
  void clear() { begin({}); }

  [[nodiscard]] bool pending() const { return !queue_.empty(); }
  [[nodiscard]] bool may_ask(TimePoint now) const { return pending() && now >= wait_until_; }
  [[nodiscard]] TimePoint wait_until() const { return wait_until_; }
  ItemKey pop();
  void put_back(const ItemKey& key) { queue_.push_front(key); }
  void wait(TimePoint until) { wait_until_ = until; }

  [[nodiscard]] const std::optional<NodeId>& donor() const { return donor_; }
  void pin(TimePoint now, const NodeId& donor);
  [[nodiscard]] TimePoint pinned_at() const { return pinned_at_; }
  // Something of the present donor's image is known.
  [[nodiscard]] bool started() const { return image_.has_value(); }

  // False: the header is of another image than those before it, so that everything must start
  // again.
  bool same_image(const schema::StateHeader& header);
  // The integers are here: now as many pieces as they announce.
  void add_pieces(std::uint32_t count);
  // From the start, with the same donor; `unpin`: with another.
  void restart(bool unpin);
  [[nodiscard]] unsigned restarts_in_place() const { return restarts_in_place_; }

 private:
  struct Image {
    Step step = 0;
    std::uint32_t pieces = 0;
    bool operator==(const Image&) const = default;
  };
  std::vector<ItemKey> wanted_;
  std::deque<ItemKey> queue_;
  std::optional<NodeId> donor_;
  std::optional<Image> image_;
  TimePoint wait_until_;
  TimePoint pinned_at_;
  unsigned restarts_in_place_ = 0;
};

}  // namespace kith::gossip
