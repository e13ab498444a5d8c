// SimNode: one simulated node: replica, trainer, the production exchange machine, and what its disk
// holds.
//
// A crash takes the machine and everything in memory; checkpoints survive. Thread: the
// simulation's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "gossip/exchange/exchange.h"
#include "gossip/sim/fixed_point_store.h"
#include "gossip/sim/trainer.h"

namespace kith::sim {

// What the simulated disk holds: replica and ledger cut at the same moment.
struct SimCheckpoint {
  std::vector<Fixed> published;
  gossip::LedgerImage ledger;
  std::uint64_t steps = 0;
};

// What a node is, drawn once.
struct NodePlan {
  Layout layout;
  std::vector<Fixed> start, centre;
  Fixed rate_curvature = 0;
  Duration step_time{0};
  Duration merge_time{0};  // 0: merges at once
  double busy = 0.0;
  bool slow = false;
  bool quantise_sides_separately = false;
};

class SimNode {
 public:
  SimNode(NodeIndex index, NodePlan plan, StoreWatcher* watcher, Random random);

  // Starts a life. `settings.incarnation` is set here.
  void boot(gossip::ExchangeSettings settings, const gossip::PartnerChooser& chooser,
            gossip::PlantedFaults planted);
  void crash();
  void write_checkpoint();  // keeps two
  // Said at the crash: which checkpoint the next life starts from (0 newest), or none.
  void plan_restart(std::optional<std::size_t> generation);
  // The state of that checkpoint, if there is one; its ledger comes back with the boot after it.
  // Else false: adopt().
  bool restore_from_disk();
  void adopt(std::span<const Fixed> values);

  // The safe point of a step: what is there is merged, fragment by fragment; one in sixteen is
  // found busy and skipped. True: a slow merge has begun and ends with finish_merges().
  bool begin_merges();
  void finish_merges();
  [[nodiscard]] Duration next_step_time();  // step_time, 2 % more or less

  [[nodiscard]] bool up() const { return machine_ != nullptr; }
  [[nodiscard]] gossip::ExchangeMachine& machine() { return *machine_; }
  [[nodiscard]] const gossip::ExchangeMachine& machine() const { return *machine_; }
  [[nodiscard]] FixedPointStore& store() { return store_; }
  [[nodiscard]] const FixedPointStore& store() const { return store_; }
  [[nodiscard]] QuadraticTrainer& trainer() { return trainer_; }
  [[nodiscard]] std::uint32_t boots() const { return boots_; }
  [[nodiscard]] Duration merge_time() const { return plan_.merge_time; }
  [[nodiscard]] bool slow() const { return plan_.slow; }
  [[nodiscard]] std::size_t checkpoints() const { return checkpoints_.size(); }
  [[nodiscard]] const std::vector<Fixed>& start_values() const { return plan_.start; }

  // The simulation's notes about this node.
  TimePoint tick_at = TimePoint::max();  // when its pending deadline event fires
  std::uint64_t view_version = 0;        // membership it has seen
  bool view_pending = false;
  TimePoint paused_until;  // events before then wait
  bool gone_for_good = false;
  std::uint32_t active = 0;  // proposals that hold a fragment now

  std::size_t held = 0;  // open exchanges and ledger entries after the last call

 private:
  NodeIndex index_;
  NodePlan plan_;
  FixedPointStore store_;
  QuadraticTrainer trainer_;
  std::unique_ptr<gossip::ExchangeMachine> machine_;  // null: down
  Random random_;
  std::uint32_t boots_ = 0;
  std::vector<SimCheckpoint> checkpoints_;  // newest first
  bool ledger_pending_ = false;             // the next boot restores checkpoints_.front().ledger
};

}  // namespace kith::sim
