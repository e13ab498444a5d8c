// What the parts of an ExchangeMachine share: settings, what is known of the world, and where
// outputs collect. Thread: the machine's owner.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fault_point.h"
#include "base/ids.h"
#include "base/random.h"
#include "gossip/exchange/chunk_sender.h"
#include "gossip/exchange/exchange.h"
#include "gossip/exchange/fragment_store.h"

namespace kith::gossip {

using Peer = ExchangeMachine::Peer;

// The boot part of an incarnation, the whole where there is none.
inline std::uint64_t boot_of(Incarnation incarnation) {
  return incarnation >> 32 != 0 ? incarnation >> 32 : incarnation;
}

// How often each message with a fault point was queued since the last call.
struct SentPoints {
  std::size_t propose = 0, propose_chunk = 0, result = 0, ack = 0;
};

struct ExchangeContext {
  ExchangeContext(ExchangeSettings settings_in, FragmentStore& store_in, Random random_in,
                  PlantedFaults planted_in)
      : settings(settings_in),
        store(store_in),
        random(random_in),
        planted(planted_in),
        codec(settings_in.codec),
        max_lag(settings_in.max_lag),
        sender(settings_in.window_chunks) {}

  // constant
  const ExchangeSettings settings;
  FragmentStore& store;

  // the world
  Random random;
  PlantedFaults planted;
  CodecId codec;
  Step max_lag;
  TimePoint now;
  Step depth = 0;
  Step own_step = 0;
  bool active = false;
  bool draining = false;
  std::vector<Peer> peers;  // sorted by id, self excluded

  // outputs
  ChunkSender sender;
  std::vector<Outgoing> outgoing;
  std::vector<ExchangeEvent> events;
  ExchangeCounters counters;
  SentPoints sent;

  [[nodiscard]] const Peer* find_peer(const NodeId& id) const;
  // Listed and linked: worth sending to unasked.
  [[nodiscard]] bool reachable(const NodeId& id) const {
    const Peer* peer = find_peer(id);
    return peer != nullptr && peer->connected;
  }

  // settings.chunk_bytes, more only where a payload would have too many chunks.
  [[nodiscard]] std::uint32_t chunk_bytes_for(std::size_t payload_bytes) const {
    const std::size_t least =
        (payload_bytes + schema::kChunksPerPayloadMax - 1) / schema::kChunksPerPayloadMax;
    return static_cast<std::uint32_t>(std::max(settings.chunk_bytes, least));
  }

  void send(const NodeId& to, schema::Message message) {
    outgoing.push_back({to, std::move(message), {}});
  }
  void send_credit(const NodeId& to, const ExchangeId& e, schema::Stream stream,
                   const std::vector<std::uint64_t>& received) {
    send(to, schema::Credit{e, stream, received});
  }
  // A message that makes no sense from this peer.
  void invalid(const NodeId& from, const ExchangeId& e, FragmentIndex fragment = 0);
};

}  // namespace kith::gossip
