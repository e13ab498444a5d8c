#include "node/daemon/roster.h"

#include <algorithm>

#include "tests/node/mesh_harness.h"

namespace kith::node::testing {
namespace {

using schema::View;
using schema::ViewKind;
using std::chrono::milliseconds;
using std::chrono::seconds;

schema::MemberRecord record_of(const Node& node) {
  schema::MemberRecord record;
  record.id = node.id();
  record.incarnation = 1ULL << 32;
  record.boot_nonce = 5;
  record.name = "test";
  record.control_address = node.address();
  sign_record(node.identity, record);
  return record;
}

// A roster that keeps links with six neighbours, and peers whose mesh is all they have.
class Neighbourhood {
 public:
  static constexpr std::size_t kPeers = 7;
  Neighbourhood() : here_(1) {
    for (std::size_t i = 0; i < kPeers; ++i) peers_.push_back(std::make_unique<Node>(10 + i));
    roster_.emplace(RosterSettings{milliseconds(200), Duration{0}, 3}, here_.identity,
                    record_of(here_), here_.mesh.get(), time_, here_.log, Random(3));
    schema::Gossip all;
    for (const auto& peer : peers_) all.news.records.push_back(record_of(*peer));
    roster_->on_message(peers_[0]->id(), all);
    roster_->turn();
  }
  Node& here() { return here_; }
  Node& peer(std::size_t i) { return *peers_[i]; }
  [[nodiscard]] std::vector<NodeId> neighbours() const {
    return roster_->view() == nullptr ? std::vector<NodeId>() : roster_->view()->active();
  }

  void join(std::size_t i) {
    roster_->on_message(peer(i).id(),
                        View{ViewKind::kJoin, 0, 1, peer(i).id(), {record_of(peer(i))}});
  }
  void turn_here() {
    for (MeshEvent& event : here_.mesh->poll(here_.clock.now() + milliseconds(1), -1)) {
      if (auto* up = std::get_if<PeerUp>(&event)) {
        if (up->welcome) up->welcome->record = record_of(node_of(up->id));
        if (up->hello) up->hello->record = record_of(node_of(up->id));
        roster_->on_peer_up(*up);
      } else if (const auto* down = std::get_if<PeerDown>(&event)) {
        roster_->on_peer_down(*down);
      } else if (const auto* received = std::get_if<Received>(&event)) {
        roster_->on_message(received->from, received->message);
      }
    }
    time_.advance(milliseconds(5));
    roster_->turn();
  }
  // Links that were made for a message may go.
  void let_time_pass() {
    time_.advance(seconds(11));
    roster_->on_own_pause();
    roster_->turn();
  }
  bool run_until(const std::function<bool()>& done) {
    const TimePoint end = here_.clock.now() + seconds(20);
    while (!done()) {
      if (here_.clock.now() > end) return false;
      turn_here();
      for (const auto& peer : peers_)
        if (peer->mesh) peer->poll();
    }
    return true;
  }
  static bool was_dismissed(const Node& peer) {
    const auto received = peer.all<Received>();
    return std::ranges::any_of(received, [](const Received& r) {
      const auto* view = std::get_if<View>(&r.message);
      return view != nullptr && view->kind == ViewKind::kDisconnect;
    });
  }

 private:
  const Node& node_of(const NodeId& id) const {
    return **std::ranges::find_if(peers_, [&](const auto& peer) { return peer->id() == id; });
  }
  Node here_;
  ManualClock time_;  // the roster's
  std::vector<std::unique_ptr<Node>> peers_;
  std::optional<Roster> roster_;
};

class ReplacedNeighbour : public ::testing::Test {
 protected:
  static constexpr std::size_t kLast = Neighbourhood::kPeers - 1;

  // All but one peer are neighbours, then the last takes the place of one of them, while the peers
  // are busy: what happens meanwhile is all there when they look. Null: it failed.
  Node* replace_one() {
    for (std::size_t i = 0; i < kLast; ++i) hood.join(i);
    const auto all_linked = [&] {
      for (std::size_t i = 0; i < kLast; ++i)
        if (!here.mesh->linked(hood.peer(i).id())) return false;
      return hood.neighbours().size() == kLast;
    };
    if (!hood.run_until(all_linked)) return nullptr;
    hood.let_time_pass();
    EXPECT_EQ(hood.neighbours().size(), kLast);
    hood.join(kLast);
    for (int turn = 0; turn < 50; ++turn) hood.turn_here();
    const std::vector<NodeId> now = hood.neighbours();
    for (std::size_t i = 0; i < kLast; ++i)
      if (std::ranges::find(now, hood.peer(i).id()) == now.end()) return &hood.peer(i);
    return nullptr;
  }
  Neighbourhood hood;
  Node& here = hood.here();
};

TEST_F(ReplacedNeighbour, ReadsSoBeforeItsLinkGoes) {
  const Node* replaced = replace_one();
  ASSERT_NE(replaced, nullptr);
  EXPECT_TRUE(hood.run_until([&] { return Neighbourhood::was_dismissed(*replaced); }));
  EXPECT_EQ(replaced->downs(here.id()), 0U);
  EXPECT_TRUE(hood.run_until([&] { return replaced->downs(here.id()) == 1; }));
}

TEST_F(ReplacedNeighbour, ThatGoesFirstIsNotDialledAgain) {
  Node* replaced = replace_one();
  ASSERT_NE(replaced, nullptr);
  ASSERT_TRUE(hood.run_until([&] { return Neighbourhood::was_dismissed(*replaced); }));
  MeshSettings settings = quick_settings();
  settings.listen = replaced->address();
  replaced->stop();
  ASSERT_TRUE(hood.run_until([&] { return !here.mesh->linked(replaced->id()); }));
  replaced->restart(settings);
  const std::size_t made = replaced->ups(here.id());
  for (int turn = 0; turn < 100; ++turn) {
    hood.turn_here();
    replaced->poll();
  }
  EXPECT_EQ(replaced->ups(here.id()), made);
}

}  // namespace
}  // namespace kith::node::testing
