// The Mesh's bookkeeping without sockets: which link reaches whom, when kept memory is given back,
// what a challenge depends on.
#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "node/mesh/mesh_handshake.h"
#include "node/mesh/mesh_links.h"
#include "node/mesh/mesh_memory.h"
#include "node/mesh/mesh_schedule.h"

namespace kith::node {
namespace {

NodeId id_of(std::uint8_t number) {
  NodeId id;
  id.bytes[0] = number;
  return id;
}

TEST(LinkTable, KeepsToTheFirstLinkWhileItLives) {
  LinkTable links;
  EXPECT_TRUE(links.bind(LinkKey::of_route("r"), id_of(1)));
  EXPECT_FALSE(links.bind(LinkKey::of_dealer(7), id_of(1)));
  ASSERT_NE(nullptr, links.link_to(id_of(1)));
  EXPECT_EQ(LinkKey::of_route("r"), *links.link_to(id_of(1)));
  EXPECT_FALSE(links.unbind(LinkKey::of_route("r")).has_value());
  EXPECT_EQ(LinkKey::of_dealer(7), *links.link_to(id_of(1)));
  EXPECT_EQ(id_of(1), links.unbind(LinkKey::of_dealer(7)));
  EXPECT_EQ(nullptr, links.link_to(id_of(1)));
}

TEST(LinkTable, UnbindingWhatIsNotBoundChangesNothing) {
  LinkTable links;
  links.bind(LinkKey::of_dealer(7), id_of(1));
  EXPECT_FALSE(links.unbind(LinkKey::of_dealer(8)).has_value());
  EXPECT_FALSE(links.unbind(LinkKey::of_route("7")).has_value());
  EXPECT_EQ(1U, links.links_of(id_of(1)));
}

TEST(LinkTable, BindingTwiceIsOneLink) {
  LinkTable links;
  links.bind(LinkKey::of_route("r"), id_of(1));
  links.bind(LinkKey::of_route("r"), id_of(1));
  EXPECT_EQ(1U, links.links_of(id_of(1)));
  EXPECT_EQ(id_of(1), links.unbind(LinkKey::of_route("r")));
}

TEST(MemoryKeeper, GivesBackOnceAfterAQuietTimeAndOnlyAfterLargeMessages) {
  MemoryKeeper keeper;
  keeper.received(100);
  TimePoint now{std::chrono::seconds(1)};
  EXPECT_FALSE(keeper.tick(now));
  EXPECT_EQ(TimePoint::max(), keeper.next_deadline());
  keeper.received(1U << 20);
  EXPECT_FALSE(keeper.tick(now));
  const TimePoint due = keeper.next_deadline();
  EXPECT_FALSE(keeper.tick(due - Duration(1)));
  EXPECT_TRUE(keeper.tick(due));
  EXPECT_FALSE(keeper.tick(due + std::chrono::hours(1)));
}

TEST(ThroughputScope, IsInheritedByThreadsStartedInItAndThenUndone) {
  const int before = sched_getscheduler(0);
  if (before != SCHED_OTHER) GTEST_SKIP() << "started in a scheduling class of its own";
  int inside = -1;
  {
    const ThroughputScope scope;
    std::thread([&inside] { inside = sched_getscheduler(0); }).join();
  }
  EXPECT_EQ(before, sched_getscheduler(0));
  EXPECT_EQ(SCHED_BATCH, inside);
}

TEST(Challenger, BindsTheConnectionTheNonceTheNodeAndThisProcess) {
  const Challenger one, other;
  schema::Hello hello;
  hello.record.id = id_of(1);
  hello.nonce[0] = 1;
  const auto nonce = one.nonce_for("route", hello);
  EXPECT_EQ(nonce, one.nonce_for("route", hello));
  EXPECT_NE(nonce, one.nonce_for("other", hello));
  EXPECT_NE(nonce, other.nonce_for("route", hello));
  auto changed = hello;
  changed.nonce[0] = 2;
  EXPECT_NE(nonce, one.nonce_for("route", changed));
  changed = hello;
  changed.record.id = id_of(2);
  EXPECT_NE(nonce, one.nonce_for("route", changed));
}

TEST(HandshakeProof, DiffersByRolePlaneAndSigner) {
  const schema::Nonce a{1}, b{2};
  const auto proof = hello_proof(schema::Plane::kBulk, a, b, id_of(1));
  EXPECT_NE(proof, hello_proof(schema::Plane::kControl, a, b, id_of(1)));
  EXPECT_NE(proof, hello_proof(schema::Plane::kBulk, b, a, id_of(1)));
  EXPECT_NE(proof, hello_proof(schema::Plane::kBulk, a, b, id_of(2)));
  EXPECT_NE(proof, welcome_proof(schema::Plane::kBulk, a, b, id_of(1)));
}

}  // namespace
}  // namespace kith::node
