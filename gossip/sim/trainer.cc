#include "gossip/sim/trainer.h"

#include <utility>

#include "base/check.h"

namespace kith::sim {

QuadraticTrainer::QuadraticTrainer(FixedPointStore& store, Fixed rate_curvature,
                                   std::vector<Fixed> centre)
    : store_(store),
      rate_curvature_(rate_curvature),
      centre_(std::move(centre)),
      change_(centre_.size()) {
  KITH_CHECK(centre_.size() == store.layout().total(),
             "a centre has as many values as the replica");
}

void QuadraticTrainer::begin_step() {
  for (std::size_t i = 0; i < centre_.size(); ++i) {
    change_[i] = -scale(store_.live(i) - centre_[i], rate_curvature_, kFixedBits);
  }
  begun_ = true;
}

std::span<const Fixed> QuadraticTrainer::end_step() {
  if (!std::exchange(begun_, false)) return {};
  for (std::size_t i = 0; i < change_.size(); ++i) store_.add_live(i, change_[i]);
  ++steps_;
  return change_;
}

void QuadraticTrainer::restart(std::uint64_t steps) {
  begun_ = false;
  steps_ = steps;
}

}  // namespace kith::sim
