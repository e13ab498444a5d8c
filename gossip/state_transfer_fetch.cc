#include "gossip/state_transfer_fetch.h"

#include <algorithm>
#include <chrono>

#include "base/hash.h"

namespace kith::gossip {
namespace {

constexpr schema::Stream kState = schema::Stream::kState;
constexpr std::uint32_t kBusyWaitMaxMs = 10'000;

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

Hash256 hash_of(const Payload& payload) {
  Hasher hasher;
  for (const Slice& piece : payload.pieces) hasher.add(piece.bytes());
  return hasher.finish();
}

}  // namespace

void StateFetcher::begin(TimePoint now, const NodeId& donor, std::vector<ItemKey> wanted,
                         std::map<ItemKey, Hash256> expected, std::vector<Outgoing>& out) {
  cancel(out);
  donor_ = donor;
  wanted_.assign(wanted.begin(), wanted.end());
  expected_ = std::move(expected);
  fetched_.clear();
  end_.reset();
  last_progress_ = now;
  request_more(now, out);
}

void StateFetcher::cancel(std::vector<Outgoing>& out) {
  for (const auto& [e, item] : open_) {
    out.push_back({*donor_, schema::Aborted{e, schema::AbortReason::kWithdrawn}, {}});
  }
  open_.clear();
  wanted_.clear();
  expected_.clear();
  donor_.reset();
}

void StateFetcher::end(Status status, std::vector<Outgoing>& out) {
  cancel(out);
  end_ = std::move(status);
}

void StateFetcher::request_more(TimePoint now, std::vector<Outgoing>& out) {
  while (!wanted_.empty() && open_.size() < std::max(1U, settings_.requests_in_flight)) {
    const ExchangeId e{settings_.self, settings_.incarnation, kTransferBit | next_sequence_++};
    Item& item = open_[e];
    item.key = wanted_.front();
    item.ask_at = now + settings_.retry_interval;
    wanted_.pop_front();
    request(e, item, out);
  }
  if (open_.empty() && wanted_.empty()) end({}, out);
}

// Before a repeated question, what is here already: the donor takes it at its word.
void StateFetcher::request(const ExchangeId& e, const Item& item, std::vector<Outgoing>& out) {
  if (item.header) {
    out.push_back({*donor_, schema::Credit{e, kState, item.chunks.received()}, {}});
  }
  schema::StateRequest message;
  message.e = e;
  message.item = item.key.item;
  message.index = item.key.index;
  message.final_state = item.key.final_state;
  message.run_digest = settings_.run_digest;
  message.schema_hash = settings_.schema_hash;
  out.push_back({*donor_, message, {}});
}

StateFetcher::ItemMap::iterator StateFetcher::find(const NodeId& from, const ExchangeId& e) {
  return donor_ && *donor_ == from ? open_.find(e) : open_.end();
}

void StateFetcher::progress(TimePoint now, Item& item) {
  last_progress_ = now;
  item.ask_at = now + settings_.retry_interval;
}

void StateFetcher::on_header(TimePoint now, const NodeId& from, const schema::StateHeader& message,
                             std::vector<Outgoing>& out) {
  const auto it = find(from, message.e);
  if (it == open_.end()) return;
  Item& item = it->second;
  if (message.item != item.key.item || message.index != item.key.index) return;
  if (message.payload_bytes > 0 && !is_sane_chunking(message.payload_bytes, message.chunk_bytes)) {
    return;
  }
  if (const auto want = expected_.find(item.key);
      want != expected_.end() && want->second != message.hash) {
    return end(fail(ErrorCode::kCorrupt, name_of(item.key) + " of " + from.short_hex() +
                                             " is not the declared one (hash " +
                                             message.hash.hex().substr(0, 12) + ", declared " +
                                             want->second.hex().substr(0, 12) + ")"),
               out);
  }
  // A donor that was asked anew may have cut another item meanwhile: pieces of two must not mix.
  const bool same = item.header && item.header->hash == message.hash &&
                    item.header->payload_bytes == message.payload_bytes &&
                    item.header->chunk_bytes == message.chunk_bytes;
  if (same) return progress(now, item);
  item.header = message;
  item.chunks = message.payload_bytes == 0
                    ? ChunkCollector()
                    : ChunkCollector(message.payload_bytes, message.chunk_bytes);
  progress(now, item);
  if (item.chunks.complete()) complete(now, it, out);
}

void StateFetcher::on_chunk(TimePoint now, const NodeId& from, const schema::Chunk& message,
                            const Slice& payload, std::vector<Outgoing>& out) {
  const auto it = find(from, message.e);
  if (it == open_.end() || !it->second.header) return;
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
  StateTransfer::Fetched fetched{item.key, item.chunks.release(), *item.header};
  if (hash_of(fetched.bytes) != item.header->hash) {
    return end(fail(ErrorCode::kCorrupt, name_of(item.key) + " of " + donor_->short_hex() +
                                             " does not match its own hash"),
               out);
  }
  fetched_.push_back(std::move(fetched));
  request_more(now, out);
}

void StateFetcher::on_busy(TimePoint now, const NodeId& from, const schema::Busy& message) {
  const auto it = find(from, message.e);
  if (it == open_.end()) return;
  const Duration wait = std::chrono::milliseconds(std::min(message.retry_after_ms, kBusyWaitMaxMs));
  it->second.ask_at = now + std::max(wait, settings_.retry_interval);
}

void StateFetcher::on_aborted(const NodeId& from, const schema::Aborted& message,
                              std::vector<Outgoing>& out) {
  const auto it = find(from, message.e);
  if (it == open_.end()) return;
  const bool absent = message.reason == schema::AbortReason::kUnknown;
  const std::string text = "no " + name_of(it->second.key) + " from " + from.short_hex() + ": " +
                           text_of(message.reason);
  open_.erase(it);
  end(fail(absent ? ErrorCode::kNotFound : ErrorCode::kFailed, text), out);
}

void StateFetcher::peer_gone(const NodeId& peer, std::vector<Outgoing>& out) {
  if (!donor_ || *donor_ != peer) return;
  open_.clear();  // nobody to tell
  end(fail("the donor " + peer.short_hex() + " is gone"), out);
}

void StateFetcher::tick(TimePoint now, std::vector<Outgoing>& out) {
  if (!donor_) return;
  if (now >= last_progress_ + settings_.give_up_after) {
    const double seconds = to_seconds(now - last_progress_);
    return end(fail("the donor " + donor_->short_hex() + " sent nothing for " +
                    std::to_string(static_cast<int>(seconds)) + " s"),
               out);
  }
  for (auto& [e, item] : open_) {
    if (item.ask_at > now) continue;
    item.ask_at = now + settings_.retry_interval;
    request(e, item, out);
  }
}

TimePoint StateFetcher::next_deadline() const {
  if (!donor_) return TimePoint::max();
  TimePoint next = last_progress_ + settings_.give_up_after;
  for (const auto& [e, item] : open_) next = std::min(next, item.ask_at);
  return next;
}

}  // namespace kith::gossip
