#include "node/daemon/join.h"

#include <algorithm>

namespace kith::node {

JoinMachine::JoinMachine(JoinSettings settings, TimePoint now)
    : settings_(std::move(settings)), started_(now) {
  if (settings_.seeds.empty()) state_ = JoinState::kAlone;
}

bool JoinMachine::may_start_alone() const {
  return settings_.bootstrap || settings_.own_address_among_seeds || self_seen_;
}

void JoinMachine::on_peer(TimePoint) {
  if (state_ == JoinState::kSeeking || state_ == JoinState::kAlone) state_ = JoinState::kJoined;
}

void JoinMachine::on_refused(const std::string& seed, const schema::Reject& reject, bool by_all) {
  if (reject.code == schema::RejectCode::kSelf) {
    self_seen_ = true;
    return;
  }
  if (std::find(settings_.seeds.begin(), settings_.seeds.end(), seed) == settings_.seeds.end())
    return;  // some member's
  trouble_[seed] = "refused: " + reject.detail;
  if (!by_all) {
    refused_.erase(seed);
    return;
  }
  refused_.insert(seed);
  const bool every = std::all_of(settings_.seeds.begin(), settings_.seeds.end(),
                                 [this](const std::string& s) { return refused_.contains(s); });
  if (state_ == JoinState::kSeeking && every) state_ = JoinState::kRefused;
}

void JoinMachine::on_unreachable(const std::string& seed, const std::string& why) {
  if (std::find(settings_.seeds.begin(), settings_.seeds.end(), seed) == settings_.seeds.end())
    return;
  trouble_[seed] = why;
  refused_.erase(seed);
}

void JoinMachine::tick(TimePoint now) {
  if (state_ != JoinState::kSeeking) return;
  if (may_start_alone() && now - started_ >= settings_.grace)
    state_ = JoinState::kAlone;
  else if (settings_.join_timeout > Duration{0} && now - started_ >= settings_.join_timeout)
    state_ = JoinState::kTimedOut;
}

TimePoint JoinMachine::next_deadline() const {
  if (state_ != JoinState::kSeeking) return TimePoint::max();
  TimePoint at = may_start_alone() ? started_ + settings_.grace : TimePoint::max();
  if (settings_.join_timeout > Duration{0}) at = std::min(at, started_ + settings_.join_timeout);
  return at;
}

std::string JoinMachine::explain() const {
  std::string text;
  for (const std::string& seed : settings_.seeds) {
    if (!text.empty()) text += "; ";
    const auto it = trouble_.find(seed);
    const std::string why = it == trouble_.end() ? "no answer" : it->second;
    text += why.starts_with(seed + ": ") ? why : seed + ": " + why;
  }
  return text;
}

}  // namespace kith::node
