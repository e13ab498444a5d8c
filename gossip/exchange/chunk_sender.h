// ChunkSender: payloads leaving in chunks, under credit: at most `window_chunks` chunks are
// unacknowledged per link (peer), whatever the number of streams on it. Results go before
// proposals, since they free memory on both sides; within a kind the oldest stream first, so that
// something completes early. Chunks are sub-slices of the payload (no copy).
//
// Nothing is resent by itself: a chunk counts as under way until a CREDIT has its bit, or until its
// exchange is asked for again and the last CREDIT is taken at its word (resend). Thread: one owner.
// Cost: O(1) per chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/buffer.h"
#include "base/ids.h"
#include "gossip/exchange/chunk_bits.h"
#include "gossip/exchange/exchange.h"
#include "schema/messages.h"

namespace kith::gossip {

class ChunkSender {
 public:
  explicit ChunkSender(unsigned window_chunks) : window_(window_chunks) {}

  // The chunking must be sane and the stream new. Nothing leaves before flush().
  void open(const NodeId& to, const ExchangeId& e, schema::Stream stream, Slice payload,
            std::uint32_t chunk_bytes);
  // Forgets the stream; its credit returns to the link. False if there is none.
  bool close(const ExchangeId& e, schema::Stream stream);
  // Sends nothing more until resend(); what was under way gives its credit back (the peer is away,
  // or was asked).
  void pause(const ExchangeId& e, schema::Stream stream);
  // What the last CREDIT did not have counts as lost and goes again.
  void resend(const ExchangeId& e, schema::Stream stream);
  // A CREDIT of `from`. True if it acknowledged something new.
  bool credit(const NodeId& from, const ExchangeId& e, schema::Stream stream,
              std::span<const std::uint64_t> received);

  [[nodiscard]] bool has(const ExchangeId& e, schema::Stream stream) const;
  [[nodiscard]] bool paused(const ExchangeId& e, schema::Stream stream) const;
  // It has chunks to send, none under way, and so waits for credit that other streams hold.
  [[nodiscard]] bool waiting(const ExchangeId& e, schema::Stream stream) const;
  // Every chunk has been acknowledged; false if there is no such stream.
  [[nodiscard]] bool complete(const ExchangeId& e, schema::Stream stream) const;
  // Every chunk has left at least once: the other side may have them all.
  [[nodiscard]] bool handed_over(const ExchangeId& e, schema::Stream stream) const;

  // Appends the chunks that credit allows; returns how many of each stream kind left.
  struct Flushed {
    std::size_t proposal_chunks = 0;
    std::size_t other_chunks = 0;
    std::size_t bytes = 0;
  };
  Flushed flush(std::vector<Outgoing>& out);

  // For tests of bounds.
  [[nodiscard]] std::size_t stream_count() const { return streams_.size(); }
  [[nodiscard]] std::size_t link_count() const { return links_.size(); }
  [[nodiscard]] unsigned outstanding(const NodeId& to) const;

 private:
  struct Key {
    ExchangeId e;
    schema::Stream stream;
    bool operator==(const Key&) const = default;
  };
  struct KeyHasher {
    std::size_t operator()(const Key& key) const {
      return ExchangeIdHasher()(key.e) + static_cast<std::size_t>(key.stream);
    }
  };
  struct OutStream {
    NodeId to;
    Slice payload;
    std::uint32_t chunk_bytes = 1;
    ChunkBits acknowledged;          // union of all CREDITs since the last resend
    ChunkBits last_credit;           // the last CREDIT alone
    ChunkBits under_way;             // sent, holding credit
    std::uint32_t next = 0;          // no chunk below it wants to be sent
    std::uint32_t first_unsent = 0;  // chunks from here on never left
    bool queued = false;
    bool paused = false;
  };
  struct Link {
    unsigned outstanding = 0;
    std::size_t streams = 0;
    std::deque<Key>
        results;  // streams with something to send, oldest first; closed ones are skipped
    std::deque<Key> proposals;
    bool dirty = false;
  };

  void enqueue(const Key& key, OutStream& stream);
  void mark_dirty(const NodeId& to, Link& link);
  void give_back(Link& link, OutStream& stream);
  void flush_link(Link& link, std::vector<Outgoing>& out, Flushed& flushed);
  OutStream* front(std::deque<Key>& queue);
  void send_next(const Key& key, OutStream& stream, std::vector<Outgoing>& out, Flushed& flushed);
  static void skip_settled(OutStream& stream);

  unsigned window_;
  std::unordered_map<Key, OutStream, KeyHasher> streams_;
  std::unordered_map<NodeId, Link, NodeIdHasher> links_;
  std::vector<NodeId> dirty_;
};

}  // namespace kith::gossip
