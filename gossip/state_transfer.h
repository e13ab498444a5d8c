// StateTransfer: fetching named items (fragments, integer buffers, optimiser pieces, the manifest
// of a final state) from a donor over the bulk plane, chunk by chunk, verified by hash. Two step
// machines, no clock, no waiting. Used to adopt a state when far behind, and to fetch what differs
// from a declared final state. Thread: the exchange thread. Costs per item: request + header +
// chunks + a CREDIT per chunk.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "gossip/exchange.h"
#include "schema/messages.h"

namespace kith::gossip {

struct ItemKey {
  schema::StateItem item = schema::StateItem::kFragment;
  std::uint32_t index = 0;
  bool final_state = false;
  auto operator<=>(const ItemKey&) const = default;
};

// What a donor can give. Called on the exchange thread; must not block: kBusy = not yet (asked
// again later), kNotFound = never.
class DonorSource {
 public:
  virtual ~DonorSource() = default;
  struct Item {
    Slice bytes;
    Hash256 hash;
    std::uint32_t optimizer_pieces = 0;
    Step optimizer_step = 0;
    Samples progress = 0;
  };
  virtual Result<Item> item(const ItemKey& key) = 0;
};

struct TransferSettings {
  NodeId self;
  Incarnation incarnation = 0;
  Hash256 run_digest;
  Hash256 schema_hash;
  std::size_t chunk_bytes = 1U << 20;
  unsigned window_chunks = 8;
  Duration retry_interval = std::chrono::milliseconds(400);
  Duration give_up_after = std::chrono::seconds(5);  // without any progress from this donor
  unsigned requests_in_flight = 2;
  unsigned fetchers_max = 2;  // as donor: distinct fetchers served at once; others get BUSY
};

class StateTransfer {
 public:
  StateTransfer(TransferSettings settings, DonorSource& source);
  ~StateTransfer();

  // Fetch side. One fetch at a time; `wanted` in order. `expected` (may be empty): hash an item
  // must have.
  void fetch(TimePoint now, const NodeId& donor, std::vector<ItemKey> wanted,
             std::map<ItemKey, Hash256> expected);
  void cancel();
  [[nodiscard]] bool fetching() const;

  struct Fetched {
    ItemKey key;
    Payload bytes;
    schema::StateHeader header;
  };
  std::vector<Fetched> take_fetched();  // completed and verified items
  // Set once when the current fetch ends: success (every item taken) or why not (donor gone,
  // refused, hash differs).
  std::optional<Status> take_end();

  void on_message(TimePoint now, const NodeId& from, const schema::Message& message,
                  const Slice& payload);
  void peer_gone(TimePoint now, const NodeId& peer);
  void tick(TimePoint now);
  [[nodiscard]] TimePoint next_deadline() const;
  std::vector<Outgoing> take_outgoing();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kith::gossip
