// StateTransfer: fetching named items (fragments, integer buffers, optimiser pieces, the manifest
// of a final state) from several donors over the bulk plane, chunk by chunk, verified by hash. Two
// step machines, no clock, no waiting. Used to adopt a state when far behind, and to fetch what
// differs from a declared final state.
//
// Items are shared out among the donors, a few open at each. BUSY makes a donor rest while the
// others go on; one that is gone, refuses, is silent or lies loses only what it had open, and
// somebody else is asked for it. Integers and optimiser pieces of a running state belong together
// (one safe point of one donor): they come from the first donor that answers and, if it is lost,
// from the start again from another.
//
// Thread: the exchange thread. Costs per item: request + header + chunks + a CREDIT per chunk.
// Memory: donors_max * requests_in_flight open items.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "gossip/exchange/exchange.h"
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
    Samples cluster_samples = 0;  // of all nodes together, as far as the donor knows
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
  // Without any progress; never less than 12 retry intervals.
  Duration give_up_after = std::chrono::seconds(5);
  unsigned requests_in_flight = 2;  // at each donor
  unsigned donors_max = 4;    // asked at once; further ones wait until one of them is lost or rests
  unsigned fetchers_max = 2;  // as donor: distinct fetchers served at once; others get BUSY
};

// What is known of an item before it comes: a header that says otherwise ends it before its bytes.
struct Expected {
  std::optional<Hash256> hash;
  std::uint64_t bytes_min = 0;
  std::uint64_t bytes_max = std::numeric_limits<std::uint64_t>::max();
};

// What a fetch is to bring.
struct FetchOrder {
  std::vector<ItemKey> wanted;  // asked for in this order
  std::map<ItemKey, Expected> expected;
  // Above zero: after the running state's integers also as many optimiser pieces as their header
  // announces, which may be at most so many, each of at most optimizer_piece_bytes_max.
  std::uint32_t optimizer_pieces_max = 0;
  std::uint64_t optimizer_piece_bytes_max = std::numeric_limits<std::uint64_t>::max();
};

class StateTransfer {
 public:
  StateTransfer(TransferSettings settings, DonorSource& source);
  ~StateTransfer();

  // Fetch side. One fetch at a time; a new one takes the place of the old. To resume, order what is
  // still missing.
  void fetch(TimePoint now, const std::vector<NodeId>& donors, FetchOrder order);
  // While it runs: who may be asked from now on. Who left the list is treated as gone, who had gone
  // may come back, who lied stays out of this fetch.
  void set_donors(TimePoint now, const std::vector<NodeId>& donors);
  void cancel();
  [[nodiscard]] bool fetching() const;

  struct Fetched {
    ItemKey key;
    Payload bytes;
    schema::StateHeader header;
    NodeId from;
  };
  // Completed and verified items. Integers of a running state that come again void all optimiser
  // pieces that came before them.
  std::vector<Fetched> take_fetched();
  // Donors that were dropped from the fetch, and why.
  struct Trouble {
    NodeId donor;
    Error why;
  };
  std::vector<Trouble> take_troubles();
  // Set once when the current fetch ends: success (every item taken), or that no donor is left or
  // has sent anything for give_up_after.
  std::optional<Status> take_end();

  void on_message(TimePoint now, const NodeId& from, const schema::Message& message,
                  const Slice& payload);
  // A link to it is up: what it was asked for without one is asked for at once.
  void peer_up(TimePoint now, const NodeId& peer);
  void peer_gone(TimePoint now, const NodeId& peer);
  void tick(TimePoint now);
  [[nodiscard]] TimePoint next_deadline() const;
  std::vector<Outgoing> take_outgoing();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kith::gossip
