// Roster: who is there, as the control loop sees it. It drives gossip::Swim over the control Mesh:
// signs and verifies with the node's key, keeps links to members (also to dead ones: a cut that
// heals must be noticed), says each change of a member's state once, and answers the handshake's
// questions about members.
//
// Above `partial_view_above` members a node keeps links only to the neighbours of its partial view
// (gossip/membership/partial_view.h), and averages with members of that view only: shuffled all the
// time, it is close to a uniform sample of the cluster. The table of members still fills with
// everybody, by digests. Thread: one owner (control loop; the control Mesh asks from inside its
// poll(), on the same thread).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "gossip/membership/partial_view.h"
#include "gossip/membership/swim.h"
#include "node/daemon/handshake.h"
#include "node/daemon/peer_links.h"
#include "node/identity/identity.h"
#include "node/mesh/mesh.h"

namespace kith::node {

struct RosterSettings {
  Duration probe_interval{};
  Duration forget_after{};  // 0: the preset's
  std::size_t partial_view_above = 512;
};

class Roster final : public MemberBook, private gossip::RecordAuthority {
 public:
  using Members = std::map<NodeId, gossip::SwimMember>;

  // `control` is null when there is no network: then nobody else ever appears.
  Roster(RosterSettings settings, const Identity& identity, schema::MemberRecord own, Mesh* control,
         const Clock& clock, LogSink& log, Random random);

  // Dials this address for ever, whoever answers there and whatever becomes of them.
  void seek(const std::string& seed);

  // What the control Mesh reported. False: the record's signature is wrong.
  bool on_peer_up(const PeerUp& up);
  void on_peer_down(const PeerDown& down);
  // True if it was a message of membership.
  bool on_message(const NodeId& from, const schema::Message& message);

  // Our figures changed; what is signed and sent from now on.
  void set_own(const schema::MemberRecord& own);
  [[nodiscard]] const schema::MemberRecord& own() const { return swim_.own(); }
  void on_own_pause() { swim_.on_own_pause(clock_.now()); }
  // Tells what is new at once: see gossip::Swim::hurry().
  void hurry();
  // Says LEAVE to every member.
  void leave();
  // To every member that we have a link to and that `wanted` accepts.
  void send(const schema::Message& message,
            const std::function<bool(const schema::MemberRecord&)>& wanted);

  // Timers, what is to be sent, links, log. Returns what changed since the last turn.
  std::vector<gossip::SwimEvent> turn();
  [[nodiscard]] TimePoint next_deadline() const;

  [[nodiscard]] const Members& members() const { return swim_.members(); }  // self excluded
  [[nodiscard]] const gossip::SwimMember* find(const NodeId& id) const { return swim_.find(id); }
  [[nodiscard]] std::size_t count(schema::MemberState state) const { return swim_.count(state); }
  [[nodiscard]] std::string name_of(const NodeId& id) const;  // or the id's first digits
  [[nodiscard]] const gossip::Swim& swim() const { return swim_; }
  // Whether to keep links for averaging with this member.
  [[nodiscard]] bool is_near(const NodeId& id) const;
  [[nodiscard]] const gossip::PartialView* view() const {
    return view_ ? &*view_ : nullptr;
  }  // null: links with all

  // MemberBook: what the handshake needs to know.
  std::optional<schema::MemberRecord> record_of(const NodeId& id) const override;
  std::vector<schema::MemberRecord> sample(std::size_t most) override;

 private:
  void sign(schema::MemberRecord& own) override;
  void sign(schema::Accusation& own) override;
  bool verify(const schema::MemberRecord& record) override;
  bool verify(const schema::Accusation& accusation) override;
  void send_all();
  void send_or_dial(gossip::SwimOutgoing out);
  void choose_view();
  void watch_neighbours();
  void turn_view(const std::vector<gossip::SwimEvent>& events);
  [[nodiscard]] bool wants_link(const NodeId& id) const;
  [[nodiscard]] std::optional<PeerLinks::Peer> link_to(const NodeId& id,
                                                       const schema::MemberRecord& record) const;
  void link_members();
  void say(const gossip::SwimEvent& event);

  const Identity& identity_;
  Mesh* control_;
  const Clock& clock_;
  LogSink& log_;
  Random random_;
  const RosterSettings settings_;
  gossip::Swim swim_;
  std::optional<gossip::PartialView> view_;
  std::vector<NodeId> watched_;  // what Swim was given as neighbours
  struct Waiting {
    std::optional<schema::Message>
        message;  // empty: sent, the link is kept for the answer, or until it is read
    TimePoint until;
  };
  std::map<NodeId, Waiting> waiting_;  // links made for one message; at most kWaitingMax
  std::optional<PeerLinks> links_;     // empty without a network
  std::set<std::string> seeds_;
  bool links_changed_ = true;
  bool isolated_ = false;
};

}  // namespace kith::node
