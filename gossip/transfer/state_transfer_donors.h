// DonorPool: whom a fetch may ask, and how each has behaved: who answered, who rests after a BUSY
// or a silence (twice as long each time), who was dropped and why. Knows nothing of items and
// messages. Thread: one owner.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gossip/transfer/state_transfer.h"

namespace kith::gossip {

class DonorPool {
 public:
  explicit DonorPool(const TransferSettings& settings) : settings_(settings) {}

  void reset(const std::vector<NodeId>& donors);
  // Those of `donors` that are new come in, also after having gone; who lied stays out. Returns who
  // is no longer listed.
  std::vector<NodeId> set(const std::vector<NodeId>& donors);
  [[nodiscard]] bool empty() const { return donors_.empty(); }
  [[nodiscard]] std::size_t size() const { return donors_.size(); }
  [[nodiscard]] bool contains(const NodeId& id) const { return donors_.contains(id); }

  // The least loaded donor that may take one more item now. One item until it has answered, then
  // requests_in_flight; at most donors_max have items at once.
  [[nodiscard]] std::optional<NodeId> next(TimePoint now) const;
  // The same among those that have answered.
  [[nodiscard]] std::optional<NodeId> next_answered(TimePoint now) const;
  [[nodiscard]] bool can_take(TimePoint now, const NodeId& id) const;
  [[nodiscard]] bool has_answered(const NodeId& id) const;

  void opened(TimePoint now, const NodeId& id);
  void closed(const NodeId& id);
  void answered(TimePoint now, const NodeId& id);  // a header or a chunk: it serves us
  void rest(TimePoint now, const NodeId& id, Duration at_least);
  // Since when it has owed us an answer.
  [[nodiscard]] std::optional<TimePoint> silent_since(const NodeId& id) const;
  void keep_silent_since(const NodeId& id, TimePoint since);
  // kTakenOff: its owner's list is without it; no trouble.
  enum class Loss { kMayReturn, kForGood, kTakenOff };
  void drop(const NodeId& id, Error why, Loss loss);

  // The first end of a rest after `now`.
  [[nodiscard]] TimePoint next_rest_end(TimePoint now) const;
  [[nodiscard]] std::vector<NodeId> ids() const;
  // Why nobody is left: one donor's reason as it is, several joined.
  [[nodiscard]] Status verdict() const;
  std::vector<StateTransfer::Trouble> take_troubles() { return std::exchange(troubles_, {}); }

 private:
  struct Donor {
    std::size_t place = 0;  // in the caller's order
    std::size_t open = 0;
    bool answered = false;
    unsigned rests = 0;
    TimePoint rest_until;
    std::optional<TimePoint> silent_since;
  };
  [[nodiscard]] bool has_slot(TimePoint now, const Donor& donor) const;
  [[nodiscard]] std::optional<NodeId> least_loaded(TimePoint now, bool answered_only) const;

  const TransferSettings& settings_;
  std::map<NodeId, Donor> donors_;
  std::map<NodeId, Error> dropped_;  // the last reason of each that is out
  std::map<NodeId, Error> liars_;
  std::vector<StateTransfer::Trouble> troubles_;
  std::size_t next_place_ = 0;
};

}  // namespace kith::gossip
