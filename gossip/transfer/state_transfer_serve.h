// StateDonor: the giving half of StateTransfer. Serves few fetchers at once, each a few items,
// chunk by chunk under credit; everybody else is told BUSY at once. What a fetcher does not collect
// is dropped after a while: it asks again. Thread: one owner.
#pragma once

#include <map>
#include <vector>

#include "gossip/exchange/chunk_sender.h"
#include "gossip/transfer/state_transfer.h"

namespace kith::gossip {

class StateDonor {
 public:
  StateDonor(const TransferSettings& settings, DonorSource& source)
      : settings_(settings), source_(source), sender_(settings.window_chunks) {}

  void on_request(TimePoint now, const NodeId& from, const schema::StateRequest& message,
                  std::vector<Outgoing>& out);
  void on_credit(TimePoint now, const NodeId& from, const schema::Credit& message,
                 std::vector<Outgoing>& out);
  void on_withdrawn(const NodeId& from, const ExchangeId& e);
  void peer_gone(const NodeId& peer);
  void tick(TimePoint now);
  [[nodiscard]] TimePoint next_deadline() const;
  [[nodiscard]] std::size_t open_items() const;

 private:
  struct Served {
    schema::StateHeader header;
    TimePoint last_sign;  // asked for or credited
  };
  struct Fetcher {
    TimePoint last_sign;
    std::map<ExchangeId, Served> items;
  };
  [[nodiscard]] bool has_room_for(TimePoint now, const NodeId& from);
  [[nodiscard]] TimePoint expiry(const Fetcher& fetcher) const;
  void drop_unwanted(TimePoint now, Fetcher& fetcher);
  void serve(TimePoint now, const NodeId& from, Fetcher& fetcher,
             const schema::StateRequest& message, std::vector<Outgoing>& out);
  void drop(Fetcher& fetcher);

  const TransferSettings& settings_;
  DonorSource& source_;
  ChunkSender sender_;
  std::map<NodeId, Fetcher> fetchers_;
};

}  // namespace kith::gossip
