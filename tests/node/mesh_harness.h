// What the Mesh tests share: a node with a policy that can be told what to say, a loop that polls
// several meshes in turn until something is true (never a sleep), and a bare libzmq client for what
// no honest node sends.
#pragma once

#include <gtest/gtest.h>
#include <zmq.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "node/mesh/cluster_key.h"
#include "node/mesh/mesh.h"
#include "node/mesh/mesh_socket.h"

namespace kith::node::testing {

class FakePolicy final : public HandshakePolicy {
 public:
  explicit FakePolicy(const Identity& identity) : identity_(identity) {}
  schema::Hello make_hello(schema::Plane plane) override;
  schema::Welcome make_welcome(schema::Plane plane, const schema::Hello& hello) override;
  std::optional<schema::Reject> judge(const schema::Hello& hello) override;

  std::optional<schema::Reject> verdict;
  std::vector<schema::Hello> judged;

 private:
  schema::MemberRecord record() const;
  const Identity& identity_;
};

MeshSettings quick_settings(schema::Plane plane = schema::Plane::kControl,
                            const ClusterKey* key = nullptr);

// One node with one mesh; keeps every event that poll() brought.
class Node {
 public:
  explicit Node(std::uint64_t seed, MeshSettings settings = quick_settings());
  [[nodiscard]] const NodeId& id() const { return identity.id(); }
  [[nodiscard]] std::string address() const { return mesh->bound_address(); }
  void poll();
  void stop() { mesh.reset(); }  // like a process that ends: its sockets are closed
  void restart(MeshSettings settings);

  template <typename Event>
  [[nodiscard]] std::vector<Event> all() const {
    std::vector<Event> found;
    for (const auto& event : events)
      if (const auto* e = std::get_if<Event>(&event)) found.push_back(*e);
    return found;
  }
  template <typename Event>
  [[nodiscard]] std::size_t count() const {
    return all<Event>().size();
  }
  [[nodiscard]] std::size_t ups(const NodeId& peer, bool first_only = false) const;
  [[nodiscard]] std::size_t downs(const NodeId& peer) const;

  Identity identity;
  FakePolicy policy;
  SystemClock clock;
  MemoryLog log;
  std::unique_ptr<Mesh> mesh;
  std::vector<MeshEvent> events;
};

// Polls all of them in turn until `done`; false after `bound`.
bool run_until(std::initializer_list<Node*> nodes, const std::function<bool()>& done,
               Duration bound = std::chrono::seconds(20));
// Polls for so many rounds in which nothing arrives anywhere: for "and nothing more happens".
void run_rounds(std::initializer_list<Node*> nodes, int rounds);

schema::Message ping(std::uint64_t number);
std::optional<std::uint64_t> ping_number(const schema::Message& message);
schema::Message chunk(std::uint32_t index);
Slice bytes_of(std::size_t count, char fill);

// A DEALER without any of the Mesh's manners.
class RawClient {
 public:
  RawClient(const std::string& address, const CurveKeys* curve,
            std::size_t message_bytes_max = 64U << 20);
  // A client with key pair `own` that expects the server to have `server`'s.
  RawClient(const std::string& address, const CurveKeys& own, const CurveKeys& server);
  void send_frames(const std::vector<std::string>& frames);  // blocks until handed over
  bool try_send(const std::vector<std::string>& frames);
  void send(const schema::Message& message);
  // Whatever comes in, decoded.
  std::optional<schema::Message> receive();
  [[nodiscard]] void* socket() const { return socket_.get(); }
  [[nodiscard]] bool ready();    // has a connection been made (with the key exchange)?
  [[nodiscard]] bool refused();  // has one been refused?
  [[nodiscard]] bool lost();     // has one ended?

 private:
  void look();
  ZmqContext context_;
  ZmqSocket socket_;
  ConnectionMonitor monitor_;
  bool ready_ = false, refused_ = false, lost_ = false;
};

// Walks a RawClient through the handshake as `identity`, who may be anybody; the last answer
// (WELCOME or REJECT).
std::optional<schema::Message> raw_handshake(RawClient& client, Node& listener, schema::Hello hello,
                                             const Identity& signer);

}  // namespace kith::node::testing
