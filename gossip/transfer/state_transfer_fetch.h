// StateFetcher: the asking half of StateTransfer. Items are shared out among donors, a few open at
// each; each is asked for again when nothing moves, and verified when complete. A donor that fails
// loses what it had open, which goes back to the front of the queue. Thread: one owner.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gossip/exchange/chunk_collector.h"
#include "gossip/transfer/state_transfer.h"
#include "gossip/transfer/state_transfer_donors.h"
#include "gossip/transfer/state_transfer_moments.h"

namespace kith::gossip {

class StateFetcher {
 public:
  explicit StateFetcher(const TransferSettings& settings) : settings_(settings), pool_(settings) {}

  void begin(TimePoint now, const std::vector<NodeId>& donors, FetchOrder order,
             std::vector<Outgoing>& out);
  void set_donors(TimePoint now, const std::vector<NodeId>& donors, std::vector<Outgoing>& out);
  // Ends without a verdict; the donors are told.
  void cancel(std::vector<Outgoing>& out);
  [[nodiscard]] bool fetching() const { return active_; }

  void on_header(TimePoint now, const NodeId& from, const schema::StateHeader& message,
                 std::vector<Outgoing>& out);
  void on_chunk(TimePoint now, const NodeId& from, const schema::Chunk& message,
                const Slice& payload, std::vector<Outgoing>& out);
  void on_busy(TimePoint now, const NodeId& from, const schema::Busy& message,
               std::vector<Outgoing>& out);
  void on_aborted(TimePoint now, const NodeId& from, const schema::Aborted& message,
                  std::vector<Outgoing>& out);
  void peer_up(TimePoint now, const NodeId& peer);
  void peer_gone(TimePoint now, const NodeId& peer, std::vector<Outgoing>& out);
  void tick(TimePoint now, std::vector<Outgoing>& out);
  [[nodiscard]] TimePoint next_deadline() const;

  std::vector<StateTransfer::Fetched> take_fetched() { return std::exchange(fetched_, {}); }
  std::vector<StateTransfer::Trouble> take_troubles() { return pool_.take_troubles(); }
  std::optional<Status> take_end() { return std::exchange(end_, std::nullopt); }

 private:
  struct Item {
    ItemKey key;
    NodeId donor;
    std::optional<schema::StateHeader> header;
    ChunkCollector chunks;
    TimePoint ask_at;
  };
  using ItemMap = std::map<ExchangeId, Item>;
  enum class Tell { kNo, kYes };  // the donor, that its items are withdrawn
  enum class Which { kAll, kFragments, kMoments };

  // asking
  void request_more(TimePoint now, std::vector<Outgoing>& out);
  std::optional<std::pair<NodeId, ItemKey>> next_request(TimePoint now);
  void pin_moments(TimePoint now);
  void open(TimePoint now, const NodeId& donor, const ItemKey& key, std::vector<Outgoing>& out);
  void ask(const ExchangeId& e, const Item& item, std::vector<Outgoing>& out);
  // receiving
  ItemMap::iterator find(const NodeId& from, const ExchangeId& e);
  [[nodiscard]] std::optional<Error> objection(const Item& item,
                                               const schema::StateHeader& header) const;
  void disclaim(const NodeId& to, const ExchangeId& e, std::vector<Outgoing>& out) const;
  void progress(TimePoint now, Item& item);
  void complete(TimePoint now, ItemMap::iterator it, std::vector<Outgoing>& out);
  // losing donors
  void put_back(const ItemKey& key);
  void release(const NodeId& donor, Which which, Tell tell, std::vector<Outgoing>& out);
  void drop(TimePoint now, const NodeId& donor, Error why, DonorPool::Loss loss, Tell tell,
            std::vector<Outgoing>& out);
  void restart_moments(TimePoint now, const NodeId& donor, std::vector<Outgoing>& out);
  void watch(TimePoint now, const NodeId& donor, std::vector<Outgoing>& out);
  void watch_moments(TimePoint now, std::vector<Outgoing>& out);
  [[nodiscard]] Duration patience() const;
  [[nodiscard]] bool has_open(const NodeId& donor, Which which) const;
  void end_without_progress(TimePoint now, std::vector<Outgoing>& out);
  void end(Status status, std::vector<Outgoing>& out);

  const TransferSettings& settings_;
  bool active_ = false;
  DonorPool pool_;
  FetchOrder order_;
  std::deque<ItemKey> queue_;  // all but moments
  MomentsQueue moments_;
  ItemMap open_;
  TimePoint now_;  // of the last call
  TimePoint last_progress_;
  bool busy_heard_ = false;  // since the last progress
  std::uint64_t next_sequence_ = 1;
  std::vector<StateTransfer::Fetched> fetched_;
  std::optional<Status> end_;
};

}  // namespace kith::gossip
