// The Mesh against the real library on loopback: links, their loss, and what travels over them.
#include <sys/socket.h>

#include <algorithm>

#include "tests/node/mesh_harness.h"

namespace kith::node::testing {
namespace {

using schema::Plane;
using schema::RejectCode;

bool linked(const Node& a, const Node& b) {
  return a.mesh->linked(b.id()) && b.mesh->linked(a.id());
}

TEST(MeshLink, BindsBothSidesToProvenIdsAndMessagesCarryTheirSender) {
  Node a(1), b(2);
  a.mesh->dial(b.address());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return linked(a, b); }));
  ASSERT_EQ(1U, a.all<PeerUp>().size());
  EXPECT_TRUE(a.all<PeerUp>()[0].dialled);
  ASSERT_TRUE(a.all<PeerUp>()[0].welcome.has_value());
  EXPECT_EQ(b.id(), a.all<PeerUp>()[0].welcome->record.id);
  ASSERT_TRUE(b.all<PeerUp>()[0].hello.has_value());
  EXPECT_EQ(a.id(), b.all<PeerUp>()[0].hello->record.id);

  ASSERT_TRUE(a.mesh->send(b.id(), ping(7)));
  ASSERT_TRUE(b.mesh->send(a.id(), ping(8)));
  ASSERT_TRUE(
      run_until({&a, &b}, [&] { return a.count<Received>() == 1 && b.count<Received>() == 1; }));
  EXPECT_EQ(a.id(), b.all<Received>()[0].from);
  EXPECT_EQ(7U, ping_number(b.all<Received>()[0].message));
  EXPECT_EQ(b.id(), a.all<Received>()[0].from);
  EXPECT_EQ(8U, ping_number(a.all<Received>()[0].message));
}

TEST(MeshLink, SendsNothingToWhomItHasNoLink) {
  Node a(1), b(2);
  EXPECT_FALSE(a.mesh->send(b.id(), ping(1)));
}

TEST(MeshLink, TwoLinksOfOnePairAreOnePeerUntilTheLastIsGone) {
  Node a(1), b(2);
  a.mesh->dial(b.address());
  b.mesh->dial(a.address());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return a.ups(b.id()) == 2 && b.ups(a.id()) == 2; }));
  EXPECT_EQ(1U, a.ups(b.id(), true));
  EXPECT_EQ(1U, b.ups(a.id(), true));

  a.mesh->undial(b.address());
  ASSERT_TRUE(a.mesh->send(b.id(), ping(1)));
  ASSERT_TRUE(run_until({&a, &b}, [&] { return b.count<Received>() == 1; }));
  EXPECT_EQ(0U, a.downs(b.id()));
  EXPECT_EQ(0U, b.downs(a.id()));

  b.mesh->undial(a.address());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return a.downs(b.id()) == 1 && b.downs(a.id()) == 1; }));
}

TEST(MeshLink, DiallingTwiceMakesOneLink) {
  Node a(1), b(2);
  a.mesh->dial(b.address());
  a.mesh->dial(b.address());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return linked(a, b); }));
  a.mesh->dial(b.address());
  ASSERT_TRUE(a.mesh->send(b.id(), ping(1)));
  ASSERT_TRUE(run_until({&a, &b}, [&] { return b.count<Received>() == 1; }));
  EXPECT_EQ(1U, a.ups(b.id()));
  EXPECT_EQ(1U, b.ups(a.id()));
}

TEST(MeshLink, GreetsAgainWhenAnotherProcessTakesTheSamePort) {
  Node a(1), b(2);
  auto settings = quick_settings();
  settings.listen = b.address();
  a.mesh->dial(b.address());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return linked(a, b); }));
  b.stop();
  ASSERT_TRUE(run_until({&a}, [&] { return a.downs(b.id()) == 1; }));
  EXPECT_FALSE(a.mesh->send(b.id(), ping(1)));

  b.restart(settings);
  ASSERT_TRUE(run_until({&a, &b}, [&] { return linked(a, b); }));
  ASSERT_TRUE(a.mesh->send(b.id(), ping(2)));
  ASSERT_TRUE(run_until({&a, &b}, [&] { return b.count<Received>() == 1; }));
  EXPECT_EQ(2U, ping_number(b.all<Received>()[0].message));
}

TEST(MeshLink, DialsForEverAndFindsWhoComesLate) {
  Node a(1), b(2);
  auto settings = quick_settings();
  settings.listen = b.address();
  b.stop();
  a.mesh->dial(settings.listen);
  ASSERT_TRUE(run_until({&a}, [&] { return a.count<DialFailed>() >= 2; }));
  const DialFailed failed = a.all<DialFailed>()[0];
  EXPECT_EQ(settings.listen, failed.address);
  EXPECT_TRUE(failed.why.starts_with(settings.listen + ": ")) << failed.why;
  b.restart(settings);
  ASSERT_TRUE(run_until({&a, &b}, [&] { return linked(a, b); }));
}

TEST(MeshLink, ListenerNoticesThatADiallerIsGoneWithoutSendingToIt) {
  Node a(1), b(2);
  a.mesh->dial(b.address());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return linked(a, b); }));
  a.stop();
  ASSERT_TRUE(run_until(
      {&b}, [&] { return b.downs(a.id()) == 1; }, std::chrono::seconds(5)));
  EXPECT_FALSE(b.mesh->linked(a.id()));
}

TEST(MeshLink, ItsOwnAddressIsRefusedOnceAndLeftAlone) {
  Node a(1);
  a.mesh->dial(a.address());
  ASSERT_TRUE(run_until({&a}, [&] { return a.count<Refused>() == 1; }));
  EXPECT_EQ(RejectCode::kSelf, a.all<Refused>()[0].reject.code);
  run_rounds({&a}, 200);
  EXPECT_EQ(1U, a.count<Refused>());
  EXPECT_FALSE(a.mesh->linked(a.id()));
  EXPECT_EQ(0U, a.count<PeerUp>());
}

TEST(MeshLink, ACopiedIdentityIsNotTakenForItself) {
  Node a(1), copy(1);
  copy.mesh->dial(a.address());
  ASSERT_TRUE(run_until({&a, &copy}, [&] { return copy.count<Refused>() == 1; }));
  EXPECT_EQ(RejectCode::kIdentity, copy.all<Refused>()[0].reject.code);
}

TEST(MeshLink, ARefusalArrivesWithItsReasonAndGreetingGoesOn) {
  Node a(1), b(2);
  b.policy.verdict =
      schema::Reject{RejectCode::kRun, "run: digits-1 here, digits-2 there", b.id(), 0};
  a.mesh->dial(b.address());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return a.count<Refused>() >= 2; }));
  EXPECT_EQ(RejectCode::kRun, a.all<Refused>()[0].reject.code);
  EXPECT_EQ("run: digits-1 here, digits-2 there", a.all<Refused>()[0].reject.detail);
  EXPECT_EQ(b.address(), a.all<Refused>()[0].address);
  EXPECT_EQ(b.id(), a.all<Refused>()[0].reject.id);
  EXPECT_FALSE(b.mesh->linked(a.id()));
  b.policy.verdict.reset();
  ASSERT_TRUE(run_until({&a, &b}, [&] { return linked(a, b); }));
}

TEST(MeshLink, TheOtherPlanesPortSaysSo) {
  Node control(1), bulk(2, quick_settings(Plane::kBulk));
  control.mesh->dial(bulk.address());
  ASSERT_TRUE(run_until({&control, &bulk}, [&] { return control.count<Refused>() == 1; }));
  EXPECT_EQ(RejectCode::kProtocol, control.all<Refused>()[0].reject.code);
}

TEST(MeshLink, MessagesOfTheOtherPlaneAreDropped) {
  Node a(1), b(2);
  a.mesh->dial(b.address());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return linked(a, b); }));
  ASSERT_TRUE(a.mesh->send(b.id(), chunk(0), bytes_of(100, 'x')));
  ASSERT_TRUE(a.mesh->send(b.id(), ping(1)));
  ASSERT_TRUE(run_until({&a, &b}, [&] { return b.count<Received>() == 1; }));
  EXPECT_EQ(1U, ping_number(b.all<Received>()[0].message));
  EXPECT_EQ(1U, b.mesh->counters().dropped_malformed);
}

TEST(MeshLink, PayloadsArriveWholeAndTheSendersBufferIsLetGo) {
  Node a(1, quick_settings(Plane::kBulk)), b(2, quick_settings(Plane::kBulk));
  a.mesh->dial(b.address());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return linked(a, b); }));
  Slice payload = bytes_of(1U << 20, 'k');
  const std::weak_ptr<const void> owner = payload.owner();
  ASSERT_TRUE(a.mesh->send(b.id(), chunk(3), payload));
  payload = {};
  ASSERT_TRUE(run_until({&a, &b}, [&] { return b.count<Received>() == 1; }));
  const auto received = b.all<Received>()[0];
  EXPECT_EQ(3U, std::get<schema::Chunk>(received.message).index);
  ASSERT_EQ(1U << 20, received.payload.size());
  const auto bytes = received.payload.bytes();
  EXPECT_TRUE(
      std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{'k'}; }));
  EXPECT_TRUE(run_until({&a, &b}, [&] { return owner.expired(); }));
}

TEST(MeshLink, AFullQueueIsFalseAndNeverABlock) {
  Node a(1, quick_settings(Plane::kBulk)), b(2, quick_settings(Plane::kBulk));
  a.mesh->dial(b.address());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return linked(a, b); }));
  const Slice payload = bytes_of(1U << 20, 'k');
  std::size_t sent = 0;
  const auto push = [&] {
    while (sent < 1000 && a.mesh->send(b.id(), chunk(0), payload)) ++sent;
  };
  // b reads nothing meanwhile: the queues of 64 at both ends fill, as fast as the I/O threads get
  // to run.
  ASSERT_TRUE(run_until({&a}, [&] {
    push();
    return sent > 100;
  }));
  for (int i = 0; i < 100; ++i) push();
  EXPECT_LT(sent, 200U);
  EXPECT_GE(a.mesh->counters().dropped_no_room, 100U);
  ASSERT_TRUE(run_until({&a, &b}, [&] { return b.count<Received>() == sent; }));
  EXPECT_TRUE(a.mesh->send(b.id(), chunk(0), payload));
}

TEST(MeshLink, ManyChunksBothWaysArriveInOrderWithoutLoss) {
  Node a(1, quick_settings(Plane::kBulk)), b(2, quick_settings(Plane::kBulk));
  a.mesh->dial(b.address());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return linked(a, b); }));
  const Slice payload = bytes_of(65536, 'k');
  constexpr std::uint32_t kCount = 2000;
  std::uint32_t from_a = 0, from_b = 0;
  const auto push = [&] {
    while (from_a < kCount && a.mesh->send(b.id(), chunk(from_a), payload)) ++from_a;
    while (from_b < kCount && b.mesh->send(a.id(), chunk(from_b), payload)) ++from_b;
    return a.count<Received>() == kCount && b.count<Received>() == kCount;
  };
  ASSERT_TRUE(run_until({&a, &b}, push, std::chrono::seconds(60)));
  for (Node* node : {&a, &b}) {
    std::uint32_t expected = 0;
    for (const auto& r : node->all<Received>())
      EXPECT_EQ(expected++, std::get<schema::Chunk>(r.message).index);
    EXPECT_EQ(0U, node->count<PeerDown>());
  }
}

TEST(MeshLink, AboveTheCapTheLeastRecentlyUsedIsClosedUntilItIsDialledAgain) {
  auto settings = quick_settings();
  settings.links_max = 2;
  Node a(1, settings), b(2), c(3), d(4);
  a.mesh->dial(b.address());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return linked(a, b); }));
  a.mesh->dial(c.address());
  ASSERT_TRUE(run_until({&a, &b, &c}, [&] { return linked(a, c); }));
  ASSERT_TRUE(a.mesh->send(b.id(), ping(1)));  // b is used later than c now
  a.mesh->dial(d.address());
  ASSERT_TRUE(run_until({&a, &b, &c, &d}, [&] { return linked(a, d) && a.downs(c.id()) == 1; }));
  EXPECT_TRUE(linked(a, b));
  run_rounds({&a, &b, &c, &d}, 50);
  EXPECT_EQ(1U, a.ups(c.id()));
  a.mesh->dial(c.address());
  ASSERT_TRUE(run_until({&a, &b, &c, &d}, [&] { return linked(a, c); }));
}

TEST(MeshLink, ThreeNodesKeepTheirMessagesApart) {
  Node a(1), b(2), c(3);
  a.mesh->dial(b.address());
  a.mesh->dial(c.address());
  ASSERT_TRUE(run_until({&a, &b, &c}, [&] { return linked(a, b) && linked(a, c); }));
  ASSERT_TRUE(b.mesh->send(a.id(), ping(2)));
  ASSERT_TRUE(c.mesh->send(a.id(), ping(3)));
  ASSERT_TRUE(run_until({&a, &b, &c}, [&] { return a.count<Received>() == 2; }));
  for (const auto& received : a.all<Received>())
    EXPECT_EQ(received.from == b.id() ? 2U : 3U, ping_number(received.message));
}

TEST(MeshBind, PortZeroReportsTheRealPort) {
  const Node a(1);
  EXPECT_EQ(0U, a.address().find("127.0.0.1:"));
  EXPECT_EQ(std::string::npos, a.address().find('*'));
  EXPECT_NE("127.0.0.1:0", a.address());
}

TEST(MeshBind, ATakenPortIsSaidWithItsAddress) {
  Node a(1);
  Node b(2);
  auto settings = quick_settings();
  settings.listen = a.address();
  Mesh second(settings, b.identity, b.policy, b.clock, Random(1), b.log);
  const auto bound = second.bind(false);
  ASSERT_FALSE(bound);
  EXPECT_EQ(ErrorCode::kAddressInUse, bound.error().code);
  EXPECT_NE(std::string::npos, bound.error().message.find(a.address()));
}

TEST(MeshBind, RefusesWhatOthersCanReachWithoutAKeyAndNamesTheRemedy) {
  const auto identity = Identity::ephemeral(1);
  FakePolicy policy(identity);
  const SystemClock clock;
  MemoryLog log;
  for (const std::string listen : {"0.0.0.0:0", "[::]:0", "192.0.2.7:7400", "*:0"}) {
    auto settings = quick_settings();
    settings.listen = listen;
    Mesh mesh(settings, identity, policy, clock, Random(1), log);
    const auto bound = mesh.bind(false);
    ASSERT_FALSE(bound) << listen;
    EXPECT_EQ(ErrorCode::kUsage, bound.error().code);
    for (const std::string remedy : {"kith keygen", "key_file", "--insecure"})
      EXPECT_NE(std::string::npos, bound.error().message.find(remedy)) << bound.error().message;
  }
}

TEST(MeshBind, SaysWhatIsWrongWithAnAddress) {
  const auto identity = Identity::ephemeral(1);
  FakePolicy policy(identity);
  const SystemClock clock;
  MemoryLog log;
  for (const std::string listen :
       {"", "127.0.0.1", "127.0.0.1:70000", "::1:80", "192.0.2.7:7400"}) {
    auto settings = quick_settings();
    settings.listen = listen;
    Mesh mesh(settings, identity, policy, clock, Random(1), log);
    const auto bound = mesh.bind(true);
    ASSERT_FALSE(bound) << listen;
    EXPECT_EQ(ErrorCode::kUsage, bound.error().code) << bound.error().message;
  }
}

TEST(MeshBind, SpeaksIpv6OnLoopback) {
  auto settings = quick_settings();
  settings.listen = "[::1]:0";
  const auto identity = Identity::ephemeral(1);
  FakePolicy policy(identity);
  const SystemClock clock;
  MemoryLog log;
  {
    Mesh probe(settings, identity, policy, clock, Random(1), log);
    if (!probe.bind(false)) GTEST_SKIP() << "this machine has no IPv6 loopback";
  }
  Node a(1), b(2, settings);
  EXPECT_EQ(0U, b.address().find("[::1]:"));
  a.mesh->dial(b.address());
  EXPECT_TRUE(run_until({&a, &b}, [&] { return linked(a, b); }));
}

TEST(MeshPoll, ReturnsWhenTheWakeDescriptorIsReadable) {
  Node a(1);
  int ends[2];
  ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
  ASSERT_EQ(1, send(ends[1], "x", 1, 0));
  EXPECT_TRUE(a.mesh->poll(TimePoint::max(), ends[0]).empty());
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace kith::node::testing
