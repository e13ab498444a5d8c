// Mesh: one plane of authenticated message links over ZeroMQ: a bound ROUTER, one DEALER per peer
// that this node talks to first, and the handshake HELLO / CHALLENGE / HELLO / WELCOME on every
// connection, after which messages have a sender.
//
// What comes off a socket is hostile until the handshake has bound the connection to a NodeId:
// anything else from an unbound connection is dropped and counted. Answers go back through the
// connection that the question came by. Sends never block: false means "no link or no room now".
// ZeroMQ delivers at most once: true means "handed over", no more. A connection that breaks is made
// again by the side that dialled, and the handshake is repeated on it, since the process at the
// other end may be a new one. Timers: greetings and look-ups are repeated after probe_interval,
// rising twofold with jitter to 15 times that. Thread: one owner. Two Meshes (control, bulk) live
// in separate ZeroMQ contexts and threads (design: wire and transport).
// The owner of a bulk mesh is put into the batch scheduling class at its first poll
// (mesh_schedule.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/random.h"
#include "base/result.h"
#include "node/identity/identity.h"
#include "schema/messages.h"

namespace kith::node {

// 32 secret bytes shared by a cluster; prints as "[redacted]" and is locked in memory.
class ClusterKey;

struct MeshSettings {
  schema::Plane plane = schema::Plane::kControl;
  std::string listen;               // host:port, [v6]:port; port 0 = any
  const ClusterKey* key = nullptr;  // null: no encryption (loopback only, or --insecure)
  Duration probe_interval = std::chrono::milliseconds(200);
  std::size_t links_max = 512;  // DEALERs; least recently used ones are closed above it
  int send_hwm = 256;           // messages; 64 on bulk
  std::size_t message_bytes_max = 64 * 1024;  // per frame; 1 MiB + 4 KiB on bulk
  int io_threads = 1;
  // How names are looked up, on threads of its own; empty: the system's resolver. Tests bring
  // another.
  std::function<Result<std::vector<std::string>>(const std::string& host)> lookup;
};
// What a plane needs: the above for control; on bulk fewer and larger messages.
MeshSettings plane_settings(schema::Plane plane);

// What the daemon decides about handshakes. Called on the Mesh's thread.
class HandshakePolicy {
 public:
  virtual ~HandshakePolicy() = default;
  virtual schema::Hello make_hello(schema::Plane plane) = 0;  // all but nonces and signature
  virtual schema::Welcome make_welcome(schema::Plane plane,
                                       const schema::Hello& hello) = 0;  // likewise
  // Nullopt: accepted. The record's signature and the proof of key have been verified already.
  virtual std::optional<schema::Reject> judge(const schema::Hello& hello) = 0;
};

struct PeerUp {  // a link is bound to this node (either direction)
  NodeId id;
  bool dialled = false;
  bool first = true;                   // false: there was a link to it already, this is one more
  std::optional<schema::Hello> hello;  // they dialled
  std::optional<schema::Welcome> welcome;  // we dialled
};
struct PeerDown {
  NodeId id;
};  // the last link to it is gone
// They answered our HELLO with REJECT.
struct Refused {
  // As dialled. For kSelf under a name: the one of its addresses that is ours, since the name may
  // stand for others as well and stays dialled.
  std::string address;
  schema::Reject reject;
  bool by_all = true;  // every address that `address` stands for now has refused last
};
// No answer in time; it goes on trying until undial(). `why` begins with the address that was tried
// ("1.2.3.4:7400: "), of which a name has several.
struct DialFailed {
  std::string address;
  std::string why;
};
struct Received {
  NodeId from;
  schema::Message message;
  Slice payload;
};
// An address that is dialled and ends the key exchange: it has another cluster key, or none, or one
// where we have none, or no kith node is there.
struct KeyRefusal {
  std::string peer;  // as dialled; a name with the address that it stands for
  std::string why;
};
using MeshEvent = std::variant<PeerUp, PeerDown, Refused, DialFailed, Received>;

struct MeshCounters {
  std::uint64_t bytes_sent = 0, bytes_received = 0, messages_sent = 0, messages_received = 0;
  std::uint64_t dropped_unbound = 0;  // from connections that have not proved who they are
  std::uint64_t dropped_malformed =
      0;  // not two frames, not decodable, not of this plane or direction
  std::uint64_t dropped_no_room = 0;      // sends that returned false at a full queue
  std::uint64_t handshakes_refused = 0;   // HELLOs that we answered with REJECT
  std::uint64_t connections_refused = 0;  // wrong or missing cluster key
  std::uint64_t connections_cut = 0;      // sent far more than it let us read: an endless message
};

// Of two members the one with the lower id dials; the other waits this long for it, so that a pair
// needs one link, not two.
inline constexpr Duration kDialPatience = std::chrono::seconds(2);

class Mesh {
 public:
  Mesh(MeshSettings settings, const Identity& identity, HandshakePolicy& policy, const Clock& clock,
       Random random, LogSink& log);
  ~Mesh();

  // Binds. kAddressInUse names the address; kUsage for one that does not parse; a non-loopback
  // address without a key is refused unless `insecure`.
  Status bind(bool insecure);
  [[nodiscard]] std::string bound_address() const;  // with the real port

  // Keeps trying this address (jittered back-off) until a link exists; afterwards reconnects by
  // itself. Dialling an address twice is harmless. Names are looked up off this thread, again and
  // again, and all their addresses are dialled: a name may stand for many nodes. An address that
  // turns out to be this node itself is Refused (kSelf) once and left alone for long. Beyond
  // links_max the least recently used link is closed; dialling its address opens it again.
  void dial(const std::string& address);
  void undial(const std::string& address);
  [[nodiscard]] bool linked(const NodeId& id) const;
  // What is left of the setting where open files are few. Whoever dials more than this sees its
  // first links closed again.
  [[nodiscard]] std::size_t links_max() const;

  // Those whose last two connections ended so; nobody who answers or is down.
  [[nodiscard]] std::vector<KeyRefusal> key_refusals() const;

  bool send(const NodeId& to, const schema::Message& message, const Slice& payload = {});

  // Waits until something comes in, `wake_fd` (-1: none) becomes readable, or `deadline`; returns
  // what happened.
  std::vector<MeshEvent> poll(TimePoint deadline, int wake_fd);
  [[nodiscard]] const MeshCounters& counters() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kith::node
