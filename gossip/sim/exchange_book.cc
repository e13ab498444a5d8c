#include "gossip/sim/exchange_book.h"

#include <algorithm>

#include "base/check.h"
#include "gossip/sim/node_ids.h"

namespace kith::sim {

ExchangeKey key_of(const ExchangeId& e) {
  return {index_of(e.initiator), boot_of(e.incarnation), e.sequence};
}

ExchangeRecord* ExchangeBook::find(const ExchangeKey& key) {
  if (key.initiator >= lives_.size()) return nullptr;
  auto& boots = lives_[key.initiator];
  if (key.boot >= boots.size() || key.sequence == 0 || key.sequence > boots[key.boot].size())
    return nullptr;
  ExchangeRecord& record = boots[key.boot][key.sequence - 1];
  return record.has(ExchangeRecord::kProposed) ? &record : nullptr;
}

ExchangeRecord& ExchangeBook::make(const ExchangeKey& key) {
  KITH_CHECK(key.initiator < lives_.size() && key.sequence > 0,
             "an exchange has an initiator and a number from 1");
  auto& boots = lives_[key.initiator];
  if (key.boot >= boots.size()) boots.resize(key.boot + 1);
  auto& records = boots[key.boot];
  if (key.sequence > records.size()) records.resize(key.sequence);
  return records[key.sequence - 1];
}

std::uint64_t ExchangeBook::proposed(NodeIndex node, std::uint32_t boot) const {
  const auto& boots = lives_[node];
  return boot < boots.size() ? boots[boot].size() : 0;
}

void ExchangeBook::add_flight(const ExchangeKey& key, ExchangeRecord& record,
                              std::span<const Fixed> delta) {
  KITH_CHECK(record.flight == 0 && delta.size() == values_,
             "one delta of one fragment flies per exchange");
  std::uint32_t index = 0;
  if (free_.empty()) {
    index = static_cast<std::uint32_t>(flights_.size());
    flights_.emplace_back();
    deltas_.resize(deltas_.size() + values_);
  } else {
    index = free_.back();
    free_.pop_back();
  }
  flights_[index] = {key, record.responder};
  std::copy(delta.begin(), delta.end(),
            deltas_.begin() + static_cast<std::ptrdiff_t>(std::size_t{index} * values_));
  record.flight = index + 1;
}

void ExchangeBook::remove_flight(ExchangeRecord& record) {
  KITH_CHECK(record.flight != 0, "only what flies can land");
  flights_[record.flight - 1] = {};
  free_.push_back(record.flight - 1);
  record.flight = 0;
}

std::span<const Fixed> ExchangeBook::delta(const ExchangeRecord& record) const {
  KITH_CHECK(record.flight != 0, "only a delta that flies is kept");
  return std::span(deltas_).subspan(std::size_t{record.flight - 1} * values_, values_);
}

}  // namespace kith::sim
