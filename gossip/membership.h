// Membership: who is there, by plain heartbeats. Every node sends its own signed record to every member each probe
// interval, with the records that changed last; silence makes a member suspect, then dead, in this node's own view.
//
// A step machine like the exchange: no clock, no sockets. SWIM takes its place behind the same calls later; what it needs
// (states, incarnations, relayed records) is here already. Records handed in have had their signatures verified.
// Order of records: (incarnation, version), never a clock. A dead member's record stays: its samples count.
// Thread: one owner (the control loop). Costs: per node and probe interval one message of about 0.5 kB + 0.5 kB per
// relayed record to each live member.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/random.h"
#include "schema/messages.h"

namespace kith::gossip {

struct MembershipSettings {
  Duration probe_interval = std::chrono::milliseconds(200);
  // Silence of 5 intervals makes suspect, 25 dead: a process stopped for 3 s under preset `local` survives, and a
  // wide-area link may lose four heartbeats in a row.
  unsigned suspect_intervals = 5;
  unsigned dead_intervals = 25;
  std::size_t relayed_max = 32;      // records of others per heartbeat
  unsigned relay_times = 4;          // a changed record is relayed so many times per member, then only by rotation
  std::size_t members_max = 10000;
};

struct Member {
  schema::MemberRecord record;       // state = this node's view
  TimePoint heard;                   // last direct message; start of the watch for a relayed record
  double rtt_seconds = -1.0;         // < 0: unknown
  unsigned relays_left = 0;
};

struct MemberEvent {
  enum class Kind { kJoined, kAlive, kSuspect, kDead, kLeft, kReturned } kind = Kind::kJoined;
  NodeId id;
  std::string name;
  std::string address;
};

class Membership {
 public:
  Membership(MembershipSettings settings, NodeId self, TimePoint now);

  // A record about another node, from a handshake, a heartbeat or a relay; `direct`: the connection is the node's own.
  void on_record(TimePoint now, const schema::MemberRecord& record, bool direct);
  // Heartbeat of `from`, its relayed records excluded (hand those to on_record). Returns nothing; times the echo.
  void on_heartbeat(TimePoint now, const NodeId& from, const schema::Heartbeat& heartbeat);
  void on_leave(TimePoint now, const NodeId& from);
  // True when `record` is newer than what is held: only then is its signature worth verifying.
  [[nodiscard]] bool is_news(const schema::MemberRecord& record) const;

  // Ages silent members. Call at next_deadline().
  void tick(TimePoint now);
  [[nodiscard]] TimePoint next_deadline() const { return next_probe_; }
  // True once per probe interval: time to send heartbeats.
  bool probe_due(TimePoint now);
  // The heartbeat for one member: our record, what changed, and its echo.
  schema::Heartbeat heartbeat_for(TimePoint now, const NodeId& to, const schema::MemberRecord& own, Samples progress);

  // A self-detected pause (the loop did not run for `length`): nobody is convicted for a silence that was ours.
  void on_own_pause(TimePoint now);

  [[nodiscard]] const std::map<NodeId, Member>& members() const { return members_; }  // self excluded
  [[nodiscard]] const Member* find(const NodeId& id) const;
  [[nodiscard]] std::size_t count(schema::MemberState state) const;
  std::vector<MemberEvent> take_events();

 private:
  void set_state(Member& member, schema::MemberState state, MemberEvent::Kind kind);

  MembershipSettings settings_;
  NodeId self_;
  TimePoint next_probe_;
  std::map<NodeId, Member> members_;       // ordered by id: views number themselves alike
  struct Echo {
    std::uint64_t value = 0;
    TimePoint taken;
  };
  std::map<NodeId, Echo> echoes_;          // last `echo` of each member, returned with the next heartbeat
  NodeId rotation_;                        // last record relayed by rotation
  std::vector<MemberEvent> events_;
};

}  // namespace kith::gossip
