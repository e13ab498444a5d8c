#include "gossip/transfer/state_transfer_donors.h"

#include <algorithm>

namespace kith::gossip {
namespace {

constexpr unsigned kRestDoublingsMax = 2;
constexpr std::size_t kReasonsMax = 4;  // in one message

}  // namespace

void DonorPool::reset(const std::vector<NodeId>& donors) {
  donors_.clear();
  dropped_.clear();
  liars_.clear();
  troubles_.clear();
  next_place_ = 0;
  set(donors);
}

std::vector<NodeId> DonorPool::set(const std::vector<NodeId>& donors) {
  std::vector<NodeId> missing;
  for (const auto& [id, donor] : donors_) {
    if (std::ranges::find(donors, id) == donors.end()) missing.push_back(id);
  }
  for (const NodeId& id : donors) {
    if (id == settings_.self || liars_.contains(id) || donors_.contains(id)) continue;
    donors_[id].place = next_place_++;
    dropped_.erase(id);
  }
  return missing;
}

bool DonorPool::has_slot(TimePoint now, const Donor& donor) const {
  const std::size_t most = donor.answered ? std::max(1U, settings_.requests_in_flight) : 1;
  return donor.open < most && donor.rest_until <= now;
}

bool DonorPool::can_take(TimePoint now, const NodeId& id) const {
  const auto it = donors_.find(id);
  return it != donors_.end() && has_slot(now, it->second);
}

bool DonorPool::has_answered(const NodeId& id) const {
  const auto it = donors_.find(id);
  return it != donors_.end() && it->second.answered;
}

std::optional<NodeId> DonorPool::least_loaded(TimePoint now, bool answered_only) const {
  const auto busy = std::ranges::count_if(donors_, [](const auto& d) { return d.second.open > 0; });
  const bool full = static_cast<std::size_t>(busy) >= std::max(1U, settings_.donors_max);
  const std::pair<const NodeId, Donor>* best = nullptr;
  for (const auto& entry : donors_) {
    const Donor& donor = entry.second;
    if (!has_slot(now, donor) || (full && donor.open == 0) || (answered_only && !donor.answered)) {
      continue;
    }
    const auto load = [](const Donor& d) { return std::pair(d.open, d.place); };
    if (best == nullptr || load(donor) < load(best->second)) best = &entry;
  }
  return best == nullptr ? std::nullopt : std::optional(best->first);
}

std::optional<NodeId> DonorPool::next(TimePoint now) const { return least_loaded(now, false); }
std::optional<NodeId> DonorPool::next_answered(TimePoint now) const {
  return least_loaded(now, true);
}

void DonorPool::opened(TimePoint now, const NodeId& id) {
  Donor& donor = donors_[id];
  ++donor.open;
  if (!donor.silent_since) donor.silent_since = now;
}

void DonorPool::closed(const NodeId& id) {
  const auto it = donors_.find(id);
  if (it == donors_.end() || it->second.open == 0) return;
  if (--it->second.open == 0) it->second.silent_since.reset();
}

void DonorPool::answered(TimePoint now, const NodeId& id) {
  const auto it = donors_.find(id);
  if (it == donors_.end()) return;
  it->second.answered = true;
  it->second.rests = 0;
  it->second.silent_since = now;
}

void DonorPool::rest(TimePoint now, const NodeId& id, Duration at_least) {
  const auto it = donors_.find(id);
  if (it == donors_.end()) return;
  Donor& donor = it->second;
  const Duration own = settings_.retry_interval * (1U << std::min(donor.rests, kRestDoublingsMax));
  ++donor.rests;
  donor.rest_until = now + std::max(own, at_least);
  donor.answered = false;  // to begin with, one item again
}

std::optional<TimePoint> DonorPool::silent_since(const NodeId& id) const {
  const auto it = donors_.find(id);
  return it == donors_.end() ? std::nullopt : it->second.silent_since;
}

void DonorPool::keep_silent_since(const NodeId& id, TimePoint since) {
  if (const auto it = donors_.find(id); it != donors_.end()) it->second.silent_since = since;
}

void DonorPool::drop(const NodeId& id, Error why, Loss loss) {
  if (donors_.erase(id) == 0) return;
  if (loss != Loss::kTakenOff) troubles_.push_back({id, why});
  if (loss == Loss::kForGood) liars_[id] = why;
  dropped_[id] = std::move(why);
}

TimePoint DonorPool::next_rest_end(TimePoint now) const {
  TimePoint next = TimePoint::max();
  for (const auto& [id, donor] : donors_) {
    if (donor.rest_until > now) next = std::min(next, donor.rest_until);
  }
  return next;
}

std::vector<NodeId> DonorPool::ids() const {
  std::vector<NodeId> out;
  for (const auto& [id, donor] : donors_) out.push_back(id);
  return out;
}

Status DonorPool::verdict() const {
  if (dropped_.empty()) return fail("there is nobody to fetch from");
  if (dropped_.size() == 1) return fail(dropped_.begin()->second);
  std::string text = "none of " + std::to_string(dropped_.size()) + " donors is left";
  std::size_t said = 0;
  for (const auto& [id, why] : dropped_) {
    if (said++ == kReasonsMax) break;
    text += (said == 1 ? ": " : "; ") + why.message;
  }
  return fail(dropped_.begin()->second.code, text);
}

}  // namespace kith::gossip
