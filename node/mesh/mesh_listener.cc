#include "node/mesh/mesh_listener.h"

#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "node/text/address.h"

namespace kith::node {
namespace {

using schema::RejectCode;

constexpr Duration kHintPause = std::chrono::milliseconds(5);
constexpr std::size_t kLinksPerPeerMax = 8;

// The numeric address to bind; names are looked up here and now, at start.
Result<HostPort> numeric_address(const HostPort& address) {
  if (is_any_host(address.host) || is_numeric_host(address.host)) return address;
  KITH_ASSIGN(const auto hosts, lookup_host(address.host));
  if (hosts.empty()) return fail(ErrorCode::kUsage, "name '" + address.host + "' has no address");
  return HostPort{hosts.front(), address.port};
}

Status check_exposure(const HostPort& address, bool encrypted, bool insecure) {
  if (encrypted || insecure || is_loopback_host(address.host)) return {};
  return fail(
      ErrorCode::kUsage,
      "address " + address.text() +
          " can be reached from other machines, and there is no cluster key: make one with `kith "
          "keygen` and set cluster.key_file, or say --insecure");
}

tl::unexpected<Error> bind_error(const HostPort& address, int error) {
  const std::string text = address.text();
  if (error == EADDRINUSE)
    return fail(ErrorCode::kAddressInUse,
                "address " + text + " is in use: stop what listens there, or choose another");
  if (error == EADDRNOTAVAIL || error == ENODEV)
    return fail(ErrorCode::kUsage, "address " + text + " is not an address of this machine");
  if (error == EACCES)
    return fail(ErrorCode::kUsage,
                "address " + text + ": no right to listen there (port below 1024?)");
  return fail("address " + text + " cannot be bound: " + zmq_strerror(error));
}

std::uint16_t port_of(const std::string& endpoint) {
  return static_cast<std::uint16_t>(std::stoul(endpoint.substr(endpoint.rfind(':') + 1)));
}

std::string endpoint_to_bind(const HostPort& address) {
  const std::string endpoint = tcp_endpoint(address);
  return address.port != 0 ? endpoint : endpoint.substr(0, endpoint.size() - 1) + "*";
}

}  // namespace

MeshListener::MeshListener(MeshCore& core, std::function<bool(const schema::Nonce&)> own_nonce)
    : core_(core), own_nonce_(std::move(own_nonce)) {}

Status MeshListener::bind(bool insecure) {
  KITH_ASSIGN(const HostPort wanted, parse_mesh_address(core_.settings.listen));
  KITH_ASSIGN(const HostPort address, numeric_address(wanted));
  KITH_TRY(check_exposure(address, core_.settings.key != nullptr, insecure));
  KITH_ASSIGN(ZmqSocket router, ZmqSocket::make(core_.context, ZMQ_ROUTER));
  SocketSettings settings = core_.socket_settings;
  settings.ipv6 = address.host == "*" || address.is_ipv6();
  apply_listener_options(router, settings);
  KITH_ASSIGN(ConnectionMonitor monitor,
              ConnectionMonitor::attach(core_.context, router, "listener"));
  if (zmq_bind(router.get(), endpoint_to_bind(address).c_str()) != 0)
    return bind_error(wanted, errno);
  router_ = std::move(router);
  monitor_ = std::move(monitor);
  address_ = HostPort{address.host, port_of(router_.last_endpoint())}.text();
  return {};
}

void MeshListener::drain_monitor() {
  ConnectionEvent event;
  while (bound() && monitor_.next(event)) {
    if (event.kind == ConnectionEvent::Kind::kMade) made(event.fd);
    if (event.kind == ConnectionEvent::Kind::kRefused) ++core_.counters.connections_refused;
    if (event.kind == ConnectionEvent::Kind::kLost) lost(event.fd);
  }
}

void MeshListener::made(int fd) {
  live_fds_.insert(fd);
  core_.guard.opened(fd);
}

void MeshListener::lost(int fd) {
  live_fds_.erase(fd);
  core_.guard.closed(fd);
  probes_of_fd_.erase(fd);
  const auto it = route_of_fd_.find(fd);
  if (it == route_of_fd_.end()) return;
  core_.unbind_link(LinkKey::of_route(it->second));
  route_of_fd_.erase(it);
}

bool MeshListener::drain() {
  Incoming incoming;
  for (int i = 0; i < MeshCore::kBatchMessages; ++i) {
    const auto result = receive_message(router_.get(), true, incoming);
    if (result == ReceiveResult::kNothing) return false;
    core_.guard.delivered(incoming.fd);
    if (result == ReceiveResult::kMalformed)
      core_.count_malformed();
    else
      on_incoming(incoming);
  }
  return true;
}

void MeshListener::on_incoming(Incoming& incoming) {
  if (core_.settings.key != nullptr && !incoming.authenticated) {
    ++core_.counters.dropped_unbound;
    return;
  }
  auto message = core_.decode(incoming);
  if (!message) return;
  if (const auto* hello = std::get_if<schema::Hello>(&*message)) return on_hello(incoming, *hello);
  const NodeId* peer = core_.links.peer_of_route(incoming.routing_id);
  if (peer == nullptr) {
    ++core_.counters.dropped_unbound;
    return hint(incoming.routing_id);
  }
  if (is_handshake(*message))
    return core_.count_malformed();  // CHALLENGE, WELCOME, REJECT: not towards a listener
  core_.deliver(*peer, std::move(*message), std::move(incoming.payload));
}

// Whoever sends without a handshake believes to be linked, to a process that was here before this
// one: told so, it greets again. Rarely, and with less than came in, so that nobody can use us
// against others.
void MeshListener::hint(const std::string& routing_id) {
  const TimePoint now = core_.clock.now();
  if (now < next_hint_) return;
  next_hint_ = now + kHintPause;
  core_.send(router_, &routing_id,
             schema::Reject{RejectCode::kNotReady, "greet first", core_.identity.id(), 0});
}

void MeshListener::on_hello(const Incoming& incoming, const schema::Hello& hello) {
  if (hello.record.id == core_.identity.id() && own_nonce_(hello.nonce))
    return refuse(incoming.routing_id, RejectCode::kSelf, "this is the dialling node itself");
  const auto challenge = challenger_.nonce_for(incoming.routing_id, hello);
  if (!is_first(hello)) return on_proof(incoming, hello, challenge);
  core_.send(router_, &incoming.routing_id, schema::Challenge{challenge, hello.nonce});
}

std::optional<schema::Reject> MeshListener::find_objection(const schema::Hello& hello,
                                                           const schema::Nonce& challenge) {
  const auto object = [](RejectCode code, std::string detail) {
    return schema::Reject{code, std::move(detail), {}, 0};
  };
  if (const auto flaw = find_flaw(hello, challenge); !flaw.empty())
    return object(RejectCode::kSignature, std::string(flaw));
  if (hello.plane != core_.settings.plane)
    return object(RejectCode::kProtocol,
                  "this port is for the other plane (control and bulk addresses swapped?)");
  if (hello.protocol_min > schema::kProtocolVersion ||
      hello.protocol_max < schema::kProtocolVersion) {
    // Read by the other side.
    return object(RejectCode::kProtocol, "protocol " + std::to_string(hello.protocol_min) + " to " +
                                             std::to_string(hello.protocol_max) + " here, " +
                                             std::to_string(schema::kProtocolVersion) + " there");
  }
  if (core_.links.links_of(hello.record.id) >= kLinksPerPeerMax)
    return object(RejectCode::kFull, "this node has too many connections here");
  if (auto objection = core_.policy.judge(hello)) return objection;
  if (hello.record.id ==
      core_.identity.id())  // whatever the policy says: a link to oneself is none
    return object(RejectCode::kIdentity,
                  "two processes use this identity: a copied data directory?");
  return std::nullopt;
}

void MeshListener::on_proof(const Incoming& incoming, const schema::Hello& hello,
                            const schema::Nonce& challenge) {
  if (hello.probe && !may_probe(incoming)) return;
  if (auto objection = find_objection(hello, challenge))
    return refuse(incoming.routing_id, std::move(*objection));
  if (hello.probe) return answer_probe(incoming, hello);
  welcome(incoming, hello);
}

bool MeshListener::may_probe(const Incoming& incoming) {
  drain_monitor();  // counts of this descriptor's earlier connections go first
  if (!live_fds_.contains(incoming.fd)) return false;  // gone already
  Probes& probes = probes_of_fd_[incoming.fd];
  if (++probes.asked <= kProbesMax) return true;
  if (probes.close_at != TimePoint::max()) return false;
  refuse(incoming.routing_id, RejectCode::kFull,
         "more than " + std::to_string(kProbesMax) + " probes on one connection: it is closed");
  probes.close_at = core_.clock.now() + kLastWords;
  next_closing_ = std::min(next_closing_, probes.close_at);
  return false;
}

void MeshListener::close_due(TimePoint now) {
  if (now < next_closing_) return;
  next_closing_ = TimePoint::max();
  for (auto& [fd, probes] : probes_of_fd_) {
    if (now >= probes.close_at)
      core_.guard.cut(fd);  // and forgotten once libzmq says it is lost
    else
      next_closing_ = std::min(next_closing_, probes.close_at);
  }
}

// A diagnosis is told who we are and is no peer: nothing that it sends later has a sender.
void MeshListener::answer_probe(const Incoming& incoming, const schema::Hello& hello) {
  if (send_welcome(incoming, hello) != SendResult::kSent) return;
  if (hello.dial_back_port != 0 && core_.settings.plane == schema::Plane::kControl)
    dial_backs_.start(incoming.routing_id, hello.nonce, incoming.peer_host(), hello.dial_back_port,
                      core_.clock.now());
}

void MeshListener::tick(TimePoint now) {
  close_due(now);
  for (const auto& answer : dial_backs_.tick(now))
    core_.send(router_, &answer.routing_id, answer.message);
}

SendResult MeshListener::send_welcome(const Incoming& incoming, const schema::Hello& hello) {
  auto welcome = core_.policy.make_welcome(core_.settings.plane, hello);
  if (welcome.about) welcome.about->wall_seconds = core_.clock.wall_seconds();
  welcome.nonce = hello.peer_nonce;
  welcome.peer_nonce = hello.nonce;
  welcome.signature = core_.identity.sign(
      welcome_proof(core_.settings.plane, welcome.nonce, welcome.peer_nonce, core_.identity.id()));
  return core_.send(router_, &incoming.routing_id, welcome);
}

void MeshListener::welcome(const Incoming& incoming, const schema::Hello& hello) {
  drain_monitor();  // what it still says about this descriptor's earlier connections comes before
                    // the new binding
  if (incoming.fd >= 0 && !live_fds_.contains(incoming.fd)) return;  // gone already
  const NodeId* before = core_.links.peer_of_route(incoming.routing_id);
  if (before != nullptr && *before != hello.record.id)
    return refuse(incoming.routing_id, RejectCode::kIdentity,
                  "this connection belongs to another node");

  if (send_welcome(incoming, hello) != SendResult::kSent) return;
  if (before != nullptr) return;  // greeted again, since the first WELCOME was lost
  if (incoming.fd >= 0) {
    if (const auto old = route_of_fd_.find(incoming.fd); old != route_of_fd_.end())
      core_.unbind_link(LinkKey::of_route(old->second));
    route_of_fd_[incoming.fd] = incoming.routing_id;
  }
  core_.bind_link(LinkKey::of_route(incoming.routing_id),
                  PeerUp{hello.record.id, false, true, hello, std::nullopt});
}

void MeshListener::refuse(const std::string& routing_id, RejectCode code, std::string detail) {
  refuse(routing_id, schema::Reject{code, std::move(detail), core_.identity.id(), 0});
}

void MeshListener::refuse(const std::string& routing_id, schema::Reject reject) {
  ++core_.counters.handshakes_refused;
  reject.id = core_.identity.id();
  core_.send(router_, &routing_id, reject);
}

SendResult MeshListener::send(const std::string& routing_id, const schema::Message& message,
                              const Slice& payload) {
  return core_.send(router_, &routing_id, message, payload);
}

}  // namespace kith::node
