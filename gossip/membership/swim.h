// Swim: who is there. Random probes with indirect helpers find who does not answer (SWIM: Das,
// Gupta, Motivala 2002), Lifeguard keeps a slow observer from blaming others (Dadgar, Phillips,
// Currey, arXiv 1707.00788), records and accusations ride on every message, and digests repair what
// was lost.
//
// A step machine like the exchange: no clock, no sockets, no cryptography of its own; the same code
// runs in the daemon and, ten thousand times, in the simulator. Records and accusations that are
// news are verified through RecordAuthority before they change anything.
//
// Rules:
// - Order of what is known of a member: (incarnation, state), LEFT > DEAD > SUSPECT > ALIVE; never
// a clock. Within one incarnation
//   `version` orders the owner's own figures. Incarnation = boot counter << 32 | refutations of
//   this life.
// - Only the owner signs a record; others sign accusations. A member is dead when this node's
// suspicion of it ends with two
//   distinct accusers (one, if nobody else is left who could accuse). Nobody's word alone removes
//   anybody.
// - Each accuser's accusations are limited in rate; what is above is dropped and counted.
// - Whoever is accused raises its incarnation and says so; what it is told of itself comes first in
// every message to it.
// - Dead members are asked again, more and more rarely, and forgotten after `forget_after`; their
// progress is kept elsewhere.
// - After a pause of our own nobody is convicted for one suspicion window.
//
// Thread: one owner (control loop). Costs, whatever the number of members: per probe interval one
// PING with our record and one PONG, per gossip interval one GOSSIP with four records of others,
// per sync interval a digest of 0.6 kB. Only while there is news (a change of state, an address, a
// run state) do all these carry more, and `gossip_fanout` GOSSIPs go out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/random.h"
#include "schema/messages.h"

namespace kith::gossip {

// All derived from the preset's probe interval; the formulas are memberlist's (reliability:
// formulas).
struct SwimSettings {
  Duration probe_interval = std::chrono::milliseconds(200);
  Duration probe_timeout = std::chrono::milliseconds(
      100);              // before helpers are asked; grows with local health and measured RTT
  unsigned helpers = 3;  // of an indirect probe
  // Suspicion lasts between min and max = factor * min; min = mult * max(1, log10 n) *
  // probe_interval. It starts at max and shrinks with the logarithm of independent confirmations.
  unsigned suspicion_mult = 20;
  unsigned suspicion_max_factor = 2;
  unsigned accusers_to_convict = 2;
  unsigned health_max = 8;  // local health multiplies timeouts and the probe interval by 1 to this
  Duration gossip_interval = std::chrono::milliseconds(200);
  unsigned gossip_fanout = 3;
  unsigned hurry_fanout = 16;         // of hurry(): everybody in a small cluster
  unsigned retransmit_mult = 4;       // a change is sent mult * ceil(log10(n + 1)) times
  std::size_t news_bytes_max = 4096;  // records and accusations in one message, at most about
  Duration sync_interval = std::chrono::seconds(2);  // digest to one random member
  // With neighbours: a probe of somebody else, of whom nothing has been heard for longest. A fifth
  // of it after one that failed: where one died unseen there may be more.
  Duration sweep_interval = std::chrono::seconds(10);
  Duration dead_retry = std::chrono::seconds(6);  // first; doubles to ten times that
  Duration forget_after = std::chrono::hours(5);  // dead and left members
  unsigned accusations_per_interval =
      4;  // taken from one accuser per probe interval; bucket of ten times that
  std::size_t members_max = 20000;

  // preset name (local | lan | wan) as in interface.md; unknown names are a bug.
  static SwimSettings preset(Duration probe_interval);
};

// Above so many members a node keeps links with the active view of a PartialView (partial_view.h)
// only, and gives it to Swim::set_neighbours(); up to it, with everybody. 512 links are cheap, and
// with them every member may be a helper.
inline constexpr std::size_t kPartialViewAbove = 512;

// Signing and checking, brought by whoever has keys. Called by the machine's owner thread.
class RecordAuthority {
 public:
  virtual ~RecordAuthority() = default;
  virtual void sign(schema::MemberRecord& own) = 0;
  virtual void sign(schema::Accusation& own) = 0;
  virtual bool verify(const schema::MemberRecord& record) = 0;
  virtual bool verify(const schema::Accusation& accusation) = 0;
  // Where a record that was taken is kept. Shared, because ten thousand simulated machines hold the
  // same record of each other: the simulator returns one copy per (id, incarnation, version, boot
  // nonce, state). Alone, each is its own.
  virtual std::shared_ptr<const schema::MemberRecord> keep(schema::MemberRecord record) {
    return std::make_shared<const schema::MemberRecord>(std::move(record));
  }
};

struct SwimMember {
  [[nodiscard]] const schema::MemberRecord& record() const {
    return *held;
  }  // `state` is this node's view
  [[nodiscard]] schema::MemberState state() const { return held->state; }

  std::shared_ptr<const schema::MemberRecord> held;  // never null; shared: RecordAuthority::keep()
  TimePoint heard;                                   // last direct message
  TimePoint renewed;             // when its record last got newer, by whoever's word
  TimePoint changed;             // of `state`
  float rtt_seconds = -1.0F;     // < 0: unknown; smoothed
  std::uint32_t place : 17 = 0;  // the table's: where it stands in the list of the living
  std::uint32_t told : 14 = 0;   // which of our own changes it has been sent; 0: none
  bool hinted : 1 = false;  // dead or left by others' unsigned word only: direct contact clears it
};

struct SwimEvent {
  // kRecord: a newer record of the same state (figures, address). kForgotten: out of the table.
  // kUsurped: another process runs with our key and wins; kRefuted: we were accused and answered
  // (once, until nobody has accused us for two suspicions: counters().refutations counts each).
  enum class Kind {
    kJoined,
    kRecord,
    kAlive,
    kSuspect,
    kDead,
    kLeft,
    kReturned,
    kForgotten,
    kRefuted,
    kUsurped
  } kind = Kind::kJoined;
  NodeId id;
  std::string name;
  std::string address;
  schema::MemberState state =
      schema::MemberState::kAlive;  // of kUsurped: what the teller says of it
  Incarnation incarnation = 0;
};

struct SwimOutgoing {
  NodeId to;
  schema::Message message;
};

struct SwimCounters {
  std::uint64_t probes = 0, probes_failed = 0, indirect_asked = 0, indirect_saved = 0, nacks = 0;
  std::uint64_t suspicions = 0, convictions = 0, refutations = 0;
  std::uint64_t accusations_dropped = 0;  // above an accuser's rate, or of unknown members
  std::uint64_t bad_signatures = 0;
  std::uint64_t records_dropped = 0;  // of others, from one who showed forged ones, or too many
  std::uint64_t syncs = 0, records_repaired = 0;
};

class Swim {
 public:
  // `own` needs id, incarnation (boot << 32), boot_nonce and names; the machine signs it and owns
  // its incarnation from now on.
  Swim(SwimSettings settings, schema::MemberRecord own, RecordAuthority& authority, Random random,
       TimePoint now);
  ~Swim();

  // Our figures changed: everything but id, incarnation, boot_nonce, version, state and signature
  // is taken. Signs.
  void set_own(TimePoint now, const schema::MemberRecord& own);
  [[nodiscard]] const schema::MemberRecord& own() const;  // as signed last
  // Tells up to `hurry_fanout` members at once instead of at the next gossip interval: for changes
  // that others wait for.
  void hurry();
  // We leave: the signed record with left = true spreads as LEAVE to every member
  // (take_outgoing()).
  void leave(TimePoint now);

  // A record from a handshake or a seed's WELCOME; `direct`: it came from its owner over a proven
  // link. False: its signature is wrong (the sender should not be believed).
  bool on_record(TimePoint now, const schema::MemberRecord& record, bool direct);
  // PING PONG PING_REQUEST NACK GOSSIP DIGEST SYNC LEAVE of a proven sender; others are ignored.
  void on_message(TimePoint now, const NodeId& from, const schema::Message& message);
  // Whether we have a link over which messages reach this node. Losing one hurries a probe, and so
  // does a new one to a suspect; a dead member is asked at once. Members without a link are probed
  // through helpers, and the owner is expected to dial members() by itself. An owner that never
  // calls this has a transport that reaches everybody.
  void on_link(TimePoint now, const NodeId& id, bool up);
  // The owner did not run for so long that it must have been stopped.
  void on_own_pause(TimePoint now);
  // Only with partial views: who may be probed and gossiped with directly. Now and then a member of
  // whom there has been no news for long is probed too (sweep_interval), since all its neighbours
  // may have died with it: the owner makes a link for a PING to a member without one, and keeps it
  // for the answer. nullopt: everybody. A lost link should be told (on_link) before the neighbour
  // that it led to is dropped here.
  void set_neighbours(std::optional<std::vector<NodeId>> neighbours);

  void tick(TimePoint now);
  [[nodiscard]] TimePoint next_deadline() const;
  std::vector<SwimOutgoing> take_outgoing();
  std::vector<SwimEvent> take_events();

  [[nodiscard]] const std::map<NodeId, SwimMember>& members() const;  // self excluded
  [[nodiscard]] const SwimMember* find(const NodeId& id) const;
  // What is held against a member in its present incarnation: one per accuser, at most 8.
  [[nodiscard]] std::vector<schema::Accusation> accusations(const NodeId& id) const;
  [[nodiscard]] std::size_t count(schema::MemberState state) const;
  // All of whom we knew are suspect or dead: it is us who are cut off.
  [[nodiscard]] bool isolated() const;
  [[nodiscard]] unsigned local_health() const;  // 0 = well
  [[nodiscard]] const SwimCounters& counters() const;
  // Suspicion bounds at this cluster size, for people and tests.
  [[nodiscard]] Duration suspicion_min() const;
  [[nodiscard]] Duration suspicion_max() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kith::gossip
