#include "gossip/transfer/state_transfer_fetch.h"

#include <algorithm>
#include <chrono>

#include "base/hash.h"

namespace kith::gossip {
namespace {

using Loss = DonorPool::Loss;

constexpr schema::Stream kState = schema::Stream::kState;
constexpr int kSoon = 4;  // a safe point comes sooner than a place
constexpr std::uint32_t kBusyWaitMaxMs = 10'000;
constexpr int kSilentRetries = 3;  // then others are asked for what a silent donor has open

std::string name_of(const ItemKey& key) {
  const std::string index = std::to_string(key.index);
  const std::string tail = key.final_state ? " of the final state" : "";
  switch (key.item) {
    case schema::StateItem::kManifest:
      return "manifest" + tail;
    case schema::StateItem::kFragment:
      return "fragment " + index + tail;
    case schema::StateItem::kIntegers:
      return "integer buffers" + tail;
    case schema::StateItem::kOptimizer:
      return "optimiser piece " + index + tail;
  }
  return "item " + index + tail;
}

const char* text_of(schema::AbortReason reason) {
  switch (reason) {
    case schema::AbortReason::kUnknown:
      return "it does not have it";
    case schema::AbortReason::kMismatch:
      return "it belongs to another run or model";
    case schema::AbortReason::kNotReady:
      return "it is not ready";
    default:
      return "it refused";
  }
}

std::string bytes_text(std::uint64_t min, std::uint64_t max) {
  return min == max ? std::to_string(min) : std::to_string(min) + " to " + std::to_string(max);
}

Error corrupt(std::string text) { return {ErrorCode::kCorrupt, std::move(text)}; }

Hash256 hash_of(const Payload& payload) {
  Hasher hasher;
  for (const Slice& piece : payload.pieces) hasher.add(piece.bytes());
  return hasher.finish();
}

}  // namespace

void StateFetcher::begin(TimePoint now, const std::vector<NodeId>& donors, FetchOrder order,
                         std::vector<Outgoing>& out) {
  cancel(out);
  active_ = true;
  now_ = last_progress_ = now;
  busy_heard_ = false;
  fetched_.clear();
  end_.reset();
  pool_.reset(donors);
  order_ = std::move(order);
  std::vector<ItemKey> moments;
  for (const ItemKey& key : order_.wanted) {
    if (MomentsQueue::is_part(key)) {
      moments.push_back(key);
    } else {
      queue_.push_back(key);
    }
  }
  moments_.begin(std::move(moments));
  if (pool_.empty() && !order_.wanted.empty()) return end(pool_.verdict(), out);
  request_more(now, out);
}

void StateFetcher::cancel(std::vector<Outgoing>& out) {
  for (const auto& [e, item] : open_) {
    out.push_back({item.donor, schema::Aborted{e, schema::AbortReason::kWithdrawn}, {}});
  }
  active_ = false;
  open_.clear();
  queue_.clear();
  moments_.clear();
}

void StateFetcher::end(Status status, std::vector<Outgoing>& out) {
  cancel(out);
  end_ = std::move(status);
}

// ---- asking

void StateFetcher::request_more(TimePoint now, std::vector<Outgoing>& out) {
  if (!active_) return;
  while (const auto next = next_request(now)) open(now, next->first, next->second, out);
  if (open_.empty() && queue_.empty() && !moments_.pending()) end({}, out);
}

// Moments first: the donor copies them at its next safe point, while fragments travel.
std::optional<std::pair<NodeId, ItemKey>> StateFetcher::next_request(TimePoint now) {
  if (moments_.pending()) {
    pin_moments(now);
    if (moments_.donor() && moments_.may_ask(now) && pool_.can_take(now, *moments_.donor())) {
      return std::pair(*moments_.donor(), moments_.pop());
    }
  }
  if (queue_.empty()) return std::nullopt;
  const auto donor = pool_.next(now);
  if (!donor) return std::nullopt;
  const ItemKey key = queue_.front();
  queue_.pop_front();
  return std::pair(*donor, key);
}

// Whoever has answered already has a place for us; if there is nothing else to ask for, anybody.
void StateFetcher::pin_moments(TimePoint now) {
  if (moments_.donor()) return;
  auto donor = pool_.next_answered(now);
  if (!donor && queue_.empty() && open_.empty()) donor = pool_.next(now);
  if (donor) moments_.pin(now, *donor);
}

void StateFetcher::open(TimePoint now, const NodeId& donor, const ItemKey& key,
                        std::vector<Outgoing>& out) {
  const ExchangeId e{settings_.self, settings_.incarnation, kTransferBit | next_sequence_++};
  Item& item = open_[e];
  item.key = key;
  item.donor = donor;
  item.ask_at = now + settings_.retry_interval;
  pool_.opened(now, donor);
  ask(e, item, out);
}

// Before a repeated question, what is here already: the donor takes it at its word.
void StateFetcher::ask(const ExchangeId& e, const Item& item, std::vector<Outgoing>& out) {
  if (item.header) {
    out.push_back({item.donor, schema::Credit{e, kState, item.chunks.received()}, {}});
  }
  schema::StateRequest message;
  message.e = e;
  message.item = item.key.item;
  message.index = item.key.index;
  message.final_state = item.key.final_state;
  message.run_digest = settings_.run_digest;
  message.schema_hash = settings_.schema_hash;
  out.push_back({item.donor, message, {}});
}

// ---- receiving

StateFetcher::ItemMap::iterator StateFetcher::find(const NodeId& from, const ExchangeId& e) {
  const auto it = open_.find(e);
  return it != open_.end() && it->second.donor == from ? it : open_.end();
}

// Somebody goes on giving what we no longer want: our word of that was lost, and his window is full
// of it.
void StateFetcher::disclaim(const NodeId& to, const ExchangeId& e,
                            std::vector<Outgoing>& out) const {
  if (e.initiator != settings_.self) return;
  out.push_back({to, schema::Aborted{e, schema::AbortReason::kWithdrawn}, {}});
}

void StateFetcher::progress(TimePoint now, Item& item) {
  last_progress_ = now;
  busy_heard_ = false;
  item.ask_at = now + settings_.retry_interval;
  pool_.answered(now, item.donor);
}

// What is wrong with an item can be seen before its bytes come.
std::optional<Error> StateFetcher::objection(const Item& item,
                                             const schema::StateHeader& header) const {
  const std::string what = name_of(item.key) + " of " + item.donor.short_hex();
  const auto want = order_.expected.find(item.key);
  if (want != order_.expected.end() && want->second.hash && *want->second.hash != header.hash) {
    return corrupt(what + " is not the declared one (hash " + header.hash.hex().substr(0, 12) +
                   ", declared " + want->second.hash->hex().substr(0, 12) + ")");
  }
  Expected sizes = want == order_.expected.end() ? Expected{} : want->second;
  const bool piece = item.key.item == schema::StateItem::kOptimizer;
  if (piece) sizes.bytes_max = std::min(sizes.bytes_max, order_.optimizer_piece_bytes_max);
  if (header.payload_bytes < sizes.bytes_min || header.payload_bytes > sizes.bytes_max) {
    return corrupt(what + " is said to have " + std::to_string(header.payload_bytes) +
                   " bytes, expected " + bytes_text(sizes.bytes_min, sizes.bytes_max));
  }
  if (order_.optimizer_pieces_max > 0 && header.optimizer_pieces > order_.optimizer_pieces_max) {
    return corrupt(what + " announces " + std::to_string(header.optimizer_pieces) +
                   " optimiser pieces, more than " + std::to_string(order_.optimizer_pieces_max));
  }
  return std::nullopt;
}

void StateFetcher::on_header(TimePoint now, const NodeId& from, const schema::StateHeader& message,
                             std::vector<Outgoing>& out) {
  const auto it = find(from, message.e);
  if (it == open_.end()) return disclaim(from, message.e, out);
  now_ = now;
  Item& item = it->second;
  if (message.item != item.key.item || message.index != item.key.index) return;
  if (auto error = objection(item, message)) {
    return drop(now, from, std::move(*error), Loss::kForGood, Tell::kYes, out);
  }
  if (message.payload_bytes > 0 && !is_sane_chunking(message.payload_bytes, message.chunk_bytes)) {
    return;
  }
  if (MomentsQueue::is_part(item.key) && !moments_.same_image(message)) {
    return restart_moments(now, from, out);
  }
  // A donor that was asked anew may have cut another item meanwhile: pieces of two must not mix.
  const bool same = item.header && item.header->hash == message.hash &&
                    item.header->payload_bytes == message.payload_bytes &&
                    item.header->chunk_bytes == message.chunk_bytes;
  if (!same) {
    item.header = message;
    item.chunks = message.payload_bytes == 0
                      ? ChunkCollector()
                      : ChunkCollector(message.payload_bytes, message.chunk_bytes);
  }
  progress(now, item);
  if (item.chunks.complete()) return complete(now, it, out);
  request_more(now, out);  // it has answered: it may get a second item, and the moments
}

void StateFetcher::on_chunk(TimePoint now, const NodeId& from, const schema::Chunk& message,
                            const Slice& payload, std::vector<Outgoing>& out) {
  const auto it = find(from, message.e);
  if (it == open_.end()) return disclaim(from, message.e, out);
  if (!it->second.header) return;
  now_ = now;
  Item& item = it->second;
  const auto taken = item.chunks.take(message.index, payload);
  if (taken == ChunkCollector::Take::kInvalid) return;
  if (taken == ChunkCollector::Take::kTaken) progress(now, item);
  out.push_back({from, schema::Credit{message.e, kState, item.chunks.received()}, {}});
  if (item.chunks.complete()) complete(now, it, out);
}

void StateFetcher::complete(TimePoint now, ItemMap::iterator it, std::vector<Outgoing>& out) {
  Item item = std::move(it->second);
  open_.erase(it);
  pool_.closed(item.donor);
  StateTransfer::Fetched fetched{item.key, item.chunks.release(), *item.header, item.donor};
  if (hash_of(fetched.bytes) != item.header->hash) {
    put_back(item.key);
    return drop(now, item.donor,
                corrupt(name_of(item.key) + " of " + item.donor.short_hex() +
                        " does not match its own hash"),
                Loss::kForGood, Tell::kYes, out);
  }
  fetched_.push_back(std::move(fetched));
  if (order_.optimizer_pieces_max > 0 && item.key.item == schema::StateItem::kIntegers &&
      !item.key.final_state) {
    moments_.add_pieces(item.header->optimizer_pieces);
  }
  request_more(now, out);
}

// A place is not free, or the moments are not copied yet: then the same donor has them soon.
void StateFetcher::on_busy(TimePoint now, const NodeId& from, const schema::Busy& message,
                           std::vector<Outgoing>& out) {
  const auto it = find(from, message.e);
  if (it == open_.end()) return;
  now_ = now;
  busy_heard_ = true;
  const ItemKey key = it->second.key;
  const Duration wait = std::chrono::milliseconds(std::min(message.retry_after_ms, kBusyWaitMaxMs));
  open_.erase(it);
  pool_.closed(from);
  put_back(key);
  if (MomentsQueue::is_part(key) && (pool_.has_answered(from) || moments_.started())) {
    moments_.wait(now + std::max(wait, settings_.retry_interval / kSoon));
  } else {
    pool_.rest(now, from, wait);
    if (MomentsQueue::is_part(key)) moments_.restart(true);
  }
  request_more(now, out);
}

void StateFetcher::on_aborted(TimePoint now, const NodeId& from, const schema::Aborted& message,
                              std::vector<Outgoing>& out) {
  const auto it = find(from, message.e);
  if (it == open_.end()) return;
  now_ = now;
  const bool absent = message.reason == schema::AbortReason::kUnknown;
  const std::string text = "no " + name_of(it->second.key) + " from " + from.short_hex() + ": " +
                           text_of(message.reason);
  put_back(it->second.key);
  open_.erase(it);
  pool_.closed(from);
  drop(now, from, Error{absent ? ErrorCode::kNotFound : ErrorCode::kFailed, text}, Loss::kForGood,
       Tell::kYes, out);
}

}  // namespace kith::gossip
