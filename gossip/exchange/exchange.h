// ExchangeMachine: pairwise averaging that neither loses nor creates mass, whatever the network
// does, and never blocks. One delta, two signs (design: the exchange; additive deltas as in the
// rules of AD-PSGD, Lian et al. 2018, and elastic gossip, Pramod 2018).
//
// A step machine: inputs (messages, steps, membership, time) come in as calls, outputs collect in
// `outgoing()` and `events()`, and `next_deadline()` says when to call tick(). It never reads a
// clock, never sleeps, never waits. Thread: one owner (the exchange thread, or the simulator).
// Costs per completed exchange of one fragment: 2 headers
// + 2 * chunks + 2 * chunks CREDIT + 1 ACK.
//
// Initiator, per fragment:   idle -> PROPOSE + chunks -> (asks again at retry_interval) -> RESULT
// complete: apply, ACK
//                            after suspend_after without an answer the fragment is freed for
//                            another peer; e stays open ("suspended": only its id) and is asked for
//                            whenever that peer is reachable
// Responder, per (peer, fragment): nothing -> collecting chunks -> commit: ledger entry -> ACK
// frees it, leaves a tombstone gossip/README.md has the states and messages in full. Parts:
// exchange_initiator, exchange_responder, ledger, ledger_closed, chunk_sender (credit),
// chunk_collector, exchange_image.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/random.h"
#include "base/result.h"
#include "gossip/exchange/fragment_store.h"
#include "gossip/topology.h"
#include "schema/messages.h"

namespace kith::gossip {

// Sequences with this bit belong to state transfers (state_transfer.h); their messages are not the
// machine's.
inline constexpr std::uint64_t kTransferBit = std::uint64_t{1} << 63;
inline bool is_transfer(const ExchangeId& e) { return (e.sequence & kTransferBit) != 0; }

struct ExchangeSettings {
  NodeId self;
  Incarnation incarnation = 0;
  Hash256 run_digest;
  Hash256 schema_hash;
  CodecId codec = CodecId::kFp32;
  double weight = 0.5;                 // 0 < w <= 1/2
  std::uint64_t every_steps = 1;       // a new round every so many own steps; 0 = never initiate
  std::size_t chunk_bytes = 1U << 20;  // <= schema::kChunkBytesMax
  unsigned window_chunks = 8;          // credit: unacknowledged chunks per link and direction
  // Ask again after so long without progress: half of suspend_after, so that one lost message is
  // repaired before the fragment goes to another peer. An answer takes far less.
  Duration retry_interval = std::chrono::milliseconds(200);
  // Free the fragment for another peer after so long without progress (two probe intervals).
  Duration suspend_after = std::chrono::milliseconds(400);
  std::size_t proposal_bytes_max =
      16U << 20;  // own snapshots in flight (at least one fragment always may)
  std::size_t inbound_bytes_max = 32U << 20;  // chunks of others' proposals collected; beyond: BUSY
  std::size_t ledger_bytes_max = 64U << 20;   // committed and not yet acknowledged; beyond: BUSY
  Step max_lag = ~0ULL;                       // depths further apart than this: ABORTED(kLag)
};

struct Outgoing {
  NodeId to;
  schema::Message message;
  Slice payload;  // CHUNK only
};

// The machine passes its fault points itself; those named ...Sent at the next call after
// take_outgoing(), when the message has been handed to the transport.

// What happened, for metrics, status and finish. Values, in order.
struct ExchangeEvent {
  enum class Kind {
    kCompletedInitiator,  // applied; distance/norm, staleness_steps, duration valid
    kCompletedResponder,  // committed; distance/norm valid
    kRefused,             // our proposal got BUSY or ABORTED; reason
    kRefusedOther,        // we refused somebody's proposal; reason
    kSuspended,           // no answer in time; fragment freed
    kForfeited,           // ledger entry dropped before it was acknowledged
    kLagging,             // peer's model is more than max_lag deeper than ours
    kInvalid,             // message that made no sense from this peer (hostile or corrupt)
  } kind = Kind::kInvalid;
  ExchangeId e;
  NodeId peer;
  FragmentIndex fragment = 0;
  schema::AbortReason reason = schema::AbortReason::kUnknown;
  bool busy = false;
  double distance_squared = 0.0;
  double norm_squared = 0.0;
  std::uint64_t staleness_steps = 0;
  Step peer_depth = 0;  // of a completed exchange (what our model contains now, if it is the
                        // greater) or of kLagging
  Duration duration{0};
  std::size_t payload_bytes = 0;
};

// Plain counts since construction (style: components count, another layer exports).
struct ExchangeCounters {
  std::uint64_t proposed = 0, completed_initiator = 0, completed_responder = 0;
  std::uint64_t refused_busy = 0, refused_crossing = 0, refused_other = 0;  // of our proposals
  std::uint64_t retries = 0, suspended = 0, replays = 0, duplicates_ignored = 0, forfeited = 0,
                invalid = 0;
  std::uint64_t dropped = 0;  // chunks of streams that we do not collect (now)
  std::uint64_t payload_bytes_sent = 0, payload_bytes_received = 0;
  double forfeited_norm = 0.0;
};

// What a checkpoint must hold so that no exchange is ever applied twice: open ids, ledger entries
// with their deltas, tombstones and floors, the next sequence. Opaque bytes to node/, versioned and
// checked here.
struct LedgerImage {
  std::vector<std::byte> bytes;
};

// Planted defects, for tests of the invariants only: each must be caught by the simulator.
struct PlantedFaults {
  bool apply_result_twice = false;
  bool drop_tombstone = false;
  bool quantise_sides_separately = false;  // honoured by the store, not the machine
};

class ExchangeMachine {
 public:
  // `store`, `chooser` outlive the machine. The machine proposes nothing before set_active(true).
  ExchangeMachine(ExchangeSettings settings, FragmentStore& store, const PartnerChooser& chooser,
                  Random random, PlantedFaults planted = {});
  ~ExchangeMachine();
  ExchangeMachine(const ExchangeMachine&) = delete;
  ExchangeMachine& operator=(const ExchangeMachine&) = delete;

  // Live members that may be exchanged with (same run, schema; JOINED and training or finishing),
  // self excluded, sorted by id. A peer that vanishes or returns with a higher incarnation is
  // handled here (suspend; ledger entries of dead or superseded incarnations become the first to be
  // forfeited). `incarnation`: only a rise of its boot part (high 32 bits; the whole if those are
  // zero) is a return: refutations are not.
  struct Peer {
    NodeId id;
    Incarnation incarnation = 0;
    bool connected = true;  // false: alive by membership, but no link now; not chosen
    bool operator==(const Peer&) const = default;
  };
  void set_peers(TimePoint now, std::vector<Peer> peers);

  // Not active: neither proposes nor accepts (answers ABORTED kNotReady), but still replays and
  // acknowledges, so that what is open can close.
  void set_active(bool active);
  // Initiate nothing new, still answer (drain before leaving).
  void set_draining(bool draining);
  void set_codec(CodecId codec);  // the final phase uses fp32
  // `depth`: of the replica, as in our member record.
  void set_depth(Step depth, Step own_step);
  void set_max_lag(Step max_lag);  // grows with the run's length and the cluster's pace

  // A safe point has passed (own optimiser step `step`): starts a round with one partner for every
  // fragment that is idle.
  void on_step(TimePoint now, Step step);
  // A round by time instead of by steps, whatever every_steps says: the finish, where nobody steps.
  void on_round(TimePoint now);
  void on_message(TimePoint now, const NodeId& from, const schema::Message& message,
                  const Slice& payload);
  void tick(TimePoint now);
  // TimePoint::max() when nothing is pending.
  [[nodiscard]] TimePoint next_deadline() const;

  // Filled by every call above; the caller takes and clears them.
  std::vector<Outgoing> take_outgoing();
  std::vector<ExchangeEvent> take_events();

  [[nodiscard]] std::uint64_t lowest_open() const;
  [[nodiscard]] bool drained() const;  // nothing of ours open but suspended ids, ledger empty
  // The same, not counting results for initiators that `lives` denies: they stay in the ledger.
  [[nodiscard]] bool drained(const std::function<bool(const NodeId&)>& lives) const;
  [[nodiscard]] std::size_t open_count() const;  // suspended ones included
  [[nodiscard]] std::size_t ledger_entries() const;
  [[nodiscard]] std::size_t ledger_bytes() const;
  [[nodiscard]] std::size_t inbound_bytes() const;
  // Everything the machine holds, in entries: streams, links, collections, tombstones, timers ...
  // For tests of bounds.
  [[nodiscard]] std::size_t held_entries() const;
  [[nodiscard]] const ExchangeCounters& counters() const;

  [[nodiscard]] LedgerImage image() const;
  // Before set_active; kCorrupt if the image is not one of this node, kFailed if our incarnation is
  // not above the image's.
  Status restore(const LedgerImage& image);
  // Drops everything open and collected without applying (before a state is adopted); ledger
  // entries stay replayable.
  void abandon_open(TimePoint now);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kith::gossip
