// JoinMachine: when a node that starts may train: after reaching a member, or alone if it has no
// seeds, was told to
// (--bootstrap), or is itself one of the seeds. Seeds are dialled for ever by the Mesh; this only
// decides. It never starts alone silently: waiting and starting alone are events that the control
// loop says out loud. A step machine: no clock. Thread: control loop.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "schema/messages.h"

namespace kith::node {

struct JoinSettings {
  std::vector<std::string> seeds;
  bool own_address_among_seeds = false;
  bool bootstrap = false;
  Duration grace{};         // before starting alone, when that is allowed
  Duration join_timeout{};  // 0: wait for ever
};

enum class JoinState { kSeeking, kJoined, kAlone, kTimedOut, kRefused };

class JoinMachine {
 public:
  JoinMachine(JoinSettings settings, TimePoint now);

  void on_peer(TimePoint now);  // a link to a member is bound
  // `by_all`: every address that the name stands for has refused, the last one now.
  void on_refused(const std::string& seed, const schema::Reject& reject, bool by_all = true);
  void on_unreachable(const std::string& seed, const std::string& why);
  void tick(TimePoint now);

  [[nodiscard]] JoinState state() const { return state_; }
  // What was tried and why it failed: one clause per seed.
  [[nodiscard]] std::string explain() const;
  [[nodiscard]] TimePoint next_deadline() const;

 private:
  [[nodiscard]] bool may_start_alone() const;

  JoinSettings settings_;
  TimePoint started_;
  JoinState state_ = JoinState::kSeeking;
  bool self_seen_ = false;
  std::map<std::string, std::string> trouble_;  // seed -> last reason
  std::set<std::string> refused_;               // seeds of which every address refused last
};

}  // namespace kith::node
