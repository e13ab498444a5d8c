#include "node/daemon/peer_links.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "node/mesh/mesh.h"

namespace kith::node {
namespace {

using std::chrono::seconds;

NodeId id(unsigned n) {
  NodeId node;
  node.bytes[0] = static_cast<std::uint8_t>(n >> 8);
  node.bytes[1] = static_cast<std::uint8_t>(n);
  return node;
}

PeerLinks::Peer peer(unsigned n, bool living = true, bool at_once = true) {
  return {id(n), "10.0.0.1:" + std::to_string(n), living, at_once};
}

struct Network {
  std::set<NodeId> linked;
  std::multiset<std::string> dialled;
  std::size_t links_max = 4;
  std::size_t asked = 0;
  PeerLinks links{{[this](const NodeId& node) { return ++asked, linked.contains(node); },
                   [this] { return links_max; },
                   [this](const std::string& address) { dialled.insert(address); },
                   [this](const std::string& address) { dialled.erase(address); }}};
  [[nodiscard]] bool dials(unsigned n) const { return dialled.contains(peer(n).address); }
};

TEST(PeerLinks, TheOneWithTheLowerIdDialsAndTheOtherWaitsForItAWhile) {
  Network net;
  const std::vector<PeerLinks::Peer> peers = {peer(1), peer(2, true, false), peer(3, true, false)};
  net.links.keep_all(peers, {});
  EXPECT_TRUE(net.dials(1));
  EXPECT_FALSE(net.dials(2));
  EXPECT_EQ(net.links.next_deadline(), TimePoint{} + kDialPatience);
  net.linked.insert(id(3));
  net.links.keep_all(peers, TimePoint{} + kDialPatience);
  EXPECT_TRUE(net.dials(2));
  EXPECT_FALSE(net.dials(3)) << "it has dialled us meanwhile";
  EXPECT_EQ(net.links.next_deadline(), TimePoint::max());
}

TEST(PeerLinks, TheLivingComeFirstAndTheDeadGetWhatIsLeft) {
  Network net;
  net.links.keep_all({peer(1, false), peer(2, false), peer(3, false), peer(4), peer(5), peer(6)},
                     {});
  EXPECT_TRUE(net.dials(4) && net.dials(5) && net.dials(6));
  EXPECT_EQ(net.dialled.size(), 4U);
}

TEST(PeerLinks, ADeadOneGivesItsPlaceToALivingOneAndIsDialledAgainWhenThereIsRoom) {
  Network net;
  const std::vector<PeerLinks::Peer> dead = {peer(1, false), peer(2, false), peer(3, false),
                                             peer(4, false)};
  net.links.keep_all(dead, {});
  EXPECT_EQ(net.dialled.size(), 4U);
  auto peers = dead;
  for (const unsigned n : {11, 12, 13, 14, 15}) peers.push_back(peer(n));
  net.links.keep_all(peers, {seconds(1)});
  EXPECT_TRUE(net.dials(11) && net.dials(12) && net.dials(13) && net.dials(14));
  EXPECT_EQ(net.dialled.size(), 4U) << "and not one more";
  net.links.keep_all(dead, {seconds(2)});
  EXPECT_EQ(net.dialled.size(), 0U) << "looked at again after a while";
  net.links.keep_all(dead, {seconds(9)});
  EXPECT_EQ(net.dialled.size(), 4U);
}

TEST(PeerLinks, OneWhoDiesKeepsItsPlaceUntilALivingOneNeedsIt) {
  Network net;
  net.links_max = 2;
  net.links.keep_all({peer(1), peer(2)}, {});
  net.links.keep_all({peer(1, false), peer(2)}, {seconds(1)});
  EXPECT_TRUE(net.dials(1));
  net.links.keep_all({peer(1, false), peer(2), peer(3)}, {seconds(2)});
  EXPECT_FALSE(net.dials(1));
  EXPECT_TRUE(net.dials(2) && net.dials(3));
}

TEST(PeerLinks, AnAddressThatTwoPeersHadIsHungUpWithTheLast) {
  Network net;
  auto second = peer(2);
  second.address = peer(1).address;
  net.links.keep_all({peer(1), second}, {});
  net.links.drop(id(1));
  EXPECT_TRUE(net.dials(1));
  net.links.drop(id(2));
  EXPECT_EQ(net.dialled.count(peer(1).address), 0U);
}

TEST(PeerLinks, APeerThatMovesIsDialledAtItsNewAddressOnly) {
  Network net;
  net.links.keep(peer(1), {});
  auto moved = peer(1);
  moved.address = "10.0.0.2:1";
  net.links.keep(moved, {seconds(1)});
  EXPECT_EQ(net.dialled, std::multiset<std::string>{"10.0.0.2:1"});
  EXPECT_EQ(net.links.dials(), 1U);
}

TEST(PeerLinks, ASaturatedNodeLooksAtEachPeerOnceARoundAndRestsBetween) {
  Network net;
  std::vector<PeerLinks::Peer> peers;
  for (unsigned n = 0; n < 2000; ++n) peers.push_back(peer(n));
  net.links.keep_all(peers, {});
  EXPECT_EQ(net.links.dials(), 4U);
  EXPECT_EQ(net.links.next_deadline(), TimePoint{} + kDialPatience);
  net.asked = 0;
  net.links.keep_all(peers, TimePoint{} + kDialPatience);
  EXPECT_LE(net.asked, peers.size());
}

}  // namespace
}  // namespace kith::node
