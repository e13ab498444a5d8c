#include "gossip/transfer/state_transfer_serve.h"

#include <algorithm>
#include <chrono>

namespace kith::gossip {
namespace {

constexpr schema::Stream kState = schema::Stream::kState;
// More than any well-behaved fetcher has open.
constexpr std::size_t kItemsPerFetcherMax = 8;
// A fetcher asks again each retry interval for what does not move.
constexpr int kUnwantedRetries = 3;
constexpr int kSoon = 4;  // what is not copied yet is there before a place is free

void busy(std::vector<Outgoing>& out, const NodeId& to, const ExchangeId& e, Duration wait) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(wait).count();
  out.push_back({to, schema::Busy{e, static_cast<std::uint32_t>(ms)}, {}});
}

void refuse(std::vector<Outgoing>& out, const NodeId& to, const ExchangeId& e,
            schema::AbortReason reason) {
  out.push_back({to, schema::Aborted{e, reason}, {}});
}

}  // namespace

void StateDonor::on_request(TimePoint now, const NodeId& from, const schema::StateRequest& message,
                            std::vector<Outgoing>& out) {
  if (message.e.initiator != from || from == settings_.self) return;
  if (message.run_digest != settings_.run_digest || message.schema_hash != settings_.schema_hash) {
    return refuse(out, from, message.e, schema::AbortReason::kMismatch);
  }
  if (!has_room_for(now, from)) return busy(out, from, message.e, settings_.retry_interval);
  Fetcher& fetcher = fetchers_[from];
  fetcher.last_sign = now;
  drop_unwanted(now, fetcher);
  if (const auto it = fetcher.items.find(message.e); it != fetcher.items.end()) {
    it->second.last_sign = now;
    out.push_back({from, it->second.header, {}});
    sender_.resend(message.e, kState);
  } else if (fetcher.items.size() >= kItemsPerFetcherMax) {
    busy(out, from, message.e, settings_.retry_interval);
  } else {
    serve(now, from, fetcher, message, out);
  }
  sender_.flush(out);
}

// A place is free, or held by somebody who has nothing open and has not asked for a while.
bool StateDonor::has_room_for(TimePoint now, const NodeId& from) {
  if (fetchers_.contains(from)) return true;
  tick(now);
  return fetchers_.size() < settings_.fetchers_max;
}

// What it asked for no more: its word of that was lost. Left open, it would fill the window for
// ever.
void StateDonor::drop_unwanted(TimePoint now, Fetcher& fetcher) {
  std::erase_if(fetcher.items, [&](const auto& entry) {
    const bool unwanted =
        now >= entry.second.last_sign + kUnwantedRetries * settings_.retry_interval;
    if (unwanted) sender_.close(entry.first, kState);
    return unwanted;
  });
}

void StateDonor::serve(TimePoint now, const NodeId& from, Fetcher& fetcher,
                       const schema::StateRequest& message, std::vector<Outgoing>& out) {
  auto item = source_.item({message.item, message.index, message.final_state});
  if (!item) {
    if (item.error().code == ErrorCode::kBusy) {
      return busy(out, from, message.e, settings_.retry_interval / kSoon);
    }
    const bool never = item.error().code == ErrorCode::kNotFound;
    return refuse(out, from, message.e,
                  never ? schema::AbortReason::kUnknown : schema::AbortReason::kNotReady);
  }
  const std::size_t least =
      (item->bytes.size() + schema::kChunksPerPayloadMax - 1) / schema::kChunksPerPayloadMax;
  schema::StateHeader header;
  header.e = message.e;
  header.item = message.item;
  header.index = message.index;
  header.payload_bytes = item->bytes.size();
  header.chunk_bytes = static_cast<std::uint32_t>(std::max(settings_.chunk_bytes, least));
  header.hash = item->hash;
  header.optimizer_pieces = item->optimizer_pieces;
  header.optimizer_step = item->optimizer_step;
  header.cluster_samples = item->cluster_samples;
  if (header.payload_bytes > 0 && header.chunk_bytes > schema::kChunkBytesMax) {
    return refuse(out, from, message.e, schema::AbortReason::kMismatch);  // cannot be cut
  }
  out.push_back({from, header, {}});
  if (header.payload_bytes == 0) return;  // the header is all of it
  fetcher.items.emplace(message.e, Served{header, now});
  sender_.open(from, message.e, kState, std::move(item->bytes), header.chunk_bytes);
}

void StateDonor::on_credit(TimePoint now, const NodeId& from, const schema::Credit& message,
                           std::vector<Outgoing>& out) {
  const auto it = fetchers_.find(from);
  if (it == fetchers_.end() || !it->second.items.contains(message.e)) return;
  it->second.last_sign = now;
  it->second.items.at(message.e).last_sign = now;
  sender_.credit(from, message.e, kState, message.received);
  if (sender_.complete(message.e, kState)) {
    sender_.close(message.e, kState);
    it->second.items.erase(message.e);
  }
  sender_.flush(out);
}

void StateDonor::on_withdrawn(const NodeId& from, const ExchangeId& e) {
  const auto it = fetchers_.find(from);
  if (it == fetchers_.end() || it->second.items.erase(e) == 0) return;
  sender_.close(e, kState);
}

void StateDonor::drop(Fetcher& fetcher) {
  for (const auto& [e, header] : fetcher.items) sender_.close(e, kState);
  fetcher.items.clear();
}

void StateDonor::peer_gone(const NodeId& peer) {
  const auto it = fetchers_.find(peer);
  if (it == fetchers_.end()) return;
  drop(it->second);
  fetchers_.erase(it);
}

TimePoint StateDonor::expiry(const Fetcher& fetcher) const {
  return fetcher.last_sign +
         (fetcher.items.empty() ? 2 * settings_.retry_interval : settings_.give_up_after);
}

void StateDonor::tick(TimePoint now) {
  for (auto it = fetchers_.begin(); it != fetchers_.end();) {
    if (expiry(it->second) > now) {
      ++it;
      continue;
    }
    drop(it->second);
    it = fetchers_.erase(it);
  }
}

TimePoint StateDonor::next_deadline() const {
  TimePoint next = TimePoint::max();
  for (const auto& [id, fetcher] : fetchers_) next = std::min(next, expiry(fetcher));
  return next;
}

std::size_t StateDonor::open_items() const {
  std::size_t sum = 0;
  for (const auto& [id, fetcher] : fetchers_) sum += fetcher.items.size();
  return sum;
}

}  // namespace kith::gossip
