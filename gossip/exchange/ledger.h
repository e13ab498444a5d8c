// Ledger: what this node has committed as a responder and not yet seen acknowledged: the delta of
// each exchange, so that a RESULT can be replayed bit for bit until its initiator has it.
//
// One entry per (initiator, fragment). Entries of initiators that are gone ("dead") or have
// restarted ("superseded") stay replayable, but are the first to be forfeited when the byte budget
// is needed. Thread: one owner.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/ids.h"
#include "gossip/exchange/exchange_deadlines.h"
#include "schema/messages.h"

namespace kith::gossip {

struct LedgerEntry {
  schema::ResultMessage result;  // header as it is replayed; result.e is the key
  Slice delta;
  double weight = 0.5;
  bool superseded = false;  // its initiator has restarted since
  std::uint64_t order = 0;  // age: rises with every commit
  Duration backoff{0};      // of the slow timer
  TimePoint resend_at = TimePoint::max();
  TimePoint queued = TimePoint::max();
  // |delta|, from what the commit measured.
  [[nodiscard]] double norm() const;
};

class Ledger {
 public:
  // The slot of (initiator, fragment) must be free. Returns the entry as stored.
  LedgerEntry& add(LedgerEntry entry);
  LedgerEntry* find(const ExchangeId& e);
  LedgerEntry* find(const NodeId& initiator, FragmentIndex fragment);
  void erase(const ExchangeId& e);

  // Entries of one initiator, by fragment.
  [[nodiscard]] std::vector<ExchangeId> of(const NodeId& initiator) const;
  // The oldest entry for which `forfeitable(entry)` holds; null if none.
  template <typename Predicate>
  LedgerEntry* oldest(Predicate forfeitable) {
    LedgerEntry* best = nullptr;
    for (auto& [e, entry] : entries_) {
      if (forfeitable(entry) && (best == nullptr || entry.order < best->order)) best = &entry;
    }
    return best;
  }
  // Sorted by age.
  [[nodiscard]] std::vector<const LedgerEntry*> all() const;

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  // The slow timer of every entry.
  Deadlines<ExchangeId>& deadlines() { return deadlines_; }
  [[nodiscard]] const Deadlines<ExchangeId>& deadlines() const { return deadlines_; }

 private:
  std::unordered_map<ExchangeId, LedgerEntry, ExchangeIdHasher> entries_;
  std::unordered_map<NodeId, std::map<FragmentIndex, ExchangeId>, NodeIdHasher> slots_;
  Deadlines<ExchangeId> deadlines_;
  std::size_t bytes_ = 0;
  std::uint64_t next_order_ = 0;
};

}  // namespace kith::gossip
