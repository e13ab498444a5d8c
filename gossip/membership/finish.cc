#include "gossip/membership/finish.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace kith::gossip {

using schema::RunState;

namespace {

// Takes part in the consensus: it holds a replica of this run that is neither fresh nor given up.
bool takes_part(const FinishMachine::Peer& peer) {
  return peer.live &&
         (peer.run_state == RunState::kTraining || peer.run_state == RunState::kFinishing ||
          peer.run_state == RunState::kComplete);
}

}  // namespace

FinishMachine::FinishMachine(FinishSettings settings)
    : settings_(settings), distance_(settings.fragments, std::numeric_limits<double>::infinity()) {
  KITH_CHECK(settings.fragments > 0, "a model has at least one fragment");
}

bool FinishMachine::alone() const { return std::none_of(peers_.begin(), peers_.end(), takes_part); }

bool FinishMachine::converged() const {
  if (phase_ == FinishPhase::kRunning || !viewed_) return false;
  if (alone()) return true;
  return std::all_of(distance_.begin(), distance_.end(),
                     [this](double distance) { return distance < settings_.distance_max; });
}

bool FinishMachine::somebody_has_it() const {
  return std::any_of(peers_.begin(), peers_.end(), [this](const Peer& peer) {
    return peer.live && (peer.id == final_->declarer || peer.run_state == RunState::kComplete);
  });
}

void FinishMachine::begin(TimePoint now) {
  if (phase_ != FinishPhase::kRunning) return;
  phase_ = FinishPhase::kConverging;
  viewed_ = false;
  began_ = last_sign_ = now;
  std::fill(distance_.begin(), distance_.end(), std::numeric_limits<double>::infinity());
}

void FinishMachine::on_distance(FragmentIndex fragment, double relative) {
  if (phase_ == FinishPhase::kConverging && fragment < distance_.size())
    distance_[fragment] = relative;
}

void FinishMachine::update(TimePoint now, std::vector<Peer> peers) {
  peers_ = std::move(peers);
  viewed_ = true;
  if (phase_ == FinishPhase::kFetching && !somebody_has_it()) {
    // The declarer died before anybody had its state: the next id goes on.
    agree_again();
    reverted_ = true;
  }
  if (phase_ == FinishPhase::kConverging && converged()) {
    const bool all = std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
      return !takes_part(peer) || (peer.run_state == RunState::kFinishing && peer.converged);
    });
    const bool lowest = std::all_of(peers_.begin(), peers_.end(), [this](const Peer& peer) {
      return !takes_part(peer) || settings_.self < peer.id;
    });
    if (all && lowest) phase_ = FinishPhase::kDeclaring;
  }
  if (phase_ == FinishPhase::kComplete)
    shared_ = shared_ || std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
                return peer.live && peer.run_state == RunState::kComplete;
              });
  if (phase_ == FinishPhase::kComplete && written_) {
    const bool everybody = std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
      return !peer.live || peer.run_state == RunState::kComplete ||
             peer.run_state == RunState::kLeaving;
    });
    if (everybody || now - last_sign_ > settings_.linger_max) phase_ = FinishPhase::kOver;
  }
}

bool FinishMachine::wins(const NodeId& from, const schema::Final& final) const {
  if (!final_) return true;
  if (final_->root == final.root) return false;
  const bool anew = phase_ == FinishPhase::kFetching && from == final.declarer;
  return final.declarer < final_->declarer || (anew && final.declarer == final_->declarer);
}

bool FinishMachine::on_final(TimePoint now, const NodeId& from, const schema::Final& final) {
  if (phase_ == FinishPhase::kOver || !wins(from, final)) return false;
  if (phase_ == FinishPhase::kRunning) begin(now);
  final_ = final;
  phase_ = FinishPhase::kFetching;
  last_sign_ = now;
  return true;
}

void FinishMachine::on_withdrawn(const NodeId& from) {
  if (phase_ != FinishPhase::kFetching || from != final_->declarer) return;
  const bool held = std::any_of(peers_.begin(), peers_.end(), [&](const Peer& peer) {
    return peer.live && peer.id != from && peer.run_state == RunState::kComplete;
  });
  if (held) return;
  agree_again();
  reverted_ = true;
}

void FinishMachine::declared(TimePoint now, const schema::Final& final) {
  if (phase_ != FinishPhase::kDeclaring) return;  // a lower declarer's arrived meanwhile
  final_ = final;
  completed(now);
  shared_ = false;
}

void FinishMachine::completed(TimePoint now) {
  if (phase_ == FinishPhase::kOver) return;
  phase_ = FinishPhase::kComplete;
  written_ = false;
  shared_ = true;  // it was fetched
  last_sign_ = now;
}

void FinishMachine::written() { written_ = true; }

void FinishMachine::served(TimePoint now) { last_sign_ = std::max(last_sign_, now); }

void FinishMachine::agree_again() {
  final_.reset();
  phase_ = FinishPhase::kConverging;
}

bool FinishMachine::on_own_pause() {
  if (alone()) return false;
  std::fill(distance_.begin(), distance_.end(), std::numeric_limits<double>::infinity());
  const bool own =
      phase_ == FinishPhase::kDeclaring || (phase_ == FinishPhase::kComplete && !shared_);
  if (own) agree_again();
  return own;
}

bool FinishMachine::take_reverted() { return std::exchange(reverted_, false); }

}  // namespace kith::gossip
