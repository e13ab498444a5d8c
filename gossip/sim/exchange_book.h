// ExchangeBook: what the oracle knows of every exchange there ever was, and the deltas that are
// under way.
//
// A record is 12 bytes, found by (initiator, boot, sequence) without hashing: sequences of a boot
// run from 1. A delta that one side has committed and the other not yet applied is a flight.
// Thread: the simulation's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "gossip/sim/fixed_point_store.h"

namespace kith::sim {

// Who proposed, in which of its lives, its number there.
struct ExchangeKey {
  NodeIndex initiator = kNobody;
  std::uint32_t boot = 0;
  std::uint64_t sequence = 0;
  bool operator==(const ExchangeKey&) const = default;
};
ExchangeKey key_of(const ExchangeId& e);

struct ExchangeRecord {
  enum Flag : std::uint8_t {
    kProposed = 1,
    kCommitted = 2,  // the responder has subtracted the delta
    kApplied = 4,    // the initiator has added it
    kClosed = 8,     // the initiator will not apply it: refused, or forgotten in a crash
    kUndone = 16,    // the responder's commit was lost in a crash: it may commit anew
    kExcused = 32,   // a crash or a forfeit: one side only is no violation
    kActive = 64,    // the initiator holds a fragment for it
  };
  NodeIndex responder = kNobody;
  std::uint32_t flight = 0;  // 1 + index, 0 = none
  std::uint16_t fragment = 0;
  std::uint8_t flags = 0;
  [[nodiscard]] bool has(Flag flag) const { return (flags & flag) != 0; }
  void set(Flag flag) { flags = static_cast<std::uint8_t>(flags | flag); }
  void clear(Flag flag) { flags = static_cast<std::uint8_t>(flags & ~flag); }
};

class ExchangeBook {
 public:
  ExchangeBook(std::uint32_t nodes, std::uint32_t values) : values_(values), lives_(nodes) {}

  // Null if never proposed.
  ExchangeRecord* find(const ExchangeKey& key);
  [[nodiscard]] const ExchangeRecord* find(const ExchangeKey& key) const {
    return const_cast<ExchangeBook*>(this)->find(key);
  }
  // The record, made if need be.
  ExchangeRecord& make(const ExchangeKey& key);
  // How many exchanges this node proposed in this boot (= its highest sequence).
  [[nodiscard]] std::uint64_t proposed(NodeIndex node, std::uint32_t boot) const;

  // Calls visit(key, record) for everything that this node ever proposed, in order.
  template <typename Visit>
  void each(NodeIndex node, Visit visit) {
    for (std::uint32_t boot = 0; boot < lives_[node].size(); ++boot) {
      for (std::uint64_t i = 0; i < lives_[node][boot].size(); ++i) {
        ExchangeRecord& record = lives_[node][boot][i];
        if (record.has(ExchangeRecord::kProposed)) visit(ExchangeKey{node, boot, i + 1}, record);
      }
    }
  }

  struct Flight {
    ExchangeKey key;  // initiator kNobody: free
    NodeIndex responder = kNobody;
  };
  // The record's flight; it must have none (add) or one (the others).
  void add_flight(const ExchangeKey& key, ExchangeRecord& record, std::span<const Fixed> delta);
  void remove_flight(ExchangeRecord& record);
  [[nodiscard]] std::span<const Fixed> delta(const ExchangeRecord& record) const;
  [[nodiscard]] std::span<const Flight> flights() const { return flights_; }  // free ones included
  [[nodiscard]] std::size_t flying() const { return flights_.size() - free_.size(); }

 private:
  std::uint32_t values_;
  std::vector<std::vector<std::vector<ExchangeRecord>>> lives_;  // [node][boot][sequence - 1]
  std::vector<Flight> flights_;
  std::vector<Fixed> deltas_;  // values_ for each flight
  std::vector<std::uint32_t> free_;
};

}  // namespace kith::sim
