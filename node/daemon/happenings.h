// Happenings: what the exchange loop has to tell the control loop. Of state transfers only the
// fetch that was asked for last counts: whatever an earlier one still brings is dropped, so that
// its items never enter what the next one assembles.
//
// Thread: any; next_fetch() and take() are the control loop's, add() the exchange loop's.
#pragma once

#include <cstdint>
#include <mutex>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "gossip/exchange/exchange.h"
#include "gossip/transfer/state_transfer.h"

namespace kith::node {

// `donor`: who gave the last item that arrived; `lost`: who was dropped on the way.
struct FetchEnded {
  NodeId donor;
  Status status;
  std::vector<NodeId> lost = {};
};
using Happening = std::variant<gossip::ExchangeEvent, gossip::StateTransfer::Fetched, FetchEnded>;

class Happenings {
 public:
  using FetchNumber = std::uint64_t;

  // Another fetch begins, or the last one is given up: nothing of those before it comes any more.
  FetchNumber next_fetch();
  void add(std::vector<gossip::ExchangeEvent> events);
  // False: `fetch` is not the last one, and the happening is gone.
  bool add(FetchNumber fetch, gossip::StateTransfer::Fetched item);
  bool add(FetchNumber fetch, FetchEnded end);
  std::vector<Happening> take();

 private:
  std::mutex mutex_;
  FetchNumber last_ = 0;
  std::vector<Happening> waiting_;  // of fetches: of the last one only
};

}  // namespace kith::node
