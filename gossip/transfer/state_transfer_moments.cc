#include "gossip/transfer/state_transfer_moments.h"

#include <algorithm>

namespace kith::gossip {

void MomentsQueue::begin(std::vector<ItemKey> wanted) {
  wanted_ = std::move(wanted);
  restart(true);
}

ItemKey MomentsQueue::pop() {
  const ItemKey key = queue_.front();
  queue_.pop_front();
  return key;
}

void MomentsQueue::pin(TimePoint now, const NodeId& donor) {
  donor_ = donor;
  pinned_at_ = now;
}

bool MomentsQueue::same_image(const schema::StateHeader& header) {
  const Image image{header.optimizer_step, header.optimizer_pieces};
  if (!image_) image_ = image;
  return *image_ == image;
}

void MomentsQueue::add_pieces(std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const ItemKey key{schema::StateItem::kOptimizer, i, false};
    if (std::ranges::find(wanted_, key) == wanted_.end()) queue_.push_back(key);
  }
}

void MomentsQueue::restart(bool unpin) {
  queue_.assign(wanted_.begin(), wanted_.end());
  image_.reset();
  wait_until_ = {};
  restarts_in_place_ = unpin ? 0 : restarts_in_place_ + 1;
  if (unpin) donor_.reset();
}

}  // namespace kith::gossip
