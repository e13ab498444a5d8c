// What this libzmq does that its manual does not say, and that the Mesh relies on or guards
// against. Each was measured first; if a newer library changes one, the test says which design
// choice to look at again.
#include <gtest/gtest.h>
#include <zmq.h>

#include <cstring>
#include <functional>
#include <optional>

#include "base/check.h"
#include "node/mesh/mesh_frames.h"
#include "node/mesh/zap_handler.h"
#include "schema/codec.h"
#include "tests/node/mesh_harness.h"

namespace kith::node::testing {
namespace {

constexpr int kZapEnforceDomain = 93;

bool wait_for(const std::function<bool()>& done, Duration bound = std::chrono::seconds(20)) {
  const SystemClock clock;
  const TimePoint end = clock.now() + bound;
  while (!done())
    if (clock.now() > end) return false;
  return true;
}

// A bound ROUTER with the Mesh's own options, and a DEALER with the right key or another.
class Fact : public ::testing::Test {
 protected:
  explicit Fact(bool with_key = true)
      : key_(ClusterKey::generate()), other_(ClusterKey::generate()), context_(1, 64) {
    if (with_key) settings_.curve = &key_.curve();
  }
  void bind() {
    router_ = std::move(*ZmqSocket::make(context_, ZMQ_ROUTER));
    apply_listener_options(router_, settings_);
    monitor_ = std::move(*ConnectionMonitor::attach(context_, router_, "router"));
    ASSERT_EQ(0, zmq_bind(router_.get(), "tcp://127.0.0.1:*"));
    address_ = router_.last_endpoint().substr(6);
  }
  bool refused() {
    ConnectionEvent event;
    while (monitor_.next(event))
      if (event.kind == ConnectionEvent::Kind::kRefused) refused_ = true;
    return refused_;
  }
  // One message of two body frames, waited for; its frames without the routing id.
  std::optional<Incoming> receive(Duration bound = std::chrono::seconds(20)) {
    Incoming incoming;
    const auto got = [&] {
      return receive_message(router_.get(), true, incoming) == ReceiveResult::kMessage;
    };
    return wait_for(got, bound) ? std::optional(std::move(incoming)) : std::nullopt;
  }

  ClusterKey key_, other_;
  SocketSettings settings_;
  ZmqContext context_;
  ZmqSocket router_;
  ConnectionMonitor monitor_;
  std::string address_;
  bool refused_ = false;
};

class Curve : public Fact {};
class Plain : public Fact {
 protected:
  Plain() : Fact(false) {}
};

TEST_F(Curve, WithoutAHandlerAnyKeyGetsInUnlessTheDomainIsEnforced) {
  const int off = 0;
  for (const bool enforced : {false, true}) {
    ZmqSocket server = std::move(*ZmqSocket::make(context_, ZMQ_ROUTER));
    apply_listener_options(server, settings_);
    if (!enforced) server.set(kZapEnforceDomain, &off, sizeof off);
    const std::string name = enforced ? "enforced" : "open";
    const auto monitor = std::move(*ConnectionMonitor::attach(context_, server, name));
    ASSERT_EQ(0, zmq_bind(server.get(), "tcp://127.0.0.1:*"));
    RawClient stranger(server.last_endpoint().substr(6), other_.curve(), key_.curve());
    ASSERT_TRUE(wait_for([&] { return stranger.ready() || stranger.refused(); }));
    EXPECT_EQ(!enforced, stranger.ready());
  }
}

TEST_F(Curve, WithoutAHandlerEvenTheRightKeyIsRefused) {
  bind();
  RawClient client(address_, &key_.curve());
  ASSERT_TRUE(wait_for([&] { return client.refused(); }));
  EXPECT_FALSE(client.ready());
  EXPECT_TRUE(wait_for([&] { return refused(); }));
}

TEST_F(Plain, AClientWithoutEncryptionIsRefusedByAServerWithIt) {
  settings_.curve = &key_.curve();
  bind();
  RawClient client(address_, nullptr);
  EXPECT_TRUE(wait_for([&] { return refused(); }));
  EXPECT_FALSE(client.ready());
}

// A link that is given up while it connects still has something to tell; the I/O thread of all
// links must not wait for somebody to read that.
TEST(GivenUp, WhileTheyConnectLinksStopNobody) {
  ZmqContext context(1, 1000);
  ZmqSocket router = std::move(*ZmqSocket::make(context, ZMQ_ROUTER));
  apply_listener_options(router, SocketSettings{});
  ASSERT_EQ(0, zmq_bind(router.get(), "tcp://127.0.0.1:*"));
  const std::string address = router.last_endpoint().substr(6);
  for (int i = 0; i < 100; ++i) {
    ZmqSocket dealer = std::move(*ZmqSocket::make(context, ZMQ_DEALER));
    apply_dialler_options(dealer, SocketSettings{}, std::chrono::milliseconds(20),
                          std::chrono::milliseconds(200));
    const auto monitor =
        std::move(*ConnectionMonitor::attach(context, dealer, "given up " + std::to_string(i)));
    ASSERT_EQ(0, zmq_connect(dealer.get(), ("tcp://" + address).c_str()));
  }
  RawClient client(address, nullptr);
  EXPECT_TRUE(wait_for([&] { return client.ready(); }));
}

TEST(CurveUserId, IsOnTheBodyFramesButNotOnTheRoutingIdAfterAPoll) {
  const auto key = ClusterKey::generate();
  ZmqContext context(1, 64);
  std::optional<ZapHandler> zap(std::in_place, context.get(), key.curve().public_key);
  {
    ZmqSocket router = std::move(*ZmqSocket::make(context, ZMQ_ROUTER));
    SocketSettings settings;
    settings.curve = &key.curve();
    apply_listener_options(router, settings);
    ASSERT_EQ(0, zmq_bind(router.get(), "tcp://127.0.0.1:*"));
    RawClient client(router.last_endpoint().substr(6), &key.curve());
    ASSERT_TRUE(wait_for([&] { return client.ready(); }));
    client.send_frames({"head", "body"});
    zmq_pollitem_t item{router.get(), 0, ZMQ_POLLIN, 0};
    ASSERT_EQ(1, zmq_poll(&item, 1, 10000));
    Frame frame;
    ASSERT_GE(zmq_msg_recv(frame.raw(), router.get(), 0), 0);
    EXPECT_EQ(nullptr, zmq_msg_gets(frame.raw(), "User-Id"));
    for (int i = 0; i < 2; ++i) {
      ASSERT_GE(zmq_msg_recv(frame.raw(), router.get(), 0), 0);
      const char* user = zmq_msg_gets(frame.raw(), "User-Id");
      ASSERT_NE(nullptr, user);
      EXPECT_STREQ(ZapHandler::kUserId, user);
    }
  }
  context.shutdown();
  zap.reset();
}

TEST_F(Plain, ReceivedFramesAreOftenMisalignedAndDecodeAllTheSame) {
  bind();
  RawClient client(address_, nullptr);
  ASSERT_TRUE(wait_for([&] { return client.ready(); }));
  std::size_t misaligned = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    const auto header = schema::encode(ping(i));
    client.send_frames({std::string(reinterpret_cast<const char*>(header.data()), header.size()),
                        std::string(i, 'x')});
  }
  for (std::size_t i = 0; i < 64; ++i) {
    auto incoming = receive();
    ASSERT_TRUE(incoming.has_value());
    misaligned += reinterpret_cast<std::uintptr_t>(incoming->header.bytes().data()) % 8 != 0;
    const auto message = schema::decode(incoming->header.bytes());
    ASSERT_TRUE(message) << message.error().message;
    EXPECT_EQ(i, ping_number(*message));
  }
  EXPECT_GT(misaligned, 0U) << "if frames are aligned now, the copy in the decoder could go";
}

// A peer fills the receive queue and goes. Returns after the time of several heartbeats.
void leave_a_backlog(const ZmqContext& context, const ZmqSocket& router) {
  const int few = 4;
  zmq_setsockopt(router.get(), ZMQ_RCVHWM, &few, sizeof few);
  KITH_CHECK(zmq_bind(router.get(), "tcp://127.0.0.1:*") == 0, "a loopback port is free");
  {
    RawClient client(router.last_endpoint().substr(6), nullptr);
    KITH_CHECK(wait_for([&] { return client.ready(); }), "the client is connected");
    // Until nothing more is taken: the connection's input has stopped.
    wait_for([&] { return !client.try_send({std::string(60000, 'x'), ""}); });
    wait_for([&] { return false; }, std::chrono::milliseconds(500));
  }
  wait_for([] { return false; }, std::chrono::milliseconds(1500));
}

TEST(HeartbeatsDeathTest, AbortTheProcessWhenAPeerGoesAndLeavesABacklog) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        ZmqContext context(1, 64);
        ZmqSocket router = std::move(*ZmqSocket::make(context, ZMQ_ROUTER));
        apply_listener_options(router, {});
        router.set(ZMQ_HEARTBEAT_IVL, 200);
        router.set(ZMQ_HEARTBEAT_TIMEOUT, 10000);
        leave_a_backlog(context, router);
      },
      "_io_error")
      << "mended in this libzmq: HEARTBEAT_IVL could come back (node/mesh/mesh_socket.h)";
}

TEST(Backlog, OfAPeerThatIsGoneIsReadByTheMeshSocketsAllTheSame) {
  ZmqContext context(1, 64);
  ZmqSocket router = std::move(*ZmqSocket::make(context, ZMQ_ROUTER));
  apply_listener_options(router, {});
  leave_a_backlog(context, router);
  Incoming incoming;
  EXPECT_EQ(receive_message(router.get(), true, incoming), ReceiveResult::kMessage);
}

TEST_F(Plain, TheDescriptorOfAConnectionIsKnownWithItsMessages) {
  bind();
  RawClient client(address_, nullptr);
  ASSERT_TRUE(wait_for([&] { return client.ready(); }));
  client.send_frames({"head", "body"});
  const auto incoming = receive();
  ASSERT_TRUE(incoming.has_value());
  EXPECT_GE(incoming->fd, 0);
  ConnectionEvent event;
  bool made = false;
  while (monitor_.next(event))
    made |= event.kind == ConnectionEvent::Kind::kMade && event.fd == incoming->fd;
  EXPECT_TRUE(made);
}

TEST_F(Plain, NothingIsQueuedForAPeerThatIsNotThere) {
  ZmqSocket dealer = std::move(*ZmqSocket::make(context_, ZMQ_DEALER));
  apply_dialler_options(dealer, settings_, std::chrono::milliseconds(20),
                        std::chrono::milliseconds(100));
  ASSERT_EQ(0, zmq_connect(dealer.get(), "tcp://127.0.0.1:1"));
  EXPECT_EQ(-1, zmq_send(dealer.get(), "x", 1, ZMQ_DONTWAIT));
  EXPECT_EQ(EAGAIN, errno);
}

TEST_F(Plain, SendingToAPeerThatIsGoneIsAnError) {
  bind();
  const std::string nobody("\0abcd", 5);
  EXPECT_EQ(SendResult::kNoRoute, send_message(router_.get(), &nobody, {}, {}));
}

TEST_F(Plain, AClaimOfMoreThanTheLimitCutsTheConnectionBeforeItIsRead) {
  bind();
  RawClient client(address_, nullptr);
  ASSERT_TRUE(wait_for([&] { return client.ready(); }));
  client.send_frames({"head", std::string(settings_.message_bytes_max + 1, 'x')});
  bool lost = false;
  ConnectionEvent event;
  ASSERT_TRUE(wait_for([&] {
    while (monitor_.next(event)) lost |= event.kind == ConnectionEvent::Kind::kLost;
    return lost;
  }));
  Incoming incoming;
  EXPECT_EQ(ReceiveResult::kNothing, receive_message(router_.get(), true, incoming));
}

}  // namespace
}  // namespace kith::node::testing
