// StateFetcher's other half: donors that are lost, and time.
#include <algorithm>

#include "gossip/transfer/state_transfer_fetch.h"

namespace kith::gossip {
namespace {

using Loss = DonorPool::Loss;

constexpr int kSilentRetries = 3;   // then others are asked for what a silent donor has open
constexpr unsigned kImagesMax = 3;  // of one donor's moments: what changes for ever never ends

std::string seconds_text(Duration d) {
  return std::to_string(static_cast<int>(to_seconds(d))) + " s";
}

Error failed(std::string text) { return {ErrorCode::kFailed, std::move(text)}; }

}  // namespace

void StateFetcher::set_donors(TimePoint now, const std::vector<NodeId>& donors,
                              std::vector<Outgoing>& out) {
  if (!active_) return;
  now_ = now;
  for (const NodeId& id : pool_.set(donors)) {
    if (!active_) return;
    drop(now, id, failed("the donor " + id.short_hex() + " was taken off"), Loss::kTakenOff,
         Tell::kYes, out);
  }
  request_more(now, out);
}

void StateFetcher::put_back(const ItemKey& key) {
  if (MomentsQueue::is_part(key)) {
    moments_.put_back(key);
  } else {
    queue_.push_front(key);
  }
}

bool StateFetcher::has_open(const NodeId& donor, Which which) const {
  return std::ranges::any_of(open_, [&](const auto& entry) {
    const Item& item = entry.second;
    const bool moments = MomentsQueue::is_part(item.key);
    return item.donor == donor && (which == Which::kAll || moments == (which == Which::kMoments));
  });
}

void StateFetcher::release(const NodeId& donor, Which which, Tell tell,
                           std::vector<Outgoing>& out) {
  std::vector<ItemKey> keys;
  for (auto it = open_.begin(); it != open_.end();) {
    const bool moments = MomentsQueue::is_part(it->second.key);
    if (it->second.donor != donor ||
        (which != Which::kAll && moments != (which == Which::kMoments))) {
      ++it;
      continue;
    }
    if (tell == Tell::kYes) {
      out.push_back({donor, schema::Aborted{it->first, schema::AbortReason::kWithdrawn}, {}});
    }
    keys.push_back(it->second.key);
    pool_.closed(donor);
    it = open_.erase(it);
  }
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) put_back(*key);
}

void StateFetcher::drop(TimePoint now, const NodeId& donor, Error why, Loss loss, Tell tell,
                        std::vector<Outgoing>& out) {
  release(donor, Which::kAll, tell, out);
  pool_.drop(donor, std::move(why), loss);
  if (moments_.donor() == donor && moments_.pending()) moments_.restart(true);
  if (pool_.empty()) return end(pool_.verdict(), out);
  request_more(now, out);
}

// The donor has another image of its moments now than the one that we have a part of.
void StateFetcher::restart_moments(TimePoint now, const NodeId& donor, std::vector<Outgoing>& out) {
  if (moments_.restarts_in_place() >= kImagesMax) {
    return drop(
        now, donor,
        failed("the moments of " + donor.short_hex() + " changed while they were fetched, " +
               std::to_string(kImagesMax) + " times"),
        Loss::kMayReturn, Tell::kYes, out);
  }
  release(donor, Which::kMoments, Tell::kYes, out);
  moments_.restart(false);
  request_more(now, out);
}

void StateFetcher::peer_up(TimePoint now, const NodeId& peer) {
  for (auto& [e, item] : open_) {
    if (item.donor == peer && !item.header) item.ask_at = now;
  }
}

void StateFetcher::peer_gone(TimePoint now, const NodeId& peer, std::vector<Outgoing>& out) {
  if (!active_ || !pool_.contains(peer)) return;
  now_ = now;
  drop(now, peer, failed("the donor " + peer.short_hex() + " is gone"), Loss::kMayReturn, Tell::kNo,
       out);
}

// ---- time

// With others at hand a silent donor is dropped in half the time, so that they have the other half
// before the fetch counts as stuck.
Duration StateFetcher::patience() const {
  return pool_.size() > 1 ? settings_.give_up_after / 2 : settings_.give_up_after;
}

// Others are asked for what a silent donor has open; it is asked again later, and dropped in the
// end. Moments stay with it until then: they would have to start again.
void StateFetcher::watch(TimePoint now, const NodeId& donor, std::vector<Outgoing>& out) {
  const auto since = pool_.silent_since(donor);
  if (!since) return;
  if (now >= *since + patience()) {
    return drop(now, donor,
                failed("the donor " + donor.short_hex() + " sent nothing for " +
                       seconds_text(now - *since)),
                Loss::kMayReturn, Tell::kYes, out);
  }
  if (pool_.size() < 2 || now < *since + kSilentRetries * settings_.retry_interval) return;
  if (!has_open(donor, Which::kFragments)) return;
  release(donor, Which::kFragments, Tell::kYes, out);
  pool_.rest(now, donor, {});
  pool_.keep_silent_since(donor, *since);
}

// Pinned to a donor that only ever says BUSY, while others have answered.
void StateFetcher::watch_moments(TimePoint now, std::vector<Outgoing>& out) {
  if (!moments_.pending() || !moments_.donor() || moments_.started()) return;
  if (pool_.size() < 2 || now < moments_.pinned_at() + patience()) return;
  const NodeId donor = *moments_.donor();
  release(donor, Which::kMoments, Tell::kYes, out);
  pool_.rest(now, donor, {});
  moments_.restart(true);
}

void StateFetcher::tick(TimePoint now, std::vector<Outgoing>& out) {
  if (!active_) return;
  now_ = now;
  if (now >= last_progress_ + settings_.give_up_after) return end_without_progress(now, out);
  for (const NodeId& donor : pool_.ids()) {
    watch(now, donor, out);
    if (!active_) return;
  }
  watch_moments(now, out);
  for (auto& [e, item] : open_) {
    if (item.ask_at > now) continue;
    item.ask_at = now + settings_.retry_interval;
    ask(e, item, out);
  }
  request_more(now, out);
}

void StateFetcher::end_without_progress(TimePoint now, std::vector<Outgoing>& out) {
  for (const NodeId& donor : pool_.ids()) {
    pool_.drop(donor,
               failed("the donor " + donor.short_hex() + " sent nothing for " +
                      seconds_text(now - last_progress_) + (busy_heard_ ? " (busy)" : "")),
               Loss::kMayReturn);
  }
  end(pool_.verdict(), out);
}

TimePoint StateFetcher::next_deadline() const {
  if (!active_) return TimePoint::max();
  TimePoint next = last_progress_ + settings_.give_up_after;
  for (const auto& [e, item] : open_) next = std::min(next, item.ask_at);
  for (const NodeId& donor : pool_.ids()) {
    const auto since = pool_.silent_since(donor);
    if (!since) continue;
    next = std::min(next, *since + patience());
    if (pool_.size() > 1 && has_open(donor, Which::kFragments)) {
      next = std::min(next, *since + kSilentRetries * settings_.retry_interval);
    }
  }
  const bool moments_wait = moments_.pending() && moments_.wait_until() > now_;
  if (moments_wait) next = std::min(next, moments_.wait_until());
  if (!queue_.empty() || moments_.pending()) next = std::min(next, pool_.next_rest_end(now_));
  return next;
}

}  // namespace kith::gossip
