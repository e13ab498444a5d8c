#include "gossip/exchange/exchange_responder.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace kith::gossip {
namespace {

// A collection that has not grown for so many retry intervals is dropped: its initiator has
// suspended it long since.
constexpr int kCollectionPatience = 16;

}  // namespace

void ExchangeResponder::on_propose(const NodeId& from, const schema::Propose& message) {
  const ExchangeId& e = message.e;
  if (e.sequence == 0 || message.lowest_open > e.sequence) {
    return context_.invalid(from, e, message.fragment);
  }
  Book& book = books_[from];
  meet(from, book, e.incarnation);
  settle_below(from, book, e.incarnation, message.lowest_open);
  if (LedgerEntry* entry = ledger_.find(e)) {
    if (message.attempt > 0) return replay(*entry);
    ++context_.counters.duplicates_ignored;
    return;
  }
  if (const auto it = collections_.find(e); it != collections_.end()) {
    return asked_while_collecting(book, message, it->second);
  }
  const bool closed = book.closed.is_closed(e.incarnation, e.sequence);
  if (closed && !context_.planted.drop_tombstone) {
    ++context_.counters.duplicates_ignored;
    return context_.send(from, schema::Aborted{e, schema::AbortReason::kUnknown});
  }
  accept(from, book, message);
}

// A newer incarnation of the initiator: what the older one was sending will never be completed.
void ExchangeResponder::meet(const NodeId& initiator, Book& book, Incarnation incarnation) {
  if (incarnation <= book.closed.incarnation()) return;
  book.closed.advance(incarnation);
  supersede(initiator, book);
}

// Everything of this incarnation below lowest_open is closed on the other side.
void ExchangeResponder::settle_below(const NodeId& initiator, Book& book, Incarnation incarnation,
                                     std::uint64_t lowest_open) {
  if (incarnation == book.closed.incarnation()) book.closed.raise_floor(lowest_open);
  const auto is_below = [&](const ExchangeId& e) {
    return e.incarnation == incarnation && e.sequence < lowest_open;
  };
  for (const ExchangeId& e : ledger_.of(initiator)) {
    if (is_below(e)) free_entry(e);
  }
  std::vector<ExchangeId> stale;
  for (const auto& [fragment, e] : book.collecting) {
    if (is_below(e)) stale.push_back(e);
  }
  for (const ExchangeId& e : stale) drop_collection(book, e);
}

void ExchangeResponder::asked_while_collecting(Book& book, const schema::Propose& message,
                                               const Collection& held) {
  if (message.attempt == 0) {
    ++context_.counters.duplicates_ignored;
    return;
  }
  if (message.payload_bytes > 0) {
    return context_.send_credit(message.e.initiator, message.e, schema::Stream::kProposal,
                                held.chunks.received());
  }
  // The initiator no longer has what is missing.
  const FragmentIndex fragment = held.fragment;
  drop_collection(book, message.e);
  refuse(book, message.e, fragment, schema::AbortReason::kUnknown);
}

void ExchangeResponder::accept(const NodeId& from, Book& book, const schema::Propose& message) {
  const ExchangeId& e = message.e;
  auto reason = refusal(from, message);
  if (!reason && !clear_slot(from, book, message)) reason = schema::AbortReason::kUnknown;
  if (reason) return refuse(book, e, message.fragment, reason);
  if (!make_room(message.payload_bytes)) return refuse(book, e, message.fragment, std::nullopt);
  Collection& collection = collections_[e];
  collection.fragment = message.fragment;
  collection.codec = message.codec;
  collection.weight = message.weight;
  collection.depth = message.depth;
  collection.chunks = ChunkCollector(message.payload_bytes, message.chunk_bytes);
  collection.last_progress = context_.now;
  book.collecting[message.fragment] = e;
  inbound_bytes_ += message.payload_bytes;
  deadlines_.set(collection.queued, e,
                 context_.now + kCollectionPatience * context_.settings.retry_interval);
  pass(FaultPoint::kProposeReceived);
  if (message.attempt > 0) {
    context_.send_credit(from, e, schema::Stream::kProposal, collection.chunks.received());
  }
}

std::optional<schema::AbortReason> ExchangeResponder::refusal(const NodeId& from,
                                                              const schema::Propose& message) {
  if (!matches(message)) return schema::AbortReason::kMismatch;
  if (message.payload_bytes == 0) return schema::AbortReason::kUnknown;
  if (!context_.active) return schema::AbortReason::kNotReady;
  if (is_too_far(from, message)) return schema::AbortReason::kLag;
  if (loses_crossing(from, message)) return schema::AbortReason::kCrossing;
  return std::nullopt;
}

bool ExchangeResponder::matches(const schema::Propose& message) const {
  if (message.run_digest != context_.settings.run_digest ||
      message.schema_hash != context_.settings.schema_hash) {
    return false;
  }
  if (message.fragment >= context_.store.fragment_count()) return false;
  if (message.slot != schema::Slot::kParameters) return false;
  if (message.codec != CodecId::kFp32 && message.codec != CodecId::kBf16) return false;
  if (!(message.weight > 0.0 && message.weight <= 0.5)) return false;  // NaN too
  if (message.payload_bytes == 0) return true;
  return message.payload_bytes == context_.store.payload_bytes(message.fragment, message.codec) &&
         is_sane_chunking(message.payload_bytes, message.chunk_bytes);
}

bool ExchangeResponder::is_too_far(const NodeId& from, const schema::Propose& message) {
  const Step ours = context_.depth;
  const Step theirs = message.depth;
  const Step lag = ours > theirs ? ours - theirs : theirs - ours;
  if (lag <= context_.max_lag) return false;
  if (theirs > ours) {
    ExchangeEvent event;
    event.kind = ExchangeEvent::Kind::kLagging;
    event.peer_depth = theirs;
    event.e = message.e;
    event.peer = from;
    event.fragment = message.fragment;
    context_.events.push_back(event);
  }
  return true;
}

// Both have proposed this fragment to each other: averaging both would swap the models. The lower
// hash goes on.
bool ExchangeResponder::loses_crossing(const NodeId& from, const schema::Propose& message) const {
  const auto ours = own_.unanswered(from, message.fragment);
  if (!ours) return false;
  const std::uint64_t our_hash = ours->settle_hash();
  const std::uint64_t their_hash = message.e.settle_hash();
  return our_hash != their_hash ? our_hash < their_hash : *ours < message.e;
}

// An initiator proposes a fragment to a peer only after its previous exchange about it with that
// peer has been closed.
bool ExchangeResponder::clear_slot(const NodeId& from, Book& book, const schema::Propose& message) {
  const auto newer = [&message](const ExchangeId& e) {
    return std::pair(e.incarnation, e.sequence) >
           std::pair(message.e.incarnation, message.e.sequence);
  };
  if (const LedgerEntry* entry = ledger_.find(from, message.fragment)) {
    const ExchangeId held = entry->result.e;
    if (newer(held)) return false;
    if (held.incarnation == message.e.incarnation) {
      free_entry(held);
    } else {
      forfeit(held);  // its initiator has restarted without it
    }
  }
  if (const auto it = book.collecting.find(message.fragment); it != book.collecting.end()) {
    const ExchangeId held = it->second;
    if (newer(held)) return false;
    drop_collection(book, held);
    bury(book, held);
  }
  return true;
}

// One payload always may; what is being collected has its place in the ledger reserved.
bool ExchangeResponder::make_room(std::size_t bytes) {
  if (inbound_bytes_ > 0 && inbound_bytes_ + bytes > context_.settings.inbound_bytes_max) {
    return false;
  }
  while (true) {
    const std::size_t held = ledger_.bytes() + inbound_bytes_;
    if (held == 0 || held + bytes <= context_.settings.ledger_bytes_max) return true;
    if (!forfeit_one()) return false;
  }
}

void ExchangeResponder::refuse(Book& book, const ExchangeId& e, FragmentIndex fragment,
                               std::optional<schema::AbortReason> reason) {
  bury(book, e);
  if (reason) {
    context_.send(e.initiator, schema::Aborted{e, *reason});
  } else {
    const auto wait =
        std::chrono::duration_cast<std::chrono::milliseconds>(context_.settings.retry_interval);
    context_.send(e.initiator, schema::Busy{e, static_cast<std::uint32_t>(wait.count())});
  }
  ExchangeEvent event;
  event.kind = ExchangeEvent::Kind::kRefusedOther;
  event.e = e;
  event.peer = e.initiator;
  event.fragment = fragment;
  event.reason = reason.value_or(schema::AbortReason::kUnknown);
  event.busy = !reason;
  context_.events.push_back(event);
}

void ExchangeResponder::bury(Book& book, const ExchangeId& e) {
  if (!context_.planted.drop_tombstone) book.closed.bury(e.incarnation, e.sequence);
}

ExchangeResponder::Collection ExchangeResponder::drop_collection(Book& book, const ExchangeId& e) {
  const auto it = collections_.find(e);
  if (it == collections_.end()) return {};
  Collection collection = std::move(it->second);
  inbound_bytes_ -= collection.chunks.payload_bytes();
  deadlines_.clear(collection.queued, e);
  book.collecting.erase(collection.fragment);
  collections_.erase(it);
  return collection;
}

void ExchangeResponder::on_chunk(const schema::Chunk& message, const Slice& payload) {
  const ExchangeId& e = message.e;
  const auto it = collections_.find(e);
  if (it == collections_.end()) {
    ++context_.counters.dropped;
    return;
  }
  Collection& collection = it->second;
  switch (collection.chunks.take(message.index, payload)) {
    case ChunkCollector::Take::kInvalid:
      return context_.invalid(e.initiator, e, collection.fragment);
    case ChunkCollector::Take::kDuplicate:
      ++context_.counters.duplicates_ignored;
      break;
    case ChunkCollector::Take::kTaken:
      context_.counters.payload_bytes_received += payload.size();
      collection.last_progress = context_.now;
      pass(FaultPoint::kChunkReceived);
      if (collection.chunks.complete()) return complete(e);
  }
  context_.send_credit(e.initiator, e, schema::Stream::kProposal, collection.chunks.received());
}

void ExchangeResponder::complete(const ExchangeId& e_in) {
  const ExchangeId e = e_in;  // it may live in the collection
  Book& book = books_[e.initiator];
  Collection collection = drop_collection(book, e);
  const FragmentIndex fragment = collection.fragment;
  pass(FaultPoint::kBeforeCommit);
  if (!context_.active) return refuse(book, e, fragment, schema::AbortReason::kNotReady);
  auto committed = commit(e, collection, collection.chunks.release());
  if (committed) return enter(e, collection, std::move(*committed));
  if (committed.error().code == ErrorCode::kBusy) return refuse(book, e, fragment, std::nullopt);
  refuse(book, e, fragment, schema::AbortReason::kNonFinite);
}

// A store without a free buffer may have lent it to entries that nobody will collect.
Result<FragmentStore::Committed> ExchangeResponder::commit(const ExchangeId& e,
                                                           const Collection& collection,
                                                           const Payload& proposal) {
  auto committed =
      context_.store.commit(e, collection.fragment, proposal, collection.codec, collection.weight);
  if (committed || committed.error().code != ErrorCode::kBusy || !forfeit_one()) return committed;
  return context_.store.commit(e, collection.fragment, proposal, collection.codec,
                               collection.weight);
}

void ExchangeResponder::enter(const ExchangeId& e, const Collection& collection,
                              FragmentStore::Committed committed) {
  LedgerEntry entry;
  entry.result.e = e;
  entry.result.fragment = collection.fragment;
  entry.result.codec = collection.codec;
  entry.result.payload_bytes = committed.delta.size();
  entry.result.chunk_bytes = context_.chunk_bytes_for(committed.delta.size());
  entry.result.depth = context_.depth;
  entry.result.step = context_.own_step;
  entry.result.distance_squared = committed.distance_squared;
  entry.result.norm_squared = committed.norm_squared;
  entry.delta = std::move(committed.delta);
  entry.weight = collection.weight;
  LedgerEntry& stored = ledger_.add(std::move(entry));
  pass(FaultPoint::kAfterCommit);
  ++context_.counters.completed_responder;
  ExchangeEvent event;
  event.kind = ExchangeEvent::Kind::kCompletedResponder;
  event.e = e;
  event.peer = e.initiator;
  event.fragment = collection.fragment;
  event.distance_squared = stored.result.distance_squared;
  event.norm_squared = stored.result.norm_squared;
  event.peer_depth = collection.depth;
  event.payload_bytes = stored.delta.size();
  context_.events.push_back(event);
  send_result(stored);
  rest(stored);
}

void ExchangeResponder::on_withdrawn(const ExchangeId& e) {
  Book& book = books_[e.initiator];
  meet(e.initiator, book, e.incarnation);
  drop_collection(book, e);
  if (ledger_.find(e) != nullptr) return forfeit(e);  // committed, and will not be applied
  bury(book, e);
}

void ExchangeResponder::abandon() {
  std::vector<std::pair<ExchangeId, FragmentIndex>> held;
  for (const auto& [initiator, book] : books_) {
    for (const auto& [fragment, e] : book.collecting) held.emplace_back(e, fragment);
  }
  std::sort(held.begin(), held.end());
  for (const auto& [e, fragment] : held) {
    Book& book = books_[e.initiator];
    drop_collection(book, e);
    refuse(book, e, fragment, schema::AbortReason::kNotReady);
  }
}

TimePoint ExchangeResponder::next_deadline() const {
  return std::min(deadlines_.next(), ledger_.deadlines().next());
}

void ExchangeResponder::tick() {
  while (const auto e = deadlines_.due(context_.now)) {
    Collection& collection = collections_.at(*e);
    const TimePoint at =
        collection.last_progress + kCollectionPatience * context_.settings.retry_interval;
    if (at > context_.now) {
      deadlines_.set(collection.queued, *e, at);
    } else {
      drop_collection(books_[e->initiator], *e);  // asked again with its chunks, it would be new
    }
  }
  while (const auto e = ledger_.deadlines().due(context_.now)) {
    LedgerEntry& entry = *ledger_.find(*e);
    if (entry.resend_at <= context_.now) remind(entry);
    schedule(entry);
  }
}

std::size_t ExchangeResponder::held_entries() const {
  std::size_t sum = collections_.size() + books_.size() + ledger_.size() + deadlines_.size() +
                    ledger_.deadlines().size();
  for (const auto& [id, book] : books_) {
    sum += book.closed.tombstones().size() + book.collecting.size();
  }
  return sum;
}

}  // namespace kith::gossip
