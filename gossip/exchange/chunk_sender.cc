#include "gossip/exchange/chunk_sender.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace kith::gossip {

void ChunkSender::open(const NodeId& to, const ExchangeId& e, schema::Stream stream, Slice payload,
                       std::uint32_t chunk_bytes) {
  KITH_CHECK(is_sane_chunking(payload.size(), chunk_bytes),
             "a stream of " + std::to_string(payload.size()) + " bytes in chunks of " +
                 std::to_string(chunk_bytes));
  const Key key{e, stream};
  auto [it, fresh] = streams_.try_emplace(key);
  KITH_CHECK(fresh, "a stream is opened once");
  OutStream& out = it->second;
  const std::uint32_t count = chunk_count(payload.size(), chunk_bytes);
  out.to = to;
  out.payload = std::move(payload);
  out.chunk_bytes = chunk_bytes;
  out.acknowledged = out.last_credit = out.under_way = ChunkBits(count);
  ++links_[to].streams;
  enqueue(key, out);
}

bool ChunkSender::close(const ExchangeId& e, schema::Stream stream) {
  const auto it = streams_.find({e, stream});
  if (it == streams_.end()) return false;
  const auto link = links_.find(it->second.to);
  give_back(link->second, it->second);
  mark_dirty(it->second.to, link->second);
  --link->second.streams;
  streams_.erase(it);
  return true;
}

void ChunkSender::pause(const ExchangeId& e, schema::Stream stream) {
  const auto it = streams_.find({e, stream});
  if (it == streams_.end() || it->second.paused) return;
  Link& link = links_.at(it->second.to);
  give_back(link, it->second);
  it->second.paused = true;
  mark_dirty(it->second.to, link);
}

void ChunkSender::resend(const ExchangeId& e, schema::Stream stream) {
  const auto it = streams_.find({e, stream});
  if (it == streams_.end()) return;
  OutStream& out = it->second;
  give_back(links_.at(out.to), out);
  out.acknowledged = out.last_credit;
  out.next = 0;
  out.paused = false;
  enqueue(it->first, out);
}

bool ChunkSender::credit(const NodeId& from, const ExchangeId& e, schema::Stream stream,
                         std::span<const std::uint64_t> received) {
  const auto it = streams_.find({e, stream});
  if (it == streams_.end() || it->second.to != from) return false;
  OutStream& out = it->second;
  out.last_credit.assign(received);
  Link& link = links_.at(from);
  const std::uint32_t news = out.acknowledged.merge(out.last_credit);
  link.outstanding -= out.under_way.subtract(out.last_credit);
  if (news > 0) mark_dirty(from, link);
  return news > 0;
}

bool ChunkSender::has(const ExchangeId& e, schema::Stream stream) const {
  return streams_.contains({e, stream});
}

bool ChunkSender::paused(const ExchangeId& e, schema::Stream stream) const {
  const auto it = streams_.find({e, stream});
  return it != streams_.end() && it->second.paused;
}

bool ChunkSender::waiting(const ExchangeId& e, schema::Stream stream) const {
  const auto it = streams_.find({e, stream});
  if (it == streams_.end() || it->second.paused) return false;
  return it->second.next < it->second.acknowledged.size() && it->second.under_way.count_set() == 0;
}

bool ChunkSender::complete(const ExchangeId& e, schema::Stream stream) const {
  const auto it = streams_.find({e, stream});
  return it != streams_.end() &&
         it->second.acknowledged.count_set() == it->second.acknowledged.size();
}

bool ChunkSender::handed_over(const ExchangeId& e, schema::Stream stream) const {
  const auto it = streams_.find({e, stream});
  return it == streams_.end() || it->second.first_unsent == it->second.acknowledged.size();
}

unsigned ChunkSender::outstanding(const NodeId& to) const {
  const auto it = links_.find(to);
  return it == links_.end() ? 0 : it->second.outstanding;
}

void ChunkSender::enqueue(const Key& key, OutStream& stream) {
  Link& link = links_.at(stream.to);
  if (!stream.queued) {
    stream.queued = true;
    (key.stream == schema::Stream::kProposal ? link.proposals : link.results).push_back(key);
  }
  mark_dirty(stream.to, link);
}

void ChunkSender::mark_dirty(const NodeId& to, Link& link) {
  if (link.dirty) return;
  link.dirty = true;
  dirty_.push_back(to);
}

void ChunkSender::give_back(Link& link, OutStream& stream) {
  link.outstanding -= stream.under_way.count_set();
  stream.under_way.clear();
}

ChunkSender::Flushed ChunkSender::flush(std::vector<Outgoing>& out) {
  Flushed flushed;
  for (const NodeId& to : dirty_) {
    const auto link = links_.find(to);
    link->second.dirty = false;
    flush_link(link->second, out, flushed);
    if (link->second.streams == 0) links_.erase(link);
  }
  dirty_.clear();
  return flushed;
}

void ChunkSender::flush_link(Link& link, std::vector<Outgoing>& out, Flushed& flushed) {
  while (link.outstanding < window_) {
    std::deque<Key>* queue = &link.results;
    OutStream* stream = front(*queue);
    if (stream == nullptr) {
      queue = &link.proposals;
      stream = front(*queue);
    }
    if (stream == nullptr) return;
    ++link.outstanding;
    send_next(queue->front(), *stream, out, flushed);
  }
}

// The first stream of the queue that has a chunk to send; closed, paused and exhausted ones leave
// the queue.
ChunkSender::OutStream* ChunkSender::front(std::deque<Key>& queue) {
  while (!queue.empty()) {
    const auto it = streams_.find(queue.front());
    if (it != streams_.end()) {
      skip_settled(it->second);
      if (!it->second.paused && it->second.next < it->second.acknowledged.size()) {
        return &it->second;
      }
      it->second.queued = false;
    }
    queue.pop_front();
  }
  return nullptr;
}

void ChunkSender::skip_settled(OutStream& stream) {
  while (stream.next < stream.acknowledged.size() &&
         (stream.acknowledged.test(stream.next) || stream.under_way.test(stream.next))) {
    ++stream.next;
  }
}

void ChunkSender::send_next(const Key& key, OutStream& stream, std::vector<Outgoing>& out,
                            Flushed& flushed) {
  const std::uint32_t index = stream.next++;
  stream.under_way.set(index);
  stream.first_unsent = std::max(stream.first_unsent, index + 1);
  const std::size_t begin = std::size_t{index} * stream.chunk_bytes;
  const std::size_t length = chunk_size(stream.payload.size(), stream.chunk_bytes, index);
  out.push_back(
      {stream.to, schema::Chunk{key.e, key.stream, index}, stream.payload.sub(begin, length)});
  (key.stream == schema::Stream::kProposal ? flushed.proposal_chunks : flushed.other_chunks)++;
  flushed.bytes += length;
  skip_settled(stream);
}

}  // namespace kith::gossip
