#include "tests/node/mesh_harness.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "node/mesh/mesh_frames.h"
#include "node/mesh/mesh_handshake.h"
#include "schema/codec.h"

#ifdef __SANITIZE_THREAD__
// libzmq has libsodium decrypt received messages on its I/O threads; neither library is built with
// the sanitizer, so how the bytes are handed to us stays invisible to it.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:libsodium.so\ncalled_from_lib:libsodium.so\n";
}
#endif

namespace kith::node::testing {

schema::MemberRecord FakePolicy::record() const {
  schema::MemberRecord record;
  record.id = identity_.id();
  record.incarnation = 1ULL << 32;
  record.name = "test";
  sign_record(identity_, record);
  return record;
}

schema::Hello FakePolicy::make_hello(schema::Plane plane) {
  schema::Hello hello;
  hello.plane = plane;
  hello.cluster = "tests";
  hello.record = record();
  return hello;
}

schema::Welcome FakePolicy::make_welcome(schema::Plane, const schema::Hello&) {
  schema::Welcome welcome;
  welcome.record = record();
  return welcome;
}

std::optional<schema::Reject> FakePolicy::judge(const schema::Hello& hello) {
  judged.push_back(hello);
  return verdict;
}

MeshSettings quick_settings(schema::Plane plane, const ClusterKey* key) {
  MeshSettings settings = plane_settings(plane);
  settings.listen = "127.0.0.1:0";
  settings.key = key;
  settings.probe_interval = std::chrono::milliseconds(20);
  return settings;
}

Node::Node(std::uint64_t seed, MeshSettings settings)
    : identity(Identity::ephemeral(seed)), policy(identity) {
  restart(std::move(settings));
}

void Node::restart(MeshSettings settings) {
  mesh.reset();
  mesh = std::make_unique<Mesh>(std::move(settings), identity, policy, clock, Random(7), log);
  const auto bound = mesh->bind(false);
  EXPECT_TRUE(bound) << bound.error().message;
}

void Node::poll() {
  for (auto& event : mesh->poll(clock.now() + std::chrono::milliseconds(1), -1))
    events.push_back(std::move(event));
}

std::size_t Node::ups(const NodeId& peer, bool first_only) const {
  std::size_t n = 0;
  for (const auto& up : all<PeerUp>()) n += up.id == peer && (up.first || !first_only);
  return n;
}

std::size_t Node::downs(const NodeId& peer) const {
  std::size_t n = 0;
  for (const auto& down : all<PeerDown>()) n += down.id == peer;
  return n;
}

bool run_until(std::initializer_list<Node*> nodes, const std::function<bool()>& done,
               Duration bound) {
  const SystemClock clock;
  const TimePoint end = clock.now() + bound;
  while (!done()) {
    if (clock.now() > end) return false;
    for (Node* node : nodes)
      if (node->mesh) node->poll();
  }
  return true;
}

void run_rounds(std::initializer_list<Node*> nodes, int rounds) {
  for (int quiet = 0; quiet < rounds; ++quiet)
    for (Node* node : nodes)
      if (node->mesh) node->poll();
}

schema::Message ping(std::uint64_t number) {
  schema::Ping message;
  message.sequence = number;
  return message;
}

std::optional<std::uint64_t> ping_number(const schema::Message& message) {
  const auto* ping = std::get_if<schema::Ping>(&message);
  return ping == nullptr ? std::nullopt : std::optional(ping->sequence);
}

schema::Message chunk(std::uint32_t index) {
  schema::Chunk message;
  message.e.initiator.bytes[0] = 1;
  message.e.incarnation = 1;
  message.e.sequence = 1;
  message.index = index;
  return message;
}

Slice bytes_of(std::size_t count, char fill) {
  const std::vector<std::byte> bytes(count, static_cast<std::byte>(fill));
  return Slice::copy_of(bytes);
}

RawClient::RawClient(const std::string& address, const CurveKeys* curve,
                     std::size_t message_bytes_max)
    : context_(1, 16) {
  SocketSettings settings;
  settings.message_bytes_max = message_bytes_max;
  settings.curve = curve;
  socket_ = std::move(*ZmqSocket::make(context_, ZMQ_DEALER));
  apply_dialler_options(socket_, settings, std::chrono::milliseconds(20),
                        std::chrono::milliseconds(200));
  monitor_ = std::move(*ConnectionMonitor::attach(context_, socket_, "monitor"));
  EXPECT_EQ(0, zmq_connect(socket_.get(), ("tcp://" + address).c_str()));
}

RawClient::RawClient(const std::string& address, const CurveKeys& own, const CurveKeys& server)
    : context_(1, 16) {
  socket_ = std::move(*ZmqSocket::make(context_, ZMQ_DEALER));
  SocketSettings settings;
  settings.curve = &own;
  apply_dialler_options(socket_, settings, std::chrono::milliseconds(20),
                        std::chrono::milliseconds(200));
  socket_.set(ZMQ_CURVE_SERVERKEY, server.public_key.data(), 32);
  monitor_ = std::move(*ConnectionMonitor::attach(context_, socket_, "monitor"));
  EXPECT_EQ(0, zmq_connect(socket_.get(), ("tcp://" + address).c_str()));
}

bool RawClient::try_send(const std::vector<std::string>& frames) {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const int flags = ZMQ_DONTWAIT | (i + 1 < frames.size() ? ZMQ_SNDMORE : 0);
    if (zmq_send(socket_.get(), frames[i].data(), frames[i].size(), flags) < 0) return false;
  }
  return true;
}

void RawClient::send_frames(const std::vector<std::string>& frames) {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const int flags = i + 1 < frames.size() ? ZMQ_SNDMORE : 0;
    ASSERT_GE(zmq_send(socket_.get(), frames[i].data(), frames[i].size(), flags), 0)
        << zmq_strerror(errno);
  }
}

void RawClient::send(const schema::Message& message) {
  const auto header = schema::encode(message);
  send_frames({std::string(reinterpret_cast<const char*>(header.data()), header.size()), ""});
}

std::optional<schema::Message> RawClient::receive() {
  Incoming incoming;
  if (receive_message(socket_.get(), false, incoming) != ReceiveResult::kMessage)
    return std::nullopt;
  auto message = schema::decode(incoming.header.bytes());
  return message ? std::optional(std::move(*message)) : std::nullopt;
}

void RawClient::look() {
  ConnectionEvent event;
  while (monitor_.next(event)) {
    ready_ |= event.kind == ConnectionEvent::Kind::kReady;
    refused_ |= event.kind == ConnectionEvent::Kind::kRefused;
    lost_ |= event.kind == ConnectionEvent::Kind::kLost;
  }
}

bool RawClient::ready() {
  look();
  return ready_;
}

bool RawClient::refused() {
  look();
  return refused_;
}

bool RawClient::lost() {
  look();
  return lost_;
}

std::optional<schema::Message> raw_handshake(RawClient& client, Node& listener, schema::Hello hello,
                                             const Identity& signer) {
  std::optional<schema::Message> answer;
  const auto answered = [&] { return (answer = client.receive()).has_value(); };
  EXPECT_TRUE(run_until({&listener}, [&] { return client.ready(); }));
  hello.nonce = random_nonce();
  client.send(hello);
  if (!run_until({&listener}, answered)) return std::nullopt;
  const auto* challenge = std::get_if<schema::Challenge>(&*answer);
  if (challenge == nullptr) return answer;
  hello.peer_nonce = challenge->nonce;
  hello.signature =
      signer.sign(hello_proof(hello.plane, hello.nonce, hello.peer_nonce, hello.record.id));
  client.send(hello);
  answer.reset();
  return run_until({&listener}, answered) ? answer : std::nullopt;
}

}  // namespace kith::node::testing
