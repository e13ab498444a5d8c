#include "gossip/exchange/ledger.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace kith::gossip {

// delta = Q(w (R_B - R_A)), and |R_B - R_A| was measured.
double LedgerEntry::norm() const { return weight * std::sqrt(result.distance_squared); }

LedgerEntry& Ledger::add(LedgerEntry entry) {
  const ExchangeId e = entry.result.e;
  const bool slot_was_free = slots_[e.initiator].emplace(entry.result.fragment, e).second;
  KITH_CHECK(slot_was_free, "one ledger entry per initiator and fragment");
  bytes_ += entry.delta.size();
  entry.order = next_order_++;
  return entries_.insert_or_assign(e, std::move(entry)).first->second;
}

LedgerEntry* Ledger::find(const ExchangeId& e) {
  const auto it = entries_.find(e);
  return it == entries_.end() ? nullptr : &it->second;
}

LedgerEntry* Ledger::find(const NodeId& initiator, FragmentIndex fragment) {
  const auto slots = slots_.find(initiator);
  if (slots == slots_.end()) return nullptr;
  const auto slot = slots->second.find(fragment);
  return slot == slots->second.end() ? nullptr : find(slot->second);
}

void Ledger::erase(const ExchangeId& e) {
  const auto it = entries_.find(e);
  if (it == entries_.end()) return;
  bytes_ -= it->second.delta.size();
  deadlines_.clear(it->second.queued, e);
  const auto slots = slots_.find(e.initiator);
  slots->second.erase(it->second.result.fragment);
  if (slots->second.empty()) slots_.erase(slots);
  entries_.erase(it);
}

std::vector<ExchangeId> Ledger::of(const NodeId& initiator) const {
  std::vector<ExchangeId> ids;
  const auto slots = slots_.find(initiator);
  if (slots == slots_.end()) return ids;
  ids.reserve(slots->second.size());
  for (const auto& [fragment, e] : slots->second) ids.push_back(e);
  return ids;
}

std::vector<const LedgerEntry*> Ledger::all() const {
  std::vector<const LedgerEntry*> entries;
  entries.reserve(entries_.size());
  for (const auto& [e, entry] : entries_) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(),
            [](const LedgerEntry* a, const LedgerEntry* b) { return a->order < b->order; });
  return entries;
}

}  // namespace kith::gossip
