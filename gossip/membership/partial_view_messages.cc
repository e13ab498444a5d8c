// What a PartialView does with each message. Whoever sends is proven; what it says is not.
#include <algorithm>
#include <span>

#include "gossip/membership/partial_view.h"

namespace kith::gossip {

using schema::MemberRecord;
using schema::View;
using schema::ViewKind;

void PartialView::on_view(TimePoint now, const NodeId& from, const View& view) {
  if (from == own_.id || !messages_.take(now, from)) {
    ++counters_.dropped;
    return;
  }
  switch (view.kind) {
    case ViewKind::kJoin:
      return on_join(now, from, view);
    case ViewKind::kForwardJoin:
      return on_forward_join(now, from, view);
    case ViewKind::kNeighbour:
      return on_neighbour(now, from, view, false);
    case ViewKind::kNeighbourUrgent:
      return on_neighbour(now, from, view, true);
    case ViewKind::kAccepted:
      return on_accepted(now, from, view);
    case ViewKind::kRefused:
      return on_refused(now, from, view);
    case ViewKind::kDisconnect:
      return on_disconnect(now, from);
    case ViewKind::kShuffle:
      return on_shuffle(now, from, view);
    case ViewKind::kShuffleReply:
      return on_shuffle_reply(view);
    case ViewKind::kUnknown:
      break;
  }
  ++counters_.dropped;
}

void PartialView::on_join(TimePoint now, const NodeId& from, const View& view) {
  const MemberRecord* record = own_record_of(from, from, view);
  if (record == nullptr) return;
  const MemberRecord joiner = *record;
  for (const auto& member : active_.draw(random_, settings_.active_max, from))
    outgoing_.push_back(
        {member->id,
         View{ViewKind::kForwardJoin, settings_.join_walk, view.sequence, from, {joiner}}});
  if (activate(now, joiner, true)) {
    send(from, ViewKind::kAccepted, view.sequence, {own_});
    return;
  }
  // Too many joined here at once: it asks others.
  add_passive(joiner, nullptr);
  std::vector<MemberRecord> others =
      sample_records(settings_.shuffle_active, settings_.shuffle_passive, from);
  others.insert(others.begin(), own_);
  send(from, ViewKind::kRefused, view.sequence, std::move(others));
}

void PartialView::on_forward_join(TimePoint now, const NodeId& from, const View& view) {
  const MemberRecord* record = own_record_of(view.origin, from, view);
  if (record == nullptr) return;
  const MemberRecord joiner = *record;
  const unsigned ttl = std::min<unsigned>(view.ttl, settings_.join_walk);
  const auto onward = active_.draw(random_, 2, from);
  const auto next =
      std::ranges::find_if(onward, [&](const auto& member) { return member->id != joiner.id; });
  if (ttl == settings_.passive_walk) add_passive(joiner, nullptr);
  if (ttl > 0 && next != onward.end()) {
    outgoing_.push_back(
        {(*next)->id, View{ViewKind::kForwardJoin, ttl - 1, view.sequence, view.origin, {joiner}}});
    return;
  }
  if (active_.contains(joiner.id) || asked_.contains(joiner.id)) return;
  add_passive(joiner, nullptr);
  if (asked_.size() >= settings_.active_max) return;
  asked_[joiner.id] = {now + settings_.request_timeout, false};
  send(joiner.id, active_.size() == 0 ? ViewKind::kNeighbourUrgent : ViewKind::kNeighbour,
       sequence_++, {own_});
}

void PartialView::on_neighbour(TimePoint now, const NodeId& from, const View& view, bool urgent) {
  const bool bare = view.records.empty();
  const MemberRecord* record = bare ? record_of(from) : own_record_of(from, from, view);
  if (record == nullptr) {
    if (bare) send(from, ViewKind::kRefused, view.sequence);
    return;
  }
  const MemberRecord asking = *record;
  if (activate(now, asking, urgent)) {
    if (bare)
      send(from, ViewKind::kAccepted, view.sequence);
    else
      send(from, ViewKind::kAccepted, view.sequence, {own_});
    return;
  }
  add_passive(asking, nullptr);
  send(from, ViewKind::kRefused, view.sequence, {own_});
}

void PartialView::on_accepted(TimePoint now, const NodeId& from, const View& view) {
  if (active_.contains(from)) return;  // confirmed
  const auto it = asked_.find(from);
  if (it == asked_.end()) {  // we did not ask, or no longer
    send(from, ViewKind::kDisconnect, sequence_++);
    return;
  }
  const bool is_join = it->second.is_join;
  asked_.erase(it);
  const MemberRecord* record = own_record_of(from, from, view);
  if (record == nullptr) return;
  // A place that was taken meanwhile stays taken, but for whom we joined: it leads to others.
  if (activate(now, *record, is_join))
    ++counters_.promotions;
  else
    send(from, ViewKind::kDisconnect, sequence_++);
}

void PartialView::on_refused(TimePoint now, const NodeId& from, const View& view) {
  const bool asked = asked_.erase(from) > 0;
  if (!asked && !active_.contains(from)) return;
  ++counters_.refusals;
  deactivate(from, true);  // it does not hold us
  const std::size_t records_max = settings_.shuffle_active + settings_.shuffle_passive + 1;
  for (const MemberRecord& record :
       std::span(view.records).first(std::min(view.records.size(), records_max)))
    if (check(record, Word::kOthers)) add_passive(record, nullptr);
  if (active_.size() < settings_.active_low) promote(now);
}

void PartialView::on_disconnect(TimePoint now, const NodeId& from) {
  if (!active_.contains(from)) return;
  deactivate(from, true);
  if (active_.size() < settings_.active_low) promote(now);
}

void PartialView::on_shuffle(TimePoint, const NodeId& from, const View& view) {
  const std::size_t records_max = settings_.shuffle_active + settings_.shuffle_passive + 1;
  const MemberRecord* origin = own_record_of(view.origin, from, view);
  if (origin == nullptr || view.records.size() > records_max) {
    ++counters_.dropped;
    return;
  }
  const unsigned ttl = std::min<unsigned>(view.ttl, settings_.shuffle_walk);
  if (ttl > 1 && active_.size() > 1) {
    const auto onward = active_.draw(random_, 2, from);
    const auto next =
        std::ranges::find_if(onward, [&](const auto& member) { return member->id != view.origin; });
    if (next != onward.end()) {
      outgoing_.push_back({(*next)->id, View{ViewKind::kShuffle, ttl - 1, view.sequence,
                                             view.origin, view.records}});
      return;
    }
  }
  std::vector<MemberRecord> answer = sample_records(0, view.records.size(), view.origin);
  std::vector<NodeId> given;
  for (const MemberRecord& record : answer) given.push_back(record.id);
  for (const MemberRecord& record : view.records)
    if (check(record, Word::kOthers)) add_passive(record, &given);
  send(view.origin, ViewKind::kShuffleReply, view.sequence, std::move(answer));
}

void PartialView::on_shuffle_reply(const View& view) {
  const std::size_t records_max = settings_.shuffle_active + settings_.shuffle_passive + 1;
  if (shuffle_sequence_ == 0 || view.sequence != shuffle_sequence_ ||
      view.records.size() > records_max) {
    ++counters_.dropped;
    return;
  }
  shuffle_sequence_ = 0;
  for (const MemberRecord& record : view.records)
    if (check(record, Word::kOthers)) add_passive(record, &given_away_);
  given_away_.clear();
}

}  // namespace kith::gossip
