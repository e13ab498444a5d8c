#include "node/mesh/mesh_core.h"

#include <sys/resource.h>
#include <zmq.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "node/mesh/cluster_key.h"
#include "node/mesh/mesh_schedule.h"
#include "schema/codec.h"

namespace kith::node {
namespace {

constexpr int kRetryMaxIntervals = 15;
// A DEALER takes four file descriptors: its mailbox, its monitor's two, its TCP connection.
constexpr std::size_t kFdsPerLink = 4;
constexpr std::size_t kFdsReserved = 64;
constexpr std::size_t kPlanes = 2;

// links_max, or what the limit on open files leaves for this plane.
MeshSettings fit_to_limits(MeshSettings settings) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return settings;
  const auto files = static_cast<std::size_t>(limit.rlim_cur);
  // Half of each plane's share is for links that others dial.
  const std::size_t room =
      files > kFdsReserved ? (files - kFdsReserved) / (kPlanes * 2 * kFdsPerLink) : 0;
  settings.links_max =
      std::clamp<std::size_t>(settings.links_max, 1, std::max<std::size_t>(room, 1));
  return settings;
}

SocketSettings make_socket_settings(const MeshSettings& settings) {
  SocketSettings sockets;
  sockets.hwm = settings.send_hwm;
  sockets.message_bytes_max = settings.message_bytes_max;
  sockets.tcp_buffer_bytes = settings.plane == schema::Plane::kBulk ? bulk_buffer_bytes() : 0;
  sockets.curve = settings.key != nullptr ? &settings.key->curve() : nullptr;
  return sockets;
}

}  // namespace

MeshSettings plane_settings(schema::Plane plane) {
  MeshSettings settings;
  settings.plane = plane;
  if (plane == schema::Plane::kControl) return settings;
  settings.send_hwm = 64;
  settings.message_bytes_max = schema::kChunkBytesMax + 4096;
  return settings;
}

bool is_handshake(const schema::Message& message) {
  return std::holds_alternative<schema::Hello>(message) ||
         std::holds_alternative<schema::Challenge>(message) ||
         std::holds_alternative<schema::Welcome>(message) ||
         std::holds_alternative<schema::Reject>(message);
}

MeshCore::MeshCore(MeshSettings mesh_settings, const Identity& own_identity,
                   HandshakePolicy& handshake_policy, const Clock& system_clock, Random randomness,
                   LogSink& sink)
    : settings(fit_to_limits(std::move(mesh_settings))),
      socket_settings(make_socket_settings(settings)),
      identity(own_identity),
      policy(handshake_policy),
      clock(system_clock),
      log(sink),
      retry_min(settings.probe_interval),
      retry_max(settings.probe_interval * kRetryMaxIntervals),
      context(settings.io_threads, static_cast<int>(settings.links_max) * 3 + 64),
      random(std::move(randomness)),
      guard(2 * static_cast<std::uint64_t>(settings.send_hwm) * settings.message_bytes_max) {
  if (settings.plane != schema::Plane::kBulk) return;
  keep_message_memory();
  const ThroughputScope scope;
  static_cast<void>(ZmqSocket::make(context, ZMQ_PAIR));  // the first socket starts the I/O threads
}

void MeshCore::bind_link(const LinkKey& key, PeerUp up) {
  up.first = links.bind(key, up.id);
  log.log(LogLevel::kDebug, "mesh", "link up",
          {{"peer", up.id.short_hex()},
           {"plane", settings.plane == schema::Plane::kBulk ? "bulk" : "control"}});
  events.emplace_back(std::move(up));
}

void MeshCore::unbind_link(const LinkKey& key) {
  const auto gone = links.unbind(key);
  if (!gone) return;
  log.log(LogLevel::kDebug, "mesh", "link down",
          {{"peer", gone->short_hex()},
           {"plane", settings.plane == schema::Plane::kBulk ? "bulk" : "control"}});
  events.emplace_back(PeerDown{*gone});
}

std::optional<schema::Message> MeshCore::decode(const Incoming& incoming) {
  ++counters.messages_received;
  counters.bytes_received += incoming.byte_count();
  memory.received(incoming.payload.bytes().size());
  auto message = schema::decode(incoming.header.bytes());
  if (message) {
    const auto planes = schema::planes_of(*message);
    const bool here = settings.plane == schema::Plane::kBulk ? planes.bulk : planes.control;
    const bool payload_fits =
        std::holds_alternative<schema::Chunk>(*message) || incoming.payload.bytes().empty();
    if (here && payload_fits) return std::move(*message);
  }
  count_malformed();
  return std::nullopt;
}

void MeshCore::deliver(const NodeId& from, schema::Message message, Frame payload) {
  events.emplace_back(Received{from, std::move(message), std::move(payload).into_slice()});
}

SendResult MeshCore::send(const ZmqSocket& socket, const std::string* routing_id,
                          const schema::Message& message, const Slice& payload) {
  const auto header = schema::encode(message);
  KITH_CHECK(
      header.size() <= settings.message_bytes_max && payload.size() <= settings.message_bytes_max,
      std::string(schema::name_of(message)) + " fits the plane's largest frame");
  const auto result = send_message(socket.get(), routing_id, header, payload);
  if (result == SendResult::kSent) {
    ++counters.messages_sent;
    counters.bytes_sent += header.size() + payload.size();
  } else if (result == SendResult::kNoRoom) {
    ++counters.dropped_no_room;
  }
  return result;
}

}  // namespace kith::node
