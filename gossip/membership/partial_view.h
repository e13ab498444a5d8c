// PartialView: whom to keep a link with when there are too many members for a link with each.
// HyParView (Leitao, Pereira, Rodrigues, DSN 2007): a small symmetric active view, in which
// everybody keeps links and watches each other, and a larger passive view of others to fall back
// upon. Passive views are shuffled by swapping (CYCLON; Voulgaris, Gavidia, van Steen 2005), so
// that what a node holds is close to a uniform sample of all.
//
// A step machine like Swim. Above `kPartialViewAbove` members the owner keeps links with active()
// only, gives it to Swim::set_neighbours() whenever take_changed() says so, and draws peers by
// sample().
//
// What goes on:
// - JOIN to a member: it takes us in at once, dropping somebody else if it must, and sends
// FORWARD_JOIN on random walks: `join_walk`
//   hops later somebody else takes us in, and after `passive_walk` hops we are entered in a passive
//   view.
// - A place in the active view is free: a random passive member is asked (NEIGHBOUR;
// NEIGHBOUR_URGENT if we have nobody, which is
//   not refused). Who does not answer goes out of the passive view, who refuses stays.
// - Whoever is dropped is told (DISCONNECT) and asks somebody else. One active member after the
// other is asked whether it still
//   holds us, so that lost messages leave no one-sided links.
// - Each shuffle interval a sample of both views goes on a random walk; where it ends, as many
// passive members come back. What was
//   given away makes room for what came.
// - Nobody is entered whose record is not signed, who is said to be gone, or whom we know to be
// gone at that incarnation.
//
// Bounds: `active_max` + `passive_max` records; requests, walks and evictions limited per member
// and in all. The owner sends to members without a link too (replies to walks): record_of() has the
// address. Thread: one owner (control loop). Costs per shuffle interval: one SHUFFLE over at most
// `shuffle_walk` hops and its reply, 6 records each, and twelve bare NEIGHBOUR with answers;
// independent of the number of members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "gossip/membership/partial_view_set.h"
#include "gossip/membership/swim.h"
#include "gossip/membership/swim_limits.h"

namespace kith::gossip {

struct PartialViewSettings {
  std::size_t active_max = 6;  // log10 n + c: six keeps 10,000 connected when 80 % fail
  std::size_t active_low = 3;  // below it a new neighbour is sought at once, above at leisure
  std::size_t passive_max = 48;
  unsigned join_walk = 6;     // ARWL
  unsigned passive_walk = 3;  // PRWL
  // Shuffles end two hops away, where our own record is news; each hop further costs as much again.
  // Records still walk far, one exchange after the other.
  unsigned shuffle_walk = 2;
  std::size_t shuffle_active = 2;  // records of each view in a shuffle, beside our own
  std::size_t shuffle_passive = 3;
  Duration shuffle_interval = std::chrono::seconds(10);
  Duration request_timeout = std::chrono::seconds(2);  // for the answer to NEIGHBOUR

  // Sixty probe intervals between shuffles (more often would cost over a fifth of all membership
  // traffic), two for an answer.
  static PartialViewSettings preset(Duration probe_interval);
};

struct PartialViewCounters {
  std::uint64_t joins = 0, promotions = 0, refusals = 0, timeouts = 0, evictions = 0, shuffles = 0;
  std::uint64_t dropped = 0;  // messages above a member's rate, or meaningless
  std::uint64_t bad_signatures = 0;
};

class PartialView {
 public:
  PartialView(PartialViewSettings settings, const schema::MemberRecord& own,
              RecordAuthority& authority, Random random, TimePoint now);

  // Our record as signed last.
  void set_own(const schema::MemberRecord& own);
  // We have a link to this member and nobody to be neighbours with, or it is of an island apart:
  // Swim did not know it, or held it for dead, when it was reached. Seeds are asked for ever, so
  // islands merge.
  void join(TimePoint now, const schema::MemberRecord& contact);
  // A member heard of otherwise: fills the passive view while it has room.
  void offer(const schema::MemberRecord& record);
  // VIEW of a proven sender.
  void on_view(TimePoint now, const NodeId& from, const schema::View& view);
  // The link to it broke, or none could be made. It may come back by others' word.
  void on_link_lost(TimePoint now, const NodeId& id);
  // Swim says that it is dead or has left: nobody's word brings back this incarnation.
  void on_gone(TimePoint now, const NodeId& id, Incarnation incarnation);

  void tick(TimePoint now);
  [[nodiscard]] TimePoint next_deadline() const;
  std::vector<SwimOutgoing> take_outgoing();

  [[nodiscard]] std::vector<NodeId> active() const { return active_.ids(); }
  [[nodiscard]] std::vector<NodeId> passive() const { return passive_.ids(); }
  // True once after the active view changed.
  bool take_changed();
  // A member out of both views, uniformly; nullopt: there is nobody.
  [[nodiscard]] std::optional<NodeId> sample(Random& random) const;
  // Where to reach one of the views; nullptr: unknown.
  [[nodiscard]] const schema::MemberRecord* record_of(const NodeId& id) const;
  // Nobody in the active view: Swim probes nobody, the owner should ask its seeds.
  [[nodiscard]] bool isolated() const { return active_.size() == 0; }
  [[nodiscard]] const PartialViewCounters& counters() const { return counters_; }

 private:
  using Record = schema::MemberRecord;
  void on_join(TimePoint now, const NodeId& from, const schema::View& view);
  void on_forward_join(TimePoint now, const NodeId& from, const schema::View& view);
  void on_neighbour(TimePoint now, const NodeId& from, const schema::View& view, bool urgent);
  void on_accepted(TimePoint now, const NodeId& from, const schema::View& view);
  void on_refused(TimePoint now, const NodeId& from, const schema::View& view);
  void on_disconnect(TimePoint now, const NodeId& from);
  void on_shuffle(TimePoint now, const NodeId& from, const schema::View& view);
  void on_shuffle_reply(const schema::View& view);

  // Who shows a record: its owner, who thereby lives, or others, who may not know that it died.
  enum class Word { kItsOwn, kOthers };
  // A record is fit to be entered: signed, of somebody else; by others' word not of somebody gone.
  bool check(const Record& record, Word word);
  // The record of `id` that opens a message; nullptr: it is not there, or not fit.
  const Record* own_record_of(const NodeId& id, const NodeId& from, const schema::View& view);
  // Into the active view; full: somebody goes if `may_evict` and evictions are not too many. False:
  // no room.
  bool activate(TimePoint now, const Record& record, bool may_evict);
  void deactivate(const NodeId& id, bool keep_passive);
  void add_passive(const Record& record, std::vector<NodeId>* given_away);
  // Asks passive members while places are free: at once below active_low, otherwise once per call.
  void promote(TimePoint now);
  bool ask_somebody(TimePoint now);
  void shuffle(TimePoint now);
  void expire_requests(TimePoint now);
  void send(const NodeId& to, schema::ViewKind kind, std::uint64_t sequence,
            std::vector<Record> records = {});
  [[nodiscard]] std::vector<Record> sample_records(std::size_t active, std::size_t passive,
                                                   const NodeId& except);

  // ---- constant
  const PartialViewSettings settings_;
  RecordAuthority& authority_;

  // ---- state
  Random random_;
  Record own_;
  ViewSet active_;   // <= active_max
  ViewSet passive_;  // <= passive_max; never holds a member of active_
  struct Request {
    TimePoint until;
    bool is_join = false;
  };
  std::map<NodeId, Request> asked_;     // without an answer yet, <= active_max
  std::map<NodeId, Incarnation> gone_;  // <= 1024
  std::uint64_t sequence_ = 1;
  std::uint64_t shuffle_sequence_ = 0;  // of our shuffle on its way; 0: none
  std::vector<NodeId> given_away_;      // what it carries
  std::size_t next_check_ = 0;
  std::uint64_t offered_ = 0;
  RateLimiter messages_;   // per sender
  RateLimiter evictions_;  // of all together
  TimePoint next_promotion_;
  TimePoint next_shuffle_;
  TimePoint next_confirmation_;
  bool changed_ = false;
  std::vector<SwimOutgoing> outgoing_;
  PartialViewCounters counters_;
};

}  // namespace kith::gossip
