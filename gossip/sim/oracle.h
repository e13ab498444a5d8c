// Oracle: the invariants of the exchange, checked after every event of a simulation.
//
// 1. Mass. Per value: sum over nodes of x + T + D, plus deltas that fly (committed by one side, not
// yet applied by the
//    other), equals the start plus what trainers added plus what crashes took or gave. Exact. Kept
//    incrementally: after an event only its node is read again; a full recount confirms the totals
//    now and then.
// 2. Each exchange is committed at most once and applied at most once, with the same bits, and is
// never left on one side
//    only: an initiator must not close what its responder has committed. A crash or a forfeit
//    excuses that, and only that.
// 3. Values stay in the range in which arithmetic is exact.
// What a crash takes: a node that comes back has the state of its checkpoint (or a donor's), so the
// difference is booked; its commits and applications since then are undone and may happen again.
//
// The first violation is kept and names the invariant; the simulation stops on it. Thread: the
// simulation's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gossip/sim/exchange_book.h"
#include "gossip/sim/fixed_point_store.h"

namespace kith::sim {

struct Violation {
  std::string invariant;  // "mass", "at most once", "both or neither", ...
  std::string text;
};

class Oracle final : public StoreWatcher {
 public:
  // `journal`: keep what is needed to book crashes.
  Oracle(Layout layout, std::uint32_t nodes, bool journal);

  // A node's first state: part of the start.
  void start(NodeIndex node, const FixedPointStore& store);

  // From the store.
  void committed(NodeIndex node, const ExchangeId& e, FragmentIndex fragment,
                 std::span<const Fixed> delta) override;
  void applied(NodeIndex node, const ExchangeId& e, FragmentIndex fragment,
               std::span<const Fixed> delta) override;

  // From the simulation.
  void trained(std::span<const Fixed> change);
  void proposed(const ExchangeId& e, NodeIndex responder, FragmentIndex fragment);
  void closed(const ExchangeId& e);     // the initiator was refused
  void forfeited(const ExchangeId& e);  // the responder dropped its ledger entry
  void checkpointed(NodeIndex node, std::uint32_t boot, std::vector<Fixed> published);
  // The node is gone. `generation`: which checkpoint it will come back from (0 newest, 1 the one
  // before), nullopt: none.
  void crashed(NodeIndex node, std::optional<std::size_t> generation);
  // It is back with `store`; without a checkpoint it has adopted `adopted`.
  void restarted(NodeIndex node, const FixedPointStore& store, std::span<const Fixed> adopted);

  // A live node gives up whatever it has open ...
  void abandoned(NodeIndex node);
  // ... and has taken this state.
  void adopted(NodeIndex node, const FixedPointStore& store, std::span<const Fixed> state);
  // The initiator may still apply it.
  [[nodiscard]] bool is_open(const ExchangeId& e) const;

  // After every event: `node` is the one whose handler ran.
  void check(NodeIndex node, const FixedPointStore& store);
  // All nodes at once, from nothing.
  void recount(std::span<const FixedPointStore* const> stores);
  // What nodes that are gone for good leave behind at the others, at most: open exchanges that
  // nobody will answer, ledger entries that nobody will collect. One per peer and fragment, in the
  // ledger also per life of the peer. [node]
  struct Leftover {
    std::size_t open = 0, ledger = 0;
  };
  [[nodiscard]] std::vector<Leftover> leftovers(const std::vector<bool>& gone);
  // Nothing flies but what a crash or a forfeit left behind.
  [[nodiscard]] bool all_landed() const;
  // When all is quiet: all_landed() or a violation.
  void check_settled();

  void report(std::string invariant, std::string text);  // keeps the first
  [[nodiscard]] const std::optional<Violation>& violation() const { return violation_; }
  [[nodiscard]] bool has_checkpoint(NodeIndex node, std::size_t generation) const;
  [[nodiscard]] ExchangeBook& book() { return book_; }
  // Exchanges that ended on one side only and why that is no violation.
  [[nodiscard]] std::uint64_t excused() const { return excused_; }

 private:
  // What a node did since a checkpoint, to be undone when it falls back to it.
  struct Entry {
    enum class Act : std::uint8_t { kCommit, kApply, kClose } act = Act::kCommit;
    ExchangeKey key;
    std::size_t delta = 0;  // kApply, kClose: what flew until then, in `deltas`
    std::size_t delta_values = 0;
  };
  struct Generation {
    std::uint32_t boot = 0;
    std::uint64_t proposed = 0;  // highest own sequence then
    std::vector<Fixed> published;
    std::vector<Entry> journal;
    std::vector<Fixed> deltas;
  };

  void note(NodeIndex node, Entry::Act act, const ExchangeKey& key, std::span<const Fixed> delta);
  void close(const ExchangeKey& key, ExchangeRecord& record);
  void undo(const Generation& since);
  void fly_again(const ExchangeKey& key, ExchangeRecord& record, std::span<const Fixed> delta);
  [[nodiscard]] bool forgotten(const ExchangeKey& key) const;
  void forget_own(NodeIndex node);
  void fly(const ExchangeKey& key, ExchangeRecord& record, std::span<const Fixed> delta);
  // The flight ends; `booked`: nobody will ever apply it.
  void land(ExchangeRecord& record, bool booked);
  void book_change(std::size_t index, Fixed change);
  void check_mass(std::size_t index);
  [[nodiscard]] std::string describe(const ExchangeKey& key) const;

  Layout layout_;
  bool journal_;
  ExchangeBook book_;
  std::vector<Fixed> seen_;  // [node * total + index]: x + T + D when last read
  // Sums over nodes modulo 2^64 (they may exceed an int64; equality does not mind).
  std::vector<std::uint64_t> start_, total_, flying_, trained_, booked_;
  std::vector<std::vector<Generation>> generations_;  // [node], newest first, at most two
  // An exchange of a node's earlier boots is remembered up to this (boot, sequence) only.
  struct Memory {
    std::uint32_t boot = 0xFFFFFFFFU;  // in this boot ...
    std::uint64_t sequence = 0;        // ... up to here, earlier boots as before
    std::uint32_t next_boot = 0;       // and everything from here on
  };
  std::vector<std::vector<Memory>> memories_;  // [node], one per crash
  std::optional<Violation> violation_;
  std::uint64_t excused_ = 0;
};

}  // namespace kith::sim
