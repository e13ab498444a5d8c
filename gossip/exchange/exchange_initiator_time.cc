// The time of ExchangeInitiator: asking again, suspending, peers that go and come, the end.
#include <algorithm>
#include <chrono>

#include "gossip/exchange/exchange_initiator.h"

namespace kith::gossip {
namespace {

constexpr Duration kBackoffMax = std::chrono::seconds(10);
// A peer that keeps answering, but never brings this exchange forward, loses it after so many asks.
constexpr std::uint32_t kAsksMax = 16;
// What arrived of a late result is kept for so many suspend_after without progress.
constexpr int kLatePatience = 8;
// Ids of exchanges with peers that are gone; beyond, the oldest are given up (a late result is then
// acknowledged, not applied).
constexpr std::size_t kSuspendedMax = 65536;

}  // namespace

TimePoint ExchangeInitiator::ask_at(const Exchange& exchange) const {
  return std::max(exchange.last_progress, exchange.last_ask) + context_.settings.retry_interval;
}

// The peer's silence counts, not this exchange's: its chunks may be waiting for the link while
// others' go.
TimePoint ExchangeInitiator::suspend_at(const Exchange& exchange) const {
  const auto peer = peers_.find(exchange.peer);
  const TimePoint heard = peer == peers_.end() ? TimePoint{} : peer->second.last_progress;
  return std::max(exchange.last_progress, heard) + context_.settings.suspend_after;
}

void ExchangeInitiator::schedule(Entry& entry) {
  Exchange& exchange = entry.second;
  TimePoint at = Deadlines<Key>::kNever;
  if (!exchange.suspended) {
    at = std::min(ask_at(exchange), suspend_at(exchange));
  } else if (context_.reachable(exchange.peer)) {
    at = std::max(exchange.last_progress, exchange.last_ask) + exchange.backoff;
  }
  deadlines_.set(exchange.queued, entry.first, at);
}

void ExchangeInitiator::tick() {
  no_buffer_ = false;
  while (const auto key = deadlines_.due(context_.now)) {
    Entry& entry = *open_.find(*key);
    deadlines_.clear(entry.second.queued, *key);
    evaluate(entry);
  }
}

void ExchangeInitiator::evaluate(Entry& entry) {
  Exchange& exchange = entry.second;
  const TimePoint now = context_.now;
  if (exchange.suspended) {
    if (now >= std::max(exchange.last_progress, exchange.last_ask) + exchange.backoff) {
      exchange.backoff = std::min(2 * exchange.backoff, kBackoffMax);
      if (now >= exchange.last_progress + kLatePatience * context_.settings.suspend_after) {
        drop_late_result(exchange);
      }
      ask(entry);
    }
    return schedule(entry);
  }
  if (now >= suspend_at(exchange) || exchange.vain_asks >= kAsksMax) return suspend(entry);
  if (now >= ask_at(exchange)) {
    const bool waits = context_.sender.waiting(id_of(entry.first), schema::Stream::kProposal);
    if (waits) {
      exchange.last_ask = now;  // not sent in full yet: nothing to ask for
    } else {
      ask(entry);
    }
  }
  schedule(entry);
}

void ExchangeInitiator::suspend(Entry& entry) {
  Exchange& exchange = entry.second;
  const ExchangeId e = id_of(entry.first);
  ++context_.counters.suspended;
  ExchangeEvent event;
  event.kind = ExchangeEvent::Kind::kSuspended;
  event.e = e;
  event.peer = exchange.peer;
  event.fragment = exchange.fragment;
  context_.events.push_back(event);
  if (const auto peer = peers_.find(exchange.peer); peer != peers_.end()) {
    peer->second.silent = true;
  }
  if (!context_.sender.handed_over(e, schema::Stream::kProposal)) {
    // A chunk has never left, so it can never be committed: no need to remember it.
    context_.send(exchange.peer, schema::Aborted{e, schema::AbortReason::kWithdrawn});
    return close(entry.first);
  }
  make_suspended(entry);
  limit_suspended();
}

void ExchangeInitiator::make_suspended(Entry& entry) {
  Exchange& exchange = entry.second;
  context_.sender.close(id_of(entry.first), schema::Stream::kProposal);
  exchange.result.reset();
  exchange.chunks = ChunkCollector();
  exchange.suspended = true;
  exchange.last_ask = context_.now;
  exchange.backoff = 2 * context_.settings.retry_interval;
  suspended_[{exchange.peer, exchange.fragment}] = entry.first;
  open_bytes_ -= exchange.payload_bytes;
  free_fragment(exchange.fragment);
  schedule(entry);
}

// What arrived of a late result goes; the responder still has all of it.
void ExchangeInitiator::drop_late_result(Exchange& exchange) {
  if (!exchange.suspended || !exchange.result) return;
  late_bytes_ -= exchange.payload_bytes;
  exchange.result.reset();
  exchange.chunks = ChunkCollector();
}

void ExchangeInitiator::limit_suspended() {
  if (suspended_.size() <= kSuspendedMax) return;
  for (const auto& [key, exchange] : open_) {
    if (!exchange.suspended || context_.find_peer(exchange.peer) != nullptr) continue;
    return close(Key(key));
  }
}

void ExchangeInitiator::close(const Key& key_in) {
  const Key key = key_in;  // it may live in the entry
  const auto it = open_.find(key);
  Exchange& exchange = it->second;
  context_.sender.close(id_of(key), schema::Stream::kProposal);
  deadlines_.clear(exchange.queued, key);
  if (exchange.suspended) {
    suspended_.erase({exchange.peer, exchange.fragment});
    drop_late_result(exchange);
    no_buffer_ = false;
  } else {
    open_bytes_ -= exchange.payload_bytes;
    free_fragment(exchange.fragment);
  }
  open_.erase(it);
}

// ---- membership and the rest ----

void ExchangeInitiator::on_peers(const std::vector<Peer>& before) {
  const auto previous = [&before](const NodeId& id) -> const Peer* {
    const auto it =
        std::lower_bound(before.begin(), before.end(), id,
                         [](const Peer& peer, const NodeId& key) { return peer.id < key; });
    return it != before.end() && it->id == id ? &*it : nullptr;
  };
  if (partner_ && !context_.reachable(*partner_)) partner_.reset();
  std::vector<Key> keys;
  for (const auto& [key, exchange] : open_) keys.push_back(key);
  for (const Key& key : keys) {
    Entry& entry = *open_.find(key);
    const Peer* was = previous(entry.second.peer);
    const Peer* is = context_.find_peer(entry.second.peer);
    const bool restarted =
        was != nullptr && is != nullptr && boot_of(is->incarnation) > boot_of(was->incarnation);
    if (!entry.second.suspended && (is == nullptr || restarted)) {
      suspend(entry);
      if (!open_.contains(key)) continue;
    }
    if (!entry.second.suspended) continue;
    if (is == nullptr || restarted) drop_late_result(entry.second);
    const bool appeared = is != nullptr && is->connected && (was == nullptr || !was->connected);
    if (appeared || (restarted && is->connected)) {
      entry.second.backoff = 2 * context_.settings.retry_interval;
      ask(entry);
    }
    schedule(entry);
  }
  std::erase_if(peers_, [this](const auto& item) { return !context_.find_peer(item.first); });
}

void ExchangeInitiator::abandon() {
  granted_.assign(granted_.size(), false);
  wanting_.clear();
  while (!open_.empty()) {
    const Key key = open_.begin()->first;
    const NodeId peer = open_.begin()->second.peer;
    close(key);
    if (context_.find_peer(peer) != nullptr) {
      context_.send(peer, schema::Aborted{id_of(key), schema::AbortReason::kWithdrawn});
    }
  }
}

std::uint64_t ExchangeInitiator::lowest_open(Incarnation incarnation,
                                             std::uint64_t otherwise) const {
  const auto it = open_.lower_bound({incarnation, 0});
  return it != open_.end() && it->first.first == incarnation ? it->first.second : otherwise;
}

std::optional<ExchangeId> ExchangeInitiator::unanswered(const NodeId& peer,
                                                        FragmentIndex fragment) const {
  if (current_[fragment] == 0) return std::nullopt;
  const Key key{context_.settings.incarnation, current_[fragment]};
  const Exchange& exchange = open_.at(key);
  if (exchange.peer != peer || exchange.result) return std::nullopt;
  return id_of(key);
}

std::size_t ExchangeInitiator::held_entries() const {
  return open_.size() + suspended_.size() + peers_.size() + deadlines_.size() + wanting_.size();
}

std::vector<ExchangeInitiator::OpenId> ExchangeInitiator::open_ids() const {
  std::vector<OpenId> ids;
  for (const auto& [key, exchange] : open_) {
    ids.push_back({id_of(key), exchange.peer, exchange.fragment, exchange.codec});
  }
  return ids;
}

void ExchangeInitiator::restore(const std::vector<OpenId>& ids, std::uint64_t round) {
  round_ = round;
  for (const OpenId& id : ids) {
    const Key key{id.e.incarnation, id.e.sequence};
    Exchange& exchange = open_.try_emplace(key).first->second;
    exchange.peer = id.peer;
    exchange.fragment = id.fragment;
    exchange.codec = id.codec;
    exchange.payload_bytes = context_.store.payload_bytes(id.fragment, id.codec);
    exchange.suspended = true;
    exchange.backoff = 2 * context_.settings.retry_interval;
    suspended_[{id.peer, id.fragment}] = key;
  }
}

}  // namespace kith::gossip
