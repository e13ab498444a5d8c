// ExchangeMachine: takes inputs apart, hands them to the initiator or the responder, and collects
// what they say.
#include "gossip/exchange/exchange.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/fault_point.h"
#include "gossip/exchange/exchange_context.h"
#include "gossip/exchange/exchange_image.h"
#include "gossip/exchange/exchange_initiator.h"
#include "gossip/exchange/exchange_responder.h"

namespace kith::gossip {
namespace {

void check_settings(const ExchangeSettings& settings) {
  KITH_CHECK(settings.weight > 0.0 && settings.weight <= 0.5,
             "weight " + std::to_string(settings.weight) + " is not in (0, 1/2]");
  KITH_CHECK(settings.chunk_bytes > 0 && settings.chunk_bytes <= schema::kChunkBytesMax,
             "chunk_bytes " + std::to_string(settings.chunk_bytes));
  KITH_CHECK(settings.window_chunks > 0, "a window of no chunks sends nothing");
  KITH_CHECK(settings.retry_interval > Duration{0} && settings.suspend_after > Duration{0},
             "intervals of zero would ask for ever");
}

void pass_times(FaultPoint point, std::size_t& times) {
  for (; times > 0; --times) pass(point);
}

}  // namespace

struct ExchangeMachine::Impl {
  Impl(ExchangeSettings settings, FragmentStore& store, const PartnerChooser& chooser,
       Random random, PlantedFaults planted)
      : context(settings, store, random, planted),
        initiator(context, chooser),
        responder(context, initiator) {}

  ExchangeContext context;
  ExchangeInitiator initiator;
  ExchangeResponder responder;

  // What was queued has been handed to the transport since.
  void begin(TimePoint now) {
    context.now = now;
    if (!context.outgoing.empty()) return;
    SentPoints& sent = context.sent;
    pass_times(FaultPoint::kProposeSent, sent.propose);
    pass_times(FaultPoint::kProposeChunkSent, sent.propose_chunk);
    pass_times(FaultPoint::kResultSent, sent.result);
    pass_times(FaultPoint::kAckSent, sent.ack);
  }
  void end() {
    initiator.pump();
    const ChunkSender::Flushed flushed = context.sender.flush(context.outgoing);
    context.counters.payload_bytes_sent += flushed.bytes;
    context.sent.propose_chunk += flushed.proposal_chunks;
  }

  // True when e is the sender's own; otherwise it is counted as invalid.
  bool is_theirs(const NodeId& from, const ExchangeId& e) {
    if (e.initiator == from && from != context.settings.self) return true;
    context.invalid(from, e);
    return false;
  }
  bool is_ours(const NodeId& from, const ExchangeId& e) {
    if (e.initiator == context.settings.self && from != context.settings.self) return true;
    context.invalid(from, e);
    return false;
  }

  void handle(const NodeId& from, const schema::Propose& message, const Slice& /*payload*/) {
    if (is_theirs(from, message.e)) responder.on_propose(from, message);
  }
  void handle(const NodeId& from, const schema::Chunk& message, const Slice& payload) {
    if (message.stream == schema::Stream::kProposal) {
      if (is_theirs(from, message.e)) responder.on_chunk(message, payload);
    } else if (message.stream == schema::Stream::kResult) {
      if (is_ours(from, message.e)) initiator.on_chunk(from, message, payload);
    }
  }
  void handle(const NodeId& from, const schema::Credit& message, const Slice& /*payload*/) {
    if (message.stream == schema::Stream::kProposal) {
      if (is_ours(from, message.e)) initiator.on_credit(from, message);
    } else if (message.stream == schema::Stream::kResult) {
      if (is_theirs(from, message.e)) responder.on_credit(from, message);
    }
  }
  void handle(const NodeId& from, const schema::ResultMessage& message, const Slice& /*payload*/) {
    if (is_ours(from, message.e)) initiator.on_result(from, message);
  }
  void handle(const NodeId& from, const schema::Ack& message, const Slice& /*payload*/) {
    if (is_theirs(from, message.e)) responder.on_ack(message);
  }
  void handle(const NodeId& from, const schema::Busy& message, const Slice& /*payload*/) {
    if (!is_ours(from, message.e)) return;
    initiator.on_refused(from, message.e, true, schema::AbortReason::kUnknown);
  }
  void handle(const NodeId& from, const schema::Aborted& message, const Slice& /*payload*/) {
    if (message.e.initiator != context.settings.self) {
      if (is_theirs(from, message.e)) responder.on_withdrawn(message.e);
    } else if (is_ours(from, message.e)) {
      initiator.on_refused(from, message.e, false, message.reason);
    }
  }
};

ExchangeMachine::ExchangeMachine(ExchangeSettings settings, FragmentStore& store,
                                 const PartnerChooser& chooser, Random random,
                                 PlantedFaults planted) {
  check_settings(settings);
  KITH_CHECK(store.fragment_count() > 0, "a store without fragments");
  impl_ = std::make_unique<Impl>(settings, store, chooser, random, planted);
}

ExchangeMachine::~ExchangeMachine() = default;

void ExchangeMachine::set_peers(TimePoint now, std::vector<Peer> peers) {
  ExchangeContext& context = impl_->context;
  KITH_CHECK(std::is_sorted(peers.begin(), peers.end(),
                            [](const Peer& a, const Peer& b) { return a.id < b.id; }),
             "peers are sorted by id");
  impl_->begin(now);
  if (peers == context.peers) return impl_->end();
  std::swap(context.peers, peers);
  impl_->initiator.on_peers(peers);
  impl_->responder.on_peers(peers);
  impl_->end();
}

void ExchangeMachine::set_active(bool active) { impl_->context.active = active; }
void ExchangeMachine::set_draining(bool draining) { impl_->context.draining = draining; }
void ExchangeMachine::set_codec(CodecId codec) { impl_->context.codec = codec; }
void ExchangeMachine::set_max_lag(Step max_lag) { impl_->context.max_lag = max_lag; }

void ExchangeMachine::set_depth(Step depth, Step own_step) {
  impl_->context.depth = depth;
  impl_->context.own_step = own_step;
}

void ExchangeMachine::on_step(TimePoint now, Step step) {
  impl_->begin(now);
  impl_->initiator.on_step(step);
  impl_->end();
}

void ExchangeMachine::on_round(TimePoint now) {
  impl_->begin(now);
  impl_->initiator.start_round();
  impl_->end();
}

void ExchangeMachine::on_message(TimePoint now, const NodeId& from, const schema::Message& message,
                                 const Slice& payload) {
  impl_->begin(now);
  std::visit(
      [&](const auto& value) {
        if constexpr (requires { impl_->handle(from, value, payload); }) {
          if (!is_transfer(value.e)) impl_->handle(from, value, payload);
        }
      },
      message);
  impl_->end();
}

void ExchangeMachine::tick(TimePoint now) {
  impl_->begin(now);
  impl_->initiator.tick();
  impl_->responder.tick();
  impl_->end();
}

TimePoint ExchangeMachine::next_deadline() const {
  return std::min(impl_->initiator.next_deadline(), impl_->responder.next_deadline());
}

std::vector<Outgoing> ExchangeMachine::take_outgoing() {
  return std::exchange(impl_->context.outgoing, {});
}
std::vector<ExchangeEvent> ExchangeMachine::take_events() {
  return std::exchange(impl_->context.events, {});
}

std::uint64_t ExchangeMachine::lowest_open() const { return impl_->initiator.lowest_open(); }
bool ExchangeMachine::drained() const {
  return impl_->initiator.all_suspended() && impl_->responder.ledger().size() == 0;
}
bool ExchangeMachine::drained(const std::function<bool(const NodeId&)>& lives) const {
  const auto kept = impl_->responder.ledger().all();
  return impl_->initiator.all_suspended() &&
         std::none_of(kept.begin(), kept.end(),
                      [&](const LedgerEntry* entry) { return lives(entry->result.e.initiator); });
}
std::size_t ExchangeMachine::open_count() const { return impl_->initiator.open_count(); }
std::size_t ExchangeMachine::ledger_entries() const { return impl_->responder.ledger().size(); }
std::size_t ExchangeMachine::ledger_bytes() const { return impl_->responder.ledger().bytes(); }
std::size_t ExchangeMachine::inbound_bytes() const { return impl_->responder.inbound_bytes(); }
std::size_t ExchangeMachine::held_entries() const {
  return impl_->initiator.held_entries() + impl_->responder.held_entries() +
         impl_->context.sender.stream_count() + impl_->context.sender.link_count();
}
const ExchangeCounters& ExchangeMachine::counters() const { return impl_->context.counters; }

LedgerImage ExchangeMachine::image() const {
  ImageContents contents;
  contents.self = impl_->context.settings.self;
  contents.incarnation = impl_->context.settings.incarnation;
  contents.round = impl_->initiator.round();
  contents.open = impl_->initiator.open_ids();
  contents.closed = impl_->responder.closed_ids();
  for (const LedgerEntry* entry : impl_->responder.ledger().all()) {
    contents.entries.push_back(*entry);
  }
  return encode_image(contents);
}

Status ExchangeMachine::restore(const LedgerImage& image) {
  const ExchangeSettings& settings = impl_->context.settings;
  KITH_ASSIGN(ImageContents contents, decode_image(image.bytes, impl_->context.store));
  if (contents.self != settings.self) {
    return fail(ErrorCode::kCorrupt, "exchange ledger in the checkpoint: it is node " +
                                         contents.self.short_hex() + "'s, this is node " +
                                         settings.self.short_hex() +
                                         "; start with an empty data directory, or with the "
                                         "identity.key that wrote the checkpoint");
  }
  if (contents.incarnation >= settings.incarnation) {
    return fail("exchange ledger in the checkpoint: written in incarnation " +
                std::to_string(contents.incarnation) + ", but this node is in " +
                std::to_string(settings.incarnation) +
                "; the incarnation in the data directory must be the higher one");
  }
  impl_->initiator.restore(contents.open, contents.round);
  impl_->responder.restore(std::move(contents.closed), std::move(contents.entries));
  return {};
}

void ExchangeMachine::abandon_open(TimePoint now) {
  impl_->begin(now);
  impl_->initiator.abandon();
  impl_->responder.abandon();
  impl_->end();
}

}  // namespace kith::gossip
