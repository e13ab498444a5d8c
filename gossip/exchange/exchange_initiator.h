// ExchangeInitiator: our own proposals, from the draw of a partner to the applied result.
//
//   fragment idle -> open: PROPOSE and chunks, snapshot held by the proposal stream
//   open          -> asked again every retry_interval; RESULT ends the proposal stream and starts
//   collecting open          -> suspended after suspend_after without progress: only the id stays,
//   the fragment is idle again open, suspended -> closed by a complete RESULT (applied, ACK), by
//   BUSY or by ABORTED
//
// At most one open, unsuspended exchange per fragment, at most one exchange (suspended or not) per
// (peer, fragment). A round grants every fragment one new proposal, to the round's partner; a
// fragment that is still busy when the round begins uses its grant when it becomes idle. Thread:
// the machine's owner.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gossip/exchange/chunk_collector.h"
#include "gossip/exchange/exchange_context.h"
#include "gossip/exchange/exchange_deadlines.h"
#include "gossip/topology.h"

namespace kith::gossip {

class ExchangeInitiator {
 public:
  ExchangeInitiator(ExchangeContext& context, const PartnerChooser& chooser);

  // -- inputs (context.now is set) --
  void on_step(Step step);
  void start_round();
  void on_result(const NodeId& from, const schema::ResultMessage& message);
  void on_chunk(const NodeId& from, const schema::Chunk& message, const Slice& payload);
  void on_credit(const NodeId& from, const schema::Credit& message);
  // BUSY or ABORTED for an exchange of ours.
  void on_refused(const NodeId& from, const ExchangeId& e, bool busy, schema::AbortReason reason);
  // context.peers has been replaced; `before` is what it was.
  void on_peers(const std::vector<Peer>& before);
  void tick();
  // Starts what the round grants, as far as budget and buffers allow. At the end of every input.
  void pump();
  // Closes everything of ours without applying it; peers are told.
  void abandon();

  [[nodiscard]] TimePoint next_deadline() const { return deadlines_.next(); }
  [[nodiscard]] std::uint64_t lowest_open(Incarnation incarnation, std::uint64_t otherwise) const;
  [[nodiscard]] std::uint64_t lowest_open() const {
    return lowest_open(context_.settings.incarnation, next_sequence_);
  }
  // Our open exchange with `peer` about `fragment` that it may not have answered yet.
  [[nodiscard]] std::optional<ExchangeId> unanswered(const NodeId& peer,
                                                     FragmentIndex fragment) const;
  [[nodiscard]] std::size_t open_count() const { return open_.size(); }
  [[nodiscard]] bool all_suspended() const { return suspended_.size() == open_.size(); }
  [[nodiscard]] std::size_t held_entries() const;

  // For the image. Restored ids start suspended.
  struct OpenId {
    ExchangeId e;
    NodeId peer;
    FragmentIndex fragment = 0;
    CodecId codec = CodecId::kFp32;
  };
  [[nodiscard]] std::vector<OpenId> open_ids() const;
  [[nodiscard]] std::uint64_t round() const { return round_; }
  void restore(const std::vector<OpenId>& ids, std::uint64_t round);

 private:
  using Key = std::pair<Incarnation, std::uint64_t>;
  struct Exchange {
    NodeId peer;
    FragmentIndex fragment = 0;
    CodecId codec = CodecId::kFp32;
    std::size_t payload_bytes = 0;
    std::uint32_t attempt = 0;
    std::uint32_t vain_asks = 0;  // since the last progress
    bool suspended = false;
    bool asked = false;  // the next CREDIT answers an ask: it is taken at its word
    Step step = 0;       // ours when the snapshot was taken
    TimePoint started, last_progress, last_ask;
    Duration backoff{0};  // suspended: until the next ask
    std::optional<schema::ResultMessage> result;
    ChunkCollector chunks;  // of the result
    TimePoint queued = TimePoint::max();
  };
  using OpenMap = std::map<Key, Exchange>;
  using Entry = OpenMap::value_type;
  struct PeerState {
    TimePoint last_progress;
    bool silent = false;  // something to it was suspended and it has not answered anything since
  };

  [[nodiscard]] ExchangeId id_of(const Key& key) const {
    return {context_.settings.self, key.first, key.second};
  }
  // False for ids that we cannot have given out.
  [[nodiscard]] bool was_issued(const ExchangeId& e) const;
  // The open exchange, if it is one and `from` is its peer. Counts what is not.
  Entry* find(const NodeId& from, const ExchangeId& e);

  // rounds (exchange_rounds.cc)
  void draw_partner();
  [[nodiscard]] const Peer* draw_once(std::uint32_t self_index);
  [[nodiscard]] bool has_budget(std::size_t bytes) const;
  bool start(FragmentIndex fragment);
  void free_fragment(FragmentIndex fragment);

  void send_propose(const Entry& entry, bool with_payload);
  void ask(Entry& entry);
  void suspend(Entry& entry);
  void make_suspended(Entry& entry);
  void drop_late_result(Exchange& exchange);
  void limit_suspended();
  void close(const Key& key);
  bool begin_result(Entry& entry, const schema::ResultMessage& message);
  void apply(Entry& entry);
  void acknowledge(const NodeId& to, const ExchangeId& e);
  void progress(Entry& entry);
  void evaluate(Entry& entry);
  [[nodiscard]] TimePoint ask_at(const Exchange& exchange) const;
  [[nodiscard]] TimePoint suspend_at(const Exchange& exchange) const;
  void schedule(Entry& entry);

  ExchangeContext& context_;
  const PartnerChooser& chooser_;
  OpenMap open_;
  std::map<std::pair<NodeId, FragmentIndex>, Key> suspended_;
  std::unordered_map<NodeId, PeerState, NodeIdHasher> peers_;
  Deadlines<Key> deadlines_;
  std::uint64_t next_sequence_ = 1;
  std::size_t open_bytes_ = 0;  // payloads of unsuspended exchanges: snapshot or result in memory
  std::size_t late_bytes_ = 0;  // results of suspended ones being collected

  // the round
  std::uint64_t round_ = 0;
  Step step_quotient_ = 0;  // own_step / every_steps when the last round began
  std::optional<NodeId> partner_;
  std::vector<std::uint64_t> current_;  // per fragment: sequence of its open exchange, 0 = idle
  std::vector<bool> granted_;           // per fragment: may still start one in this round
  std::deque<FragmentIndex> wanting_;   // granted and idle, in the order of starting
  bool no_buffer_ = false;              // the store had none; until something returns
};

}  // namespace kith::gossip
