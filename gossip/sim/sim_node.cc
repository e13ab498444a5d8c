#include "gossip/sim/sim_node.h"

#include <string>
#include <utility>

#include "base/check.h"
#include "gossip/sim/node_ids.h"

namespace kith::sim {

SimNode::SimNode(NodeIndex index, NodePlan plan, StoreWatcher* watcher, Random random)
    : index_(index),
      plan_(std::move(plan)),
      store_(plan_.layout, index, watcher, plan_.quantise_sides_separately),
      trainer_(store_, plan_.rate_curvature, plan_.centre),
      random_(random) {
  store_.set_live(plan_.start);
  if (plan_.busy > 0.0) store_.set_busy(plan_.busy, random_.fork("busy"));
}

void SimNode::boot(gossip::ExchangeSettings settings, const gossip::PartnerChooser& chooser,
                   gossip::PlantedFaults planted) {
  ++boots_;
  settings.self = node_id(index_);
  settings.incarnation = incarnation_of(boots_);
  machine_ = std::make_unique<gossip::ExchangeMachine>(
      settings, store_, chooser, random_.fork("machine" + std::to_string(boots_)), planted);
  if (std::exchange(ledger_pending_, false)) {
    const Status status = machine_->restore(checkpoints_.front().ledger);
    KITH_CHECK(status.has_value(),
               "a machine must take back its own image: " + status.error().message);
  }
}

void SimNode::crash() {
  machine_.reset();
  tick_at = TimePoint::max();
  view_pending = false;
  paused_until = TimePoint{};
  active = 0;
  held = 0;
}

void SimNode::write_checkpoint() {
  checkpoints_.insert(checkpoints_.begin(),
                      SimCheckpoint{store_.published(), machine_->image(), trainer_.steps()});
  if (checkpoints_.size() > 2) checkpoints_.pop_back();
}

void SimNode::plan_restart(std::optional<std::size_t> generation) {
  if (generation) {
    checkpoints_.erase(checkpoints_.begin(),
                       checkpoints_.begin() + static_cast<std::ptrdiff_t>(*generation));
  } else {
    checkpoints_.clear();
    trainer_.restart(0);
  }
}

bool SimNode::restore_from_disk() {
  if (checkpoints_.empty()) return false;
  store_.set_live(checkpoints_.front().published);
  trainer_.restart(checkpoints_.front().steps);
  ledger_pending_ = true;
  return true;
}

void SimNode::adopt(std::span<const Fixed> values) {
  store_.set_live(values);
  trainer_.restart(trainer_.steps());
}

bool SimNode::begin_merges() {
  const bool slow = plan_.merge_time > Duration{0};
  for (FragmentIndex fragment = 0; fragment < plan_.layout.fragments; ++fragment) {
    if (random_.below(16) == 0) continue;
    store_.begin_merge(fragment);
    if (!slow) store_.finish_merge(fragment);
  }
  return slow;
}

void SimNode::finish_merges() {
  for (FragmentIndex fragment = 0; fragment < plan_.layout.fragments; ++fragment) {
    if (store_.merging(fragment)) store_.finish_merge(fragment);
  }
}

Duration SimNode::next_step_time() {
  const auto spread = static_cast<std::uint64_t>(plan_.step_time.count() / 25);
  return plan_.step_time - Duration(static_cast<std::int64_t>(spread / 2)) +
         Duration(static_cast<std::int64_t>(random_.below(spread + 1)));
}

}  // namespace kith::sim
