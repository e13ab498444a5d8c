// StateFetcher: the asking half of StateTransfer. A few items at once, in order; each is asked for
// again when nothing moves, verified when complete, and the fetch ends with the last item or the
// first thing that makes it impossible. Thread: one owner.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gossip/chunk_collector.h"
#include "gossip/state_transfer.h"

namespace kith::gossip {

class StateFetcher {
 public:
  explicit StateFetcher(const TransferSettings& settings) : settings_(settings) {}

  void begin(TimePoint now, const NodeId& donor, std::vector<ItemKey> wanted,
             std::map<ItemKey, Hash256> expected, std::vector<Outgoing>& out);
  // Ends without a verdict; the donor is told.
  void cancel(std::vector<Outgoing>& out);
  [[nodiscard]] bool fetching() const { return donor_.has_value(); }

  void on_header(TimePoint now, const NodeId& from, const schema::StateHeader& message,
                 std::vector<Outgoing>& out);
  void on_chunk(TimePoint now, const NodeId& from, const schema::Chunk& message,
                const Slice& payload, std::vector<Outgoing>& out);
  void on_busy(TimePoint now, const NodeId& from, const schema::Busy& message);
  void on_aborted(const NodeId& from, const schema::Aborted& message, std::vector<Outgoing>& out);
  void peer_gone(const NodeId& peer, std::vector<Outgoing>& out);
  void tick(TimePoint now, std::vector<Outgoing>& out);
  [[nodiscard]] TimePoint next_deadline() const;

  std::vector<StateTransfer::Fetched> take_fetched() { return std::exchange(fetched_, {}); }
  std::optional<Status> take_end() { return std::exchange(end_, std::nullopt); }

 private:
  struct Item {
    ItemKey key;
    std::optional<schema::StateHeader> header;
    ChunkCollector chunks;
    TimePoint ask_at;
  };
  using ItemMap = std::map<ExchangeId, Item>;

  ItemMap::iterator find(const NodeId& from, const ExchangeId& e);
  void request_more(TimePoint now, std::vector<Outgoing>& out);
  void request(const ExchangeId& e, const Item& item, std::vector<Outgoing>& out);
  void progress(TimePoint now, Item& item);
  void complete(TimePoint now, ItemMap::iterator it, std::vector<Outgoing>& out);
  void end(Status status, std::vector<Outgoing>& out);

  const TransferSettings& settings_;
  std::optional<NodeId> donor_;
  std::deque<ItemKey> wanted_;
  std::map<ItemKey, Hash256> expected_;
  ItemMap open_;
  TimePoint last_progress_;
  std::uint64_t next_sequence_ = 1;
  std::vector<StateTransfer::Fetched> fetched_;
  std::optional<Status> end_;
};

}  // namespace kith::gossip
