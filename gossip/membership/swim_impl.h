// The inside of Swim: its state in one place, its verbs split by concern over the swim_*.cc files.
// Nobody but those includes this. swim.h has the rules, README.md the states.
//
//   swim.cc             calls and messages in, timers, who can be reached
//   swim_records.cc     records: strangers, newer ones, what is said of ourselves
//   swim_accusations.cc accusations, suspicion, conviction, refutation, our own pauses
//   swim_probe.cc       PING, helpers, NACK, local health
//   swim_news.cc        what rides on a message
//   swim_sync.cc        digests and their repair
//
// Thread: one owner, as for Swim. Every container is bounded; the bound stands beside it.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gossip/membership/swim.h"
#include "gossip/membership/swim_limits.h"
#include "gossip/membership/swim_queues.h"
#include "gossip/membership/swim_suspicion.h"
#include "gossip/membership/swim_table.h"

namespace kith::gossip {

// How a record came: from its owner over the owner's link; as news; or in bulk (WELCOME, SYNC),
// where what is new to us is old to most others and need not be told on with haste.
enum class Source { kOwner, kNews, kBulk };

// Differences that others act upon at once, unlike figures.
bool matters(const schema::MemberRecord& a, const schema::MemberRecord& b);

// What is held against one member in its present incarnation.
struct SwimCase {
  std::vector<schema::Accusation> accusations;  // one per accuser, <= kAccusationsPerCase
  TimePoint since;                              // when the suspicion began here
  unsigned retries = 0;                         // dead: how often it has been asked again
};
inline constexpr std::size_t kAccusationsPerCase = 8;

// A set of ids out of which one is drawn, or all in rounds of random order.
class DrawList {
 public:
  bool add(const NodeId& id);
  bool remove(const NodeId& id);
  [[nodiscard]] bool contains(const NodeId& id) const { return places_.contains(id); }
  [[nodiscard]] std::size_t size() const { return ids_.size(); }
  [[nodiscard]] const std::vector<NodeId>& ids() const { return ids_; }
  // Must not be empty.
  const NodeId& draw(Random& random) const { return ids_[random.below(ids_.size())]; }
  const NodeId& next_in_round(Random& random);

 private:
  void swap_places(std::size_t a, std::size_t b);
  std::vector<NodeId> ids_;
  std::unordered_map<NodeId, std::size_t, NodeIdHasher> places_;
  std::size_t round_ = 0;
};

struct SwimProbe {
  enum class Phase {
    kDirect,
    kHelpers,
    kFailed
  } phase = Phase::kDirect;  // kFailed: kept for a late answer's round-trip time
  NodeId target;
  TimePoint sent;
  TimePoint next;     // end of the phase
  TimePoint verdict;  // end of the probe
  std::vector<NodeId> helpers;
  std::vector<NodeId> nacks;
};

// A PING that we sent for somebody else.
struct SwimRelay {
  NodeId requester;
  std::uint64_t sequence = 0;  // the requester's
  NodeId subject;
  TimePoint next;
  bool nacked = false;  // the answer may still come, later
};

class NewsWriter;  // swim_news.cc

struct Swim::Impl {
  Impl(SwimSettings settings_in, schema::MemberRecord own_in, RecordAuthority& authority_in,
       Random random_in, TimePoint now);

  enum class Fill { kNothing, kOwn, kOthers };  // see compose()

  // ---- swim.cc
  void tick(TimePoint now);
  [[nodiscard]] TimePoint next_deadline() const;
  void on_message(TimePoint now, const NodeId& from, const schema::Message& message);
  void on_link(TimePoint now, const NodeId& id, bool up);
  void set_neighbours(std::optional<std::vector<NodeId>> ids);
  void leave(TimePoint now);
  void on_member_timer(TimePoint now, const NodeId& id);
  void forget(SwimMember& member);
  void gossip_tick(TimePoint now);
  void gossip_to(unsigned fanout, Fill first_fill = Fill::kNothing);
  [[nodiscard]] bool reachable(const NodeId& id) const;
  // Up to `count` different members that we reach (neighbours only, if set), without `except`.
  // Suspects only if asked for.
  std::vector<NodeId> draw_members(std::size_t count, const NodeId& except, bool suspects_too);
  const NodeId* draw_one();
  void send(const NodeId& to, schema::Message message);
  [[nodiscard]] std::size_t members_and_self() const { return table.living() + 1; }
  [[nodiscard]] bool quiet() const { return usurped; }

  // ---- swim_records.cc
  // False: the signature is wrong.
  bool take_record(TimePoint now, const NodeId& from, const schema::MemberRecord& record,
                   Source source);
  bool take_stranger(TimePoint now, const NodeId& from, const schema::MemberRecord& record,
                     Source source);
  [[nodiscard]] bool may_introduce(TimePoint now, const NodeId& from,
                                   const schema::MemberRecord& record);
  bool take_newer(TimePoint now, const NodeId& from, SwimMember& member,
                  const schema::MemberRecord& record, Source source);
  void take_older_of_owner(TimePoint now, SwimMember& member, const schema::MemberRecord& record);
  void take_older_told(TimePoint now, const NodeId& from, SwimMember& member,
                       const schema::MemberRecord& record);
  void clear_hint(TimePoint now, SwimMember& member);
  bool take_own(TimePoint now, const NodeId& from, const schema::MemberRecord& record);
  enum class Verdict { kGood, kForged, kUnchecked };  // kUnchecked: above the allowance of `from`
  Verdict check(TimePoint now, const NodeId& from, const schema::MemberRecord& record);
  [[nodiscard]] bool is_distrusted(TimePoint now, const NodeId& id);
  // The one place where a member's record or state changes: table, timers, events, rumours.
  void store(TimePoint now, SwimMember& member, schema::MemberRecord record,
             schema::MemberState state, Source source, bool wave);
  void set_state(TimePoint now, SwimMember& member, schema::MemberState state);
  void sign_own();
  // Something of ours changed that others act upon: everybody is told.
  void own_matters();
  void raise_own(Incarnation above);
  void emit(SwimEvent::Kind kind, const schema::MemberRecord& record);

  // ---- swim_accusations.cc
  void take_accusation(TimePoint now, const NodeId& from, const schema::Accusation& accusation);
  void take_pending(TimePoint now, const NodeId& subject);
  void pass_on(const SwimMember& subject, const schema::Accusation& accusation);
  void keep_for_later(const schema::Accusation& accusation);
  bool believe(TimePoint now, const schema::Accusation& accusation);
  [[nodiscard]] bool may_accuse(const NodeId& accuser) const;
  [[nodiscard]] const schema::Accusation* find_accusation(const Rumour& rumour) const;
  [[nodiscard]] bool holds(const schema::Accusation& accusation) const;
  void add_accusation(TimePoint now, SwimMember& subject, const schema::Accusation& accusation);
  void accuse(TimePoint now, SwimMember& subject);
  void end_suspicion(TimePoint now, SwimMember& member);
  void set_suspicion_timer(TimePoint now, const NodeId& id, const SwimCase& record);
  [[nodiscard]] bool enough_to_convict(const SwimCase& record) const;
  [[nodiscard]] std::size_t voters() const { return 1 + table.count(schema::MemberState::kAlive); }
  void refute(TimePoint now, const NodeId& accuser);
  // Tells `to` what is held against `subject` (which may be `to`), not too often.
  void tell_accusations(TimePoint now, const NodeId& to, const NodeId& subject);
  void note_dying(TimePoint now);
  // Our answer to what `to` told us against us, if no PONG will bring it.
  void answer_accusation(TimePoint now, const NodeId& to);
  void tell_answer(TimePoint now, const NodeId& to, const SwimMember& subject);
  void on_own_pause(TimePoint now);

  // ---- swim_probe.cc
  void probe_tick(TimePoint now);
  // Probe it soon. With partial views members that we have no link to are left to their neighbours,
  // unless `unlinked_too`: we were one of those.
  void hurry(const NodeId& id, bool unlinked_too = false);
  // Probe it soon, through a link made for that if need be.
  void look(TimePoint now, const NodeId& id);
  [[nodiscard]] bool is_stale(TimePoint now, const SwimMember& member) const;
  void sweep_tick(TimePoint now);
  void sweep(TimePoint now, SwimMember& member);
  SwimMember* next_target();
  void start_probe(TimePoint now, SwimMember& member);
  void ask_helpers(TimePoint now, std::uint64_t sequence, SwimProbe& probe);
  void fail_probe(TimePoint now, SwimProbe& probe);
  void probe_timers(TimePoint now);
  void relay_timers(TimePoint now);
  void on_ping(TimePoint now, const NodeId& from, const schema::Ping& ping);
  void on_pong(TimePoint now, const NodeId& from, const schema::Pong& pong);
  void on_ping_request(TimePoint now, const NodeId& from, const schema::PingRequest& request);
  void on_nack(const NodeId& from, const schema::Nack& nack);
  void forward_pong(const NodeId& from, const schema::Pong& pong);
  void send_ping(const NodeId& to, std::uint64_t sequence, const NodeId& about);
  void change_health(int by);
  [[nodiscard]] bool is_probed(const NodeId& id) const;

  // ---- swim_news.cc
  // What must be told: our record if `to` may not have it as it matters, what is held against `to`
  // and `about`, what changed. Besides, with budgets that do not depend on what there is to say:
  // kOwn our record, kOthers newer figures of somebody else.
  schema::News compose(const NodeId& to, std::size_t bytes_max, const NodeId& about = NodeId(),
                       Fill fill = Fill::kNothing);
  void add_own(NewsWriter& writer, const NodeId& to, Fill fill);
  bool add_figures(NewsWriter& writer, const NodeId& to);
  void add_of_others(NewsWriter& writer, const NodeId& to);
  [[nodiscard]] bool has_news() const { return own_repeats > 0 || changes.size() > 0; }
  // Newer figures of a member are told on by everybody once per period: in waves that reach all, of
  // which there are as many as a few records per gossip interval have room for.
  [[nodiscard]] Duration wave_period() const;
  [[nodiscard]] bool next_wave(TimePoint before, TimePoint now) const;
  void add_changes(NewsWriter& writer, const NodeId& to);
  void take_news(TimePoint now, const NodeId& from, const schema::News& news, bool bulk);

  // ---- swim_sync.cc
  void sync_tick(TimePoint now);
  void sync_soon(TimePoint now);  // the last one brought much, there may be more
  void on_digest(TimePoint now, const NodeId& from, const schema::Digest& digest);
  void on_sync(TimePoint now, const NodeId& from, const schema::Sync& sync);
  void answer_entries(TimePoint now, const NodeId& from, const schema::Sync& sync);
  void answer_wanted(const NodeId& from, const std::vector<NodeId>& wanted);

  // ---- constant
  const SwimSettings settings;
  RecordAuthority& authority;

  // ---- ourselves
  Random random;
  schema::MemberRecord own;
  std::uint32_t own_mark = 0;  // number of the last change of ours that matters, 1 to 16383
  unsigned own_repeats = 0;    // messages that still carry it, whoever has been told
  bool leaving = false;
  bool usurped = false;
  unsigned health = 0;
  TimePoint hold_until;                  // nobody is accused or convicted before it
  TimePoint many_dying_until;            // every twentieth is suspect, or was a moment ago
  TimePoint refute_after;                // two refutations keep a distance
  TimePoint refuted_quiet_until;         // no event for refutations till then
  std::optional<NodeId> refute_pending;  // accused too soon after the last one, by whom

  // ---- the others
  SwimTable table;                         // <= members_max
  std::map<NodeId, SwimCase> cases;        // of members: suspect or dead
  std::deque<schema::Accusation> pending;  // of unknown subjects or incarnations, <= 64
  std::map<NodeId, schema::Accusation>
      words;            // only told on: of accusers that do not count, <= 256
  MemberTimers timers;  // of members: end of suspicion, retry, forgetting
  std::map<NodeId, Incarnation>
      forgotten;  // so that hearsay of their death does not bring them back, <= 4096
  std::deque<NodeId> forgotten_order;
  std::set<NodeId> behind;  // showed us an older record of themselves than we hold, <= 64
  DrawList links;           // the owner's
  bool links_known = false;
  std::optional<DrawList> neighbours;

  // ---- probes
  std::map<std::uint64_t, SwimProbe> probes;    // <= 64
  std::map<std::uint64_t, SwimRelay> relays;    // <= 256
  std::deque<std::pair<NodeId, bool>> hurried;  // <= 256
  std::deque<NodeId> to_sweep;                  // <= 64
  std::uint64_t next_sequence = 1;
  NodeId answering;  // its PONG will say what we would otherwise send

  // ---- telling
  RumourQueue changes{512};  // states, incarnations, accusations
  RumourQueue figures{128};  // newer figures
  NodeId rotation;
  RateLimiter accusers;
  RateLimiter requesters;
  RateLimiter told_accusations;
  RateLimiter synced;
  RateLimiter checks;                        // signatures of records, whoever's
  std::map<NodeId, TimePoint> distrusted;    // showed a wrong signature, until then; <= 256
  std::map<NodeId, std::size_t> introduced;  // members that nobody had named before, <= 1024
  TimePoint introduced_until;
  bool in_handshake = false;  // whose records the transport's limits hold down
  RateLimiter figures_taken;  // relayed figures: what their signatures may cost us
  RateLimiter blamed;         // whose accusation of us raised our health

  // ---- times
  TimePoint next_probe;
  TimePoint next_gossip;
  TimePoint next_sync;
  TimePoint next_sweep;

  // ---- outputs
  std::vector<SwimOutgoing> outgoing;
  std::vector<SwimEvent> events;
  SwimCounters counters;
};

}  // namespace kith::gossip
