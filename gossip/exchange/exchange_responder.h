// ExchangeResponder: others' proposals, from the first header to the acknowledged result.
//
//   nothing    -> collecting: PROPOSE passed every check; chunks are kept where they were received
//   collecting -> committed: all chunks there: the store subtracts the delta, the ledger keeps it,
//   RESULT leaves committed  -> nothing: ACK (or a higher lowest_open, or a newer proposal of the
//   same initiator for this fragment) anything refused or closed leaves a tombstone
//   (ledger_closed.h)
//
// Never waits for anybody: what cannot be taken now is answered BUSY or ABORTED at once. Thread:
// the machine's owner.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "gossip/exchange/chunk_collector.h"
#include "gossip/exchange/exchange_context.h"
#include "gossip/exchange/exchange_deadlines.h"
#include "gossip/exchange/exchange_initiator.h"
#include "gossip/exchange/ledger.h"
#include "gossip/exchange/ledger_closed.h"

namespace kith::gossip {

class ExchangeResponder {
 public:
  // `own`: for crossing proposals.
  ExchangeResponder(ExchangeContext& context, const ExchangeInitiator& own)
      : context_(context), own_(own) {}

  // -- inputs (context.now is set); e.initiator == from has been checked --
  void on_propose(const NodeId& from, const schema::Propose& message);
  void on_chunk(const schema::Chunk& message, const Slice& payload);
  void on_credit(const NodeId& from, const schema::Credit& message);
  void on_ack(const schema::Ack& message);
  void on_withdrawn(const ExchangeId& e);
  void on_peers(const std::vector<Peer>& before);
  void tick();
  // Drops what is being collected; ledger entries stay.
  void abandon();

  [[nodiscard]] TimePoint next_deadline() const;
  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] std::size_t inbound_bytes() const { return inbound_bytes_; }
  [[nodiscard]] std::size_t held_entries() const;

  // For the image.
  struct ClosedOf {
    NodeId initiator;
    ClosedIds closed;
  };
  [[nodiscard]] std::vector<ClosedOf> closed_ids() const;  // sorted by initiator
  void restore(std::vector<ClosedOf> closed, std::vector<LedgerEntry> entries);

 private:
  struct Collection {
    FragmentIndex fragment = 0;
    CodecId codec = CodecId::kFp32;
    double weight = 0.5;
    Step depth = 0;  // of the initiator's model
    ChunkCollector chunks;
    TimePoint last_progress;
    TimePoint queued = TimePoint::max();
  };
  // What is known of one initiator.
  struct Book {
    ClosedIds closed;
    std::map<FragmentIndex, ExchangeId> collecting;
  };

  // on_propose, step by step
  void meet(const NodeId& initiator, Book& book, Incarnation incarnation);
  void settle_below(const NodeId& initiator, Book& book, Incarnation incarnation,
                    std::uint64_t lowest_open);
  void asked_while_collecting(Book& book, const schema::Propose& message, const Collection& held);
  void accept(const NodeId& from, Book& book, const schema::Propose& message);
  [[nodiscard]] std::optional<schema::AbortReason> refusal(const NodeId& from,
                                                           const schema::Propose& message);
  [[nodiscard]] bool matches(const schema::Propose& message) const;
  [[nodiscard]] bool is_too_far(const NodeId& from, const schema::Propose& message);
  [[nodiscard]] bool loses_crossing(const NodeId& from, const schema::Propose& message) const;
  // False if a newer exchange about this fragment is here already; an older one is closed by the
  // proposal.
  bool clear_slot(const NodeId& from, Book& book, const schema::Propose& message);
  bool make_room(std::size_t bytes);

  void refuse(Book& book, const ExchangeId& e, FragmentIndex fragment,
              std::optional<schema::AbortReason> reason);  // nullopt: BUSY
  void bury(Book& book, const ExchangeId& e);
  // What it was; empty if there was none.
  Collection drop_collection(Book& book, const ExchangeId& e);

  void complete(const ExchangeId& e);
  Result<FragmentStore::Committed> commit(const ExchangeId& e, const Collection& collection,
                                          const Payload& proposal);
  void enter(const ExchangeId& e, const Collection& collection, FragmentStore::Committed committed);

  // the ledger's side (exchange_ledger.cc)
  void send_result(LedgerEntry& entry);
  void replay(LedgerEntry& entry);
  void remind(LedgerEntry& entry);
  void free_entry(const ExchangeId& e);
  void forfeit(const ExchangeId& e);
  [[nodiscard]] bool is_forfeitable(const LedgerEntry& entry) const;
  bool forfeit_one();
  void rest(LedgerEntry& entry);
  void schedule(LedgerEntry& entry);
  void supersede(const NodeId& initiator, Book& book);
  void forget_peer(const NodeId& initiator);

  ExchangeContext& context_;
  const ExchangeInitiator& own_;
  std::unordered_map<ExchangeId, Collection, ExchangeIdHasher> collections_;
  std::unordered_map<NodeId, Book, NodeIdHasher> books_;
  Ledger ledger_;
  Deadlines<ExchangeId> deadlines_;  // of collections
  std::size_t inbound_bytes_ = 0;    // declared sizes of what is being collected
};

}  // namespace kith::gossip
