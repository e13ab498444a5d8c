#include "gossip/exchange/exchange_initiator.h"

#include <cmath>

namespace kith::gossip {
ExchangeInitiator::ExchangeInitiator(ExchangeContext& context, const PartnerChooser& chooser)
    : context_(context),
      chooser_(chooser),
      current_(context.store.fragment_count()),
      granted_(context.store.fragment_count()) {}

// ---- answers ----

ExchangeInitiator::Entry* ExchangeInitiator::find(const NodeId& from, const ExchangeId& e) {
  const auto it = open_.find({e.incarnation, e.sequence});
  if (it == open_.end()) {
    ++context_.counters.duplicates_ignored;
    return nullptr;
  }
  if (it->second.peer != from) {
    context_.invalid(from, e, it->second.fragment);
    return nullptr;
  }
  return &*it;
}

bool ExchangeInitiator::was_issued(const ExchangeId& e) const {
  const Incarnation ours = context_.settings.incarnation;
  return e.sequence > 0 && e.incarnation <= ours &&
         (e.incarnation < ours || e.sequence < next_sequence_);
}

void ExchangeInitiator::on_result(const NodeId& from, const schema::ResultMessage& message) {
  const ExchangeId& e = message.e;
  if (!was_issued(e)) return context_.invalid(from, e, message.fragment);
  if (!open_.contains({e.incarnation, e.sequence})) {  // closed: let the responder free it
    ++context_.counters.duplicates_ignored;
    return acknowledge(from, e);
  }
  Entry* entry = find(from, e);
  if (entry == nullptr) return;
  if (entry->second.result) {
    context_.send_credit(from, e, schema::Stream::kResult, entry->second.chunks.received());
    return progress(*entry);
  }
  if (!begin_result(*entry, message)) return;
  if (entry->second.attempt > 0 || entry->second.suspended) {
    context_.send_credit(from, e, schema::Stream::kResult, entry->second.chunks.received());
  }
  progress(*entry);
}

bool ExchangeInitiator::begin_result(Entry& entry, const schema::ResultMessage& message) {
  Exchange& exchange = entry.second;
  const bool sane = message.fragment == exchange.fragment && message.codec == exchange.codec &&
                    message.payload_bytes == exchange.payload_bytes &&
                    is_sane_chunking(message.payload_bytes, message.chunk_bytes) &&
                    std::isfinite(message.distance_squared) && message.distance_squared >= 0 &&
                    std::isfinite(message.norm_squared) && message.norm_squared >= 0;
  if (!sane) {
    context_.invalid(exchange.peer, message.e, message.fragment);
    return false;
  }
  if (exchange.suspended) {  // late results share a budget; what does not fit is offered again
    const std::size_t bytes = late_bytes_ + exchange.payload_bytes;
    if (late_bytes_ > 0 && bytes > context_.settings.proposal_bytes_max) return false;
    late_bytes_ = bytes;
  }
  context_.sender.close(message.e, schema::Stream::kProposal);  // the snapshot has served
  no_buffer_ = false;
  exchange.result = message;
  exchange.chunks = ChunkCollector(message.payload_bytes, message.chunk_bytes);
  return true;
}

void ExchangeInitiator::on_chunk(const NodeId& from, const schema::Chunk& message,
                                 const Slice& payload) {
  Entry* entry = find(from, message.e);
  if (entry == nullptr) return;
  Exchange& exchange = entry->second;
  if (!exchange.result) {
    ++context_.counters.dropped;
    return;
  }
  switch (exchange.chunks.take(message.index, payload)) {
    case ChunkCollector::Take::kInvalid:
      return context_.invalid(from, message.e, exchange.fragment);
    case ChunkCollector::Take::kDuplicate:
      ++context_.counters.duplicates_ignored;
      break;
    case ChunkCollector::Take::kTaken:
      context_.counters.payload_bytes_received += payload.size();
      pass(FaultPoint::kChunkReceived);
      progress(*entry);
      if (exchange.chunks.complete()) return apply(*entry);
  }
  context_.send_credit(from, message.e, schema::Stream::kResult, exchange.chunks.received());
}

void ExchangeInitiator::apply(Entry& entry) {
  Exchange& exchange = entry.second;
  const ExchangeId e = id_of(entry.first);
  const Payload delta = exchange.chunks.release();
  pass(FaultPoint::kBeforeApply);
  const Status applied = context_.store.apply(e, exchange.fragment, delta, exchange.codec);
  if (applied && context_.planted.apply_result_twice) {
    (void)context_.store.apply(e, exchange.fragment, delta, exchange.codec);
  }
  pass(FaultPoint::kAfterApply);
  const NodeId peer = exchange.peer;
  if (applied) {
    ++context_.counters.completed_initiator;
    ExchangeEvent event;
    event.kind = ExchangeEvent::Kind::kCompletedInitiator;
    event.e = e;
    event.peer = peer;
    event.fragment = exchange.fragment;
    event.distance_squared = exchange.result->distance_squared;
    event.norm_squared = exchange.result->norm_squared;
    if (context_.own_step > exchange.step)
      event.staleness_steps = context_.own_step - exchange.step;
    event.peer_depth = exchange.result->depth;
    event.duration = context_.now - exchange.started;
    event.payload_bytes = exchange.payload_bytes;
    context_.events.push_back(event);
  } else {
    context_.invalid(peer, e, exchange.fragment);
  }
  close(entry.first);
  acknowledge(peer, e);
}

void ExchangeInitiator::acknowledge(const NodeId& to, const ExchangeId& e) {
  context_.send(
      to, schema::Ack{e, lowest_open(e.incarnation, e.incarnation == context_.settings.incarnation
                                                        ? next_sequence_
                                                        : e.sequence + 1)});
  ++context_.sent.ack;
}

void ExchangeInitiator::on_credit(const NodeId& from, const schema::Credit& message) {
  Entry* entry = find(from, message.e);
  if (entry == nullptr || entry->second.suspended || entry->second.result) return;
  const bool news =
      context_.sender.credit(from, message.e, schema::Stream::kProposal, message.received);
  if (!news && !entry->second.asked) return;
  if (entry->second.asked) context_.sender.resend(message.e, schema::Stream::kProposal);
  const std::uint32_t vain = entry->second.vain_asks;
  progress(*entry);
  if (!news) entry->second.vain_asks = vain;
}

void ExchangeInitiator::on_refused(const NodeId& from, const ExchangeId& e, bool busy,
                                   schema::AbortReason reason) {
  Entry* entry = find(from, e);
  if (entry == nullptr) return;
  if (busy) {
    ++context_.counters.refused_busy;
  } else {
    ++(reason == schema::AbortReason::kCrossing ? context_.counters.refused_crossing
                                                : context_.counters.refused_other);
  }
  ExchangeEvent event;
  event.kind = ExchangeEvent::Kind::kRefused;
  event.e = e;
  event.peer = from;
  event.fragment = entry->second.fragment;
  event.reason = reason;
  event.busy = busy;
  context_.events.push_back(event);
  progress(*entry);
  close(entry->first);
}

// ---- questions ----

void ExchangeInitiator::send_propose(const Entry& entry, bool with_payload) {
  const Exchange& exchange = entry.second;
  schema::Propose message;
  message.e = id_of(entry.first);
  message.attempt = exchange.attempt;
  message.fragment = exchange.fragment;
  message.codec = exchange.codec;
  message.weight = context_.settings.weight;
  message.payload_bytes = with_payload ? exchange.payload_bytes : 0;
  message.chunk_bytes = context_.chunk_bytes_for(exchange.payload_bytes);
  message.lowest_open = lowest_open(entry.first.first, entry.first.second);
  message.run_digest = context_.settings.run_digest;
  message.schema_hash = context_.settings.schema_hash;
  message.depth = context_.depth;
  message.step = context_.own_step;
  context_.send(exchange.peer, message);
  ++context_.sent.propose;
}

// Before the question, what we have of the answer: the responder takes it at its word.
void ExchangeInitiator::ask(Entry& entry) {
  Exchange& exchange = entry.second;
  const ExchangeId e = id_of(entry.first);
  ++exchange.attempt;
  ++exchange.vain_asks;
  ++context_.counters.retries;
  exchange.last_ask = context_.now;
  exchange.asked = true;
  if (exchange.result || exchange.suspended) {
    context_.send_credit(exchange.peer, e, schema::Stream::kResult, exchange.chunks.received());
  }
  send_propose(entry, context_.sender.has(e, schema::Stream::kProposal));
}

void ExchangeInitiator::progress(Entry& entry) {
  Exchange& exchange = entry.second;
  exchange.last_progress = context_.now;
  exchange.asked = false;
  exchange.vain_asks = 0;
  if (const auto peer = peers_.find(exchange.peer); peer != peers_.end()) {
    peer->second.last_progress = context_.now;
    peer->second.silent = false;
  }
  if (!exchange.suspended) return;  // its deadline moves by itself
  exchange.backoff = 2 * context_.settings.retry_interval;
  schedule(entry);
}

}  // namespace kith::gossip
