// Who gets through and who does not: cluster keys, forged and replayed greetings, messages without
// a handshake, frames that no honest node sends. Against the real library on loopback.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>

#include "node/mesh/mesh_frames.h"
#include "node/mesh/mesh_handshake.h"
#include "schema/codec.h"
#include "tests/node/mesh_harness.h"

namespace kith::node::testing {
namespace {

using schema::Plane;
using schema::RejectCode;

bool linked(const Node& a, const Node& b) {
  return a.mesh->linked(b.id()) && b.mesh->linked(a.id());
}

std::string encoded(const schema::Message& message) {
  const auto bytes = schema::encode(message);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

schema::Hello hello_of(const Identity& identity, Plane plane = Plane::kControl) {
  FakePolicy policy(identity);
  return policy.make_hello(plane);
}

// Sanitizers keep freed memory: bounds on resident memory mean nothing with them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMeasuresMemory = false;
#else
constexpr bool kMeasuresMemory = true;
#endif

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

TEST(MeshKey, MembersWithTheClusterKeyMeet) {
  const auto key = ClusterKey::generate();
  Node a(1, quick_settings(Plane::kBulk, &key)), b(2, quick_settings(Plane::kBulk, &key));
  a.mesh->dial(b.address());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return linked(a, b); }));
  ASSERT_TRUE(a.mesh->send(b.id(), chunk(1), bytes_of(1U << 20, 'x')));
  ASSERT_TRUE(b.mesh->send(a.id(), chunk(2), bytes_of(1U << 20, 'y')));
  EXPECT_TRUE(
      run_until({&a, &b}, [&] { return a.count<Received>() == 1 && b.count<Received>() == 1; }));
}

TEST(MeshKey, ANodeWithAnotherKeyReachesNothing) {
  const auto key = ClusterKey::generate(), other = ClusterKey::generate();
  Node a(1, quick_settings(Plane::kControl, &key)), b(2, quick_settings(Plane::kControl, &other));
  b.mesh->dial(a.address());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return b.count<DialFailed>() >= 2; }));
  EXPECT_TRUE(a.policy.judged.empty());
  EXPECT_EQ(0U, a.mesh->counters().messages_received);
  EXPECT_FALSE(a.mesh->linked(b.id()));
}

// What is down, or reached, is no matter of keys.
TEST(MeshKey, WhoEndsTheKeyExchangeIsKnownWhileThatLasts) {
  const auto key = ClusterKey::generate(), other = ClusterKey::generate();
  Node a(1, quick_settings(Plane::kControl, &key)), b(2, quick_settings(Plane::kControl, &other));
  auto settings = quick_settings(Plane::kControl, &key);
  settings.listen = a.address();
  b.mesh->dial(a.address());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return b.mesh->key_refusals().size() == 1; }));
  EXPECT_EQ(b.mesh->key_refusals()[0].peer, a.address());
  EXPECT_NE(b.mesh->key_refusals()[0].why.find("key"), std::string::npos);
  a.stop();
  ASSERT_TRUE(run_until({&b}, [&] { return b.mesh->key_refusals().empty(); }));
  a.restart(settings);
  ASSERT_TRUE(run_until({&a, &b}, [&] { return b.mesh->key_refusals().size() == 1; }));
  a.stop();
  settings.key = &other;
  a.restart(settings);
  ASSERT_TRUE(run_until({&a, &b}, [&] { return linked(b, a); }));
  EXPECT_TRUE(b.mesh->key_refusals().empty());
}

TEST(MeshKey, WithoutAnyOnOneSideBothKnowIt) {
  const auto key = ClusterKey::generate();
  Node a(1, quick_settings(Plane::kControl, &key)), b(2);
  a.mesh->dial(b.address());
  b.mesh->dial(a.address());
  EXPECT_TRUE(run_until({&a, &b}, [&] {
    return a.mesh->key_refusals().size() == 1 && b.mesh->key_refusals().size() == 1;
  }));
}

TEST(MeshKey, ANodeWithoutKeyReachesNothing) {
  const auto key = ClusterKey::generate();
  Node a(1, quick_settings(Plane::kControl, &key)), b(2);
  b.mesh->dial(a.address());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return b.count<DialFailed>() >= 2; }));
  EXPECT_EQ(0U, a.mesh->counters().messages_received);
  a.mesh->dial(b.address());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return a.count<DialFailed>() >= 2; }));
  EXPECT_EQ(0U, b.mesh->counters().messages_received);
}

// Knows the server's public key (it is no secret) but not the cluster's secret: libzmq's own check
// would let it in.
TEST(MeshKey, AClientThatOnlyKnowsThePublicKeyIsRefusedByTheHandler) {
  const auto key = ClusterKey::generate(), own = ClusterKey::generate();
  Node a(1, quick_settings(Plane::kControl, &key));
  RawClient client(a.address(), own.curve(), key.curve());
  ASSERT_TRUE(run_until({&a}, [&] { return client.refused(); }));
  EXPECT_FALSE(client.ready());
  client.try_send({encoded(hello_of(Identity::ephemeral(9))), ""});
  run_rounds({&a}, 50);
  EXPECT_EQ(0U, a.mesh->counters().messages_received);
  EXPECT_GE(a.mesh->counters().connections_refused, 1U);
}

TEST(MeshHandshake, NobodySpeaksAsAnotherNode) {
  const auto key = ClusterKey::generate();
  Node a(1, quick_settings(Plane::kControl, &key)),
      victim(2, quick_settings(Plane::kControl, &key));
  victim.mesh->dial(a.address());
  ASSERT_TRUE(run_until({&a, &victim}, [&] { return linked(a, victim); }));

  const auto thief = Identity::ephemeral(66);
  RawClient client(a.address(), &key.curve());
  const auto answer = raw_handshake(client, a, hello_of(victim.identity), thief);
  ASSERT_TRUE(answer.has_value());
  ASSERT_TRUE(std::holds_alternative<schema::Reject>(*answer));
  EXPECT_EQ(RejectCode::kSignature, std::get<schema::Reject>(*answer).code);
  client.send(ping(13));
  ASSERT_TRUE(run_until({&a, &victim}, [&] { return a.mesh->counters().dropped_unbound == 1; }));
  EXPECT_EQ(0U, a.count<Received>());
  EXPECT_EQ(1U, a.ups(victim.id()));
  EXPECT_TRUE(linked(a, victim));
}

TEST(MeshHandshake, ARecordThatWasAlteredIsRefused) {
  Node a(1);
  const auto identity = Identity::ephemeral(9);
  auto hello = hello_of(identity);
  hello.record.samples = 1000000;
  RawClient client(a.address(), nullptr);
  const auto answer = raw_handshake(client, a, hello, identity);
  ASSERT_TRUE(answer && std::holds_alternative<schema::Reject>(*answer));
  EXPECT_EQ(RejectCode::kSignature, std::get<schema::Reject>(*answer).code);
  EXPECT_TRUE(a.policy.judged.empty());
}

TEST(MeshHandshake, ARecordedGreetingIsWorthlessOnAnotherConnection) {
  Node a(1);
  const auto identity = Identity::ephemeral(9);
  RawClient first(a.address(), nullptr), second(a.address(), nullptr);
  ASSERT_TRUE(run_until({&a}, [&] { return first.ready() && second.ready(); }));
  auto hello = hello_of(identity);
  hello.nonce = random_nonce();
  std::optional<schema::Message> answer;
  first.send(hello);
  ASSERT_TRUE(run_until({&a}, [&] { return (answer = first.receive()).has_value(); }));
  hello.peer_nonce = std::get<schema::Challenge>(*answer).nonce;
  hello.signature =
      identity.sign(hello_proof(Plane::kControl, hello.nonce, hello.peer_nonce, identity.id()));
  second.send(hello);  // what an eavesdropper would have
  ASSERT_TRUE(run_until({&a}, [&] { return (answer = second.receive()).has_value(); }));
  EXPECT_EQ(RejectCode::kSignature, std::get<schema::Reject>(*answer).code);
  first.send(hello);
  ASSERT_TRUE(run_until({&a}, [&] { return (answer = first.receive()).has_value(); }));
  EXPECT_TRUE(std::holds_alternative<schema::Welcome>(*answer));
}

TEST(MeshHandshake, AConnectionCannotChangeItsNode) {
  Node a(1);
  const auto one = Identity::ephemeral(8), two = Identity::ephemeral(9);
  RawClient client(a.address(), nullptr);
  auto answer = raw_handshake(client, a, hello_of(one), one);
  ASSERT_TRUE(answer && std::holds_alternative<schema::Welcome>(*answer));
  answer = raw_handshake(client, a, hello_of(two), two);
  ASSERT_TRUE(answer && std::holds_alternative<schema::Reject>(*answer));
  EXPECT_TRUE(a.mesh->linked(one.id()));
  EXPECT_FALSE(a.mesh->linked(two.id()));
}

TEST(MeshHandshake, TheAnswerBeforeAProofIsSmallerThanTheQuestion) {
  const auto hello = encoded(hello_of(Identity::ephemeral(9)));
  const auto challenge = encoded(schema::Challenge{random_nonce(), random_nonce()});
  const auto hint =
      encoded(schema::Reject{RejectCode::kNotReady, "greet first", Identity::ephemeral(1).id(), 0});
  EXPECT_LT(challenge.size(), hello.size());
  // The least that a node says to a member: its own record comes along.
  const auto least = encoded(schema::Ping{1, {{schema::MemberRecord{}}, {}}});
  EXPECT_LT(hint.size(), least.size());
}

TEST(MeshHandshake, ManyConnectionsOfOneNodeAreCapped) {
  Node a(1);
  const auto identity = Identity::ephemeral(9);
  std::vector<std::unique_ptr<RawClient>> clients;
  std::size_t welcomed = 0;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(std::make_unique<RawClient>(a.address(), nullptr));
    const auto answer = raw_handshake(*clients.back(), a, hello_of(identity), identity);
    ASSERT_TRUE(answer.has_value());
    welcomed += std::holds_alternative<schema::Welcome>(*answer);
  }
  EXPECT_EQ(8U, welcomed);
  clients.clear();
  EXPECT_TRUE(run_until({&a}, [&] { return a.downs(identity.id()) == 1; }));
}

TEST(MeshUnbound, MessagesWithoutAHandshakeAreDroppedAndCountedAndHoldNoMemory) {
  Node a(1);
  RawClient client(a.address(), nullptr);
  ASSERT_TRUE(run_until({&a}, [&] { return client.ready(); }));
  constexpr std::uint64_t kCount = 10000;
  const std::string message = encoded(ping(1));
  std::uint64_t sent = 0;
  const auto flood = [&](std::uint64_t until) {
    return run_until({&a}, [&] {
      while (sent < until && client.try_send({message, ""})) ++sent;
      while (client.receive()) {
      }
      return a.mesh->counters().dropped_unbound == until;
    });
  };
  ASSERT_TRUE(flood(kCount / 10));
  const std::size_t before = resident_bytes();
  ASSERT_TRUE(flood(kCount));
  const std::size_t after = kMeasuresMemory ? resident_bytes() : before;
  EXPECT_LT(after, before + (4U << 20));
  EXPECT_TRUE(a.events.empty());
}

TEST(MeshUnbound, ALinkWhoseListenerForgotItIsMadeAgain) {
  // A listener that was replaced without the dialler's noticing answers its messages with a hint.
  Node a(1);
  RawClient client(a.address(), nullptr);
  ASSERT_TRUE(run_until({&a}, [&] { return client.ready(); }));
  client.send(ping(1));
  std::optional<schema::Message> answer;
  ASSERT_TRUE(run_until({&a}, [&] { return (answer = client.receive()).has_value(); }));
  ASSERT_TRUE(std::holds_alternative<schema::Reject>(*answer));
  EXPECT_EQ(RejectCode::kNotReady, std::get<schema::Reject>(*answer).code);
}

// A bound raw client, for what comes after the handshake.
class MeshFrames : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto answer = raw_handshake(client_, a_, hello_of(identity_), identity_);
    ASSERT_TRUE(answer && std::holds_alternative<schema::Welcome>(*answer));
  }
  // A proper message still gets through.
  void expect_alive(Node& node, RawClient& client) {
    const auto before = node.count<Received>();
    client.send(ping(99));
    EXPECT_TRUE(run_until({&node}, [&] { return node.count<Received>() == before + 1; }));
  }
  const Identity identity_ = Identity::ephemeral(9);
  Node a_{1};
  RawClient client_{a_.address(), nullptr};
};

TEST_F(MeshFrames, AMessageOfAnotherNumberOfFramesIsDroppedWhole) {
  const std::string header = encoded(ping(1));
  client_.send_frames({header});
  client_.send_frames({header, "", ""});
  client_.send_frames(std::vector<std::string>(5000, header));
  ASSERT_TRUE(run_until({&a_}, [&] { return a_.mesh->counters().dropped_malformed == 3; }));
  EXPECT_EQ(0U, a_.count<Received>());
  expect_alive(a_, client_);
}

TEST_F(MeshFrames, WhatIsNoMessageIsDroppedAndCounted) {
  client_.send_frames({"", ""});
  client_.send_frames({"garbage that is no header", ""});
  client_.send_frames({encoded(ping(1)), "a payload that a ping does not have"});
  client_.send(schema::Challenge{});  // only towards a dialler
  client_.send(schema::Reject{});
  ASSERT_TRUE(run_until({&a_}, [&] { return a_.mesh->counters().dropped_malformed == 5; }));
  EXPECT_EQ(0U, a_.count<Received>());
  expect_alive(a_, client_);
}

TEST_F(MeshFrames, AFrameAboveTheLimitCutsItsConnectionOnly) {
  Node other(2);
  other.mesh->dial(a_.address());
  ASSERT_TRUE(run_until({&a_, &other}, [&] { return linked(a_, other); }));
  client_.try_send({std::string(65537, 'x'), ""});
  ASSERT_TRUE(run_until({&a_, &other}, [&] { return a_.downs(identity_.id()) == 1; }));
  EXPECT_TRUE(linked(a_, other));
  EXPECT_EQ(0U, a_.count<Received>());
  ASSERT_TRUE(other.mesh->send(a_.id(), ping(1)));
  EXPECT_TRUE(run_until({&a_, &other}, [&] { return a_.count<Received>() == 1; }));
}

// Speaks the wire protocol of ZeroMQ (ZMTP 3.0, NULL mechanism) itself, since libzmq sends only
// finished messages.
class RawZmtp {
 public:
  explicit RawZmtp(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    EXPECT_EQ(0, connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to));
    std::string greeting(64, '\0');
    greeting[0] = '\xff';
    greeting[9] = '\x7f';
    greeting[10] = 3;
    greeting.replace(12, 4, "NULL");
    const std::string body = std::string("\5READY\13Socket-Type\0\0\0\6DEALER", 28);
    const std::string ready = std::string("\4", 1) + static_cast<char>(body.size()) + body;
    const std::string opening = greeting + ready;
    EXPECT_EQ(static_cast<ssize_t>(opening.size()), send(fd_, opening.data(), opening.size(), 0));
    std::array<char, 64 + 2>
        answer{};  // its greeting and the head of its READY: from now on it takes messages
    EXPECT_EQ(static_cast<ssize_t>(answer.size()),
              recv(fd_, answer.data(), answer.size(), MSG_WAITALL));
  }
  ~RawZmtp() { close(fd_); }
  // Has the other side closed it? (What it sent before is read and thrown away.)
  bool at_end() const {
    std::array<char, 4096> bytes{};
    ssize_t got = 0;
    do got = recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    while (got > 0);
    return got == 0 || errno != EAGAIN;
  }
  // Bytes taken by the kernel; -1: the connection is gone.
  ssize_t push(const std::string& bytes) const {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent < 0 && errno == EAGAIN ? 0 : sent;
  }

 private:
  int fd_;
};

std::string frame_with_more(std::size_t size) {
  std::string frame(9 + size, 'x');
  frame[0] = 3;  // MORE | LONG
  for (int i = 0; i < 8; ++i) frame[1 + i] = static_cast<char>(size >> (8 * (7 - i)));
  return frame;
}

// Pushes until the node has cut the connection; the most memory that was resident meanwhile.
std::size_t flood(Node& node, std::uint64_t cuts_expected) {
  const RawZmtp client(node.address());
  const std::string frames = frame_with_more(60000);
  std::size_t offset = 0, most = 0;
  EXPECT_TRUE(run_until({&node}, [&] {
    for (int i = 0; i < 64; ++i) {
      const ssize_t taken = client.push(frames.substr(offset));
      if (taken <= 0) break;
      offset = (offset + static_cast<std::size_t>(taken)) % frames.size();
    }
    most = std::max(most, resident_bytes());
    return node.mesh->counters().connections_cut == cuts_expected;
  }));
  EXPECT_TRUE(run_until(
      {&node}, [&] { return client.at_end(); }, std::chrono::seconds(5)));
  return most;
}

TEST_F(MeshFrames, AFloodThatNeverEndsItsMessageIsCutAndItsMemoryIsUsedAgain) {
  constexpr std::size_t kBound = 384U << 20;  // 32 MiB, and what comes in between two looks
  const std::size_t before = resident_bytes();
  for (std::uint64_t i = 1; i <= 4; ++i) {
    const std::size_t most = flood(a_, i);
    EXPECT_LT(kMeasuresMemory ? most : 0, before + kBound);
  }
  expect_alive(a_, client_);
}

}  // namespace
}  // namespace kith::node::testing
