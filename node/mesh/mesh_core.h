// What the two halves of a Mesh, dialler and listener, share: settings, counters, the table of
// links, and the queue of events. Not for users of the Mesh. Thread: the Mesh's owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "node/mesh/mesh.h"
#include "node/mesh/mesh_frames.h"
#include "node/mesh/mesh_guard.h"
#include "node/mesh/mesh_links.h"
#include "node/mesh/mesh_memory.h"
#include "node/mesh/mesh_socket.h"

namespace kith::node {

struct MeshCore {
  MeshCore(MeshSettings mesh_settings, const Identity& own_identity,
           HandshakePolicy& handshake_policy, const Clock& system_clock, Random randomness,
           LogSink& sink);

  // constant after construction
  const MeshSettings settings;
  const SocketSettings socket_settings;
  const Identity& identity;
  HandshakePolicy& policy;
  const Clock& clock;
  LogSink& log;
  const Duration retry_min, retry_max;  // of greetings and look-ups
  ZmqContext context;

  Random random;
  LinkTable links;
  FloodGuard guard;
  MemoryKeeper memory;
  MeshCounters counters;
  std::vector<MeshEvent> events;

  void bind_link(const LinkKey& key, PeerUp up);
  void unbind_link(const LinkKey& key);
  // Counts, decodes and checks the form; nullopt: dropped.
  std::optional<schema::Message> decode(const Incoming& incoming);
  void count_malformed() { ++counters.dropped_malformed; }
  void deliver(const NodeId& from, schema::Message message, Frame payload);
  SendResult send(const ZmqSocket& socket, const std::string* routing_id,
                  const schema::Message& message, const Slice& payload = {});
  // `base` times 0.75 to 1.25, so that nodes that started together do not stay in step.
  Duration jittered(Duration base) {
    return from_seconds(to_seconds(base) * random.uniform(0.75, 1.25));
  }

  static constexpr int kBatchMessages =
      64;  // taken from one socket before the others get their turn
};

// Handshake messages are the Mesh's own; everything else is for its user.
bool is_handshake(const schema::Message& message);

}  // namespace kith::node
