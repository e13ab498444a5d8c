#include "node/daemon/health_checks.h"

#include <algorithm>
#include <string>

#include "node/text/text.h"

namespace kith::node {

using monitoring::HealthCheck;
using schema::RunState;
using Concern = HealthCheck::Concern;

namespace {

constexpr Duration kLoopPatience = std::chrono::seconds(10);
constexpr int kIntervalsLate = 3;  // before checkpoints count as missing
constexpr Duration kLateAtLeast = std::chrono::seconds(60);

HealthCheck trainer_check(const NodeStatus& s, const compute::TrainerStats& t) {
  if (t.healthy) return {"trainer", true, "finite, step " + std::to_string(t.steps)};
  return {"trainer", false, "loss or parameters are not finite: " + s.trouble};
}

HealthCheck loop_check(const NodeStatus& s, TimePoint now) {
  if (now - s.now < kLoopPatience) return {"loop", true, "control loop turns"};
  return {"loop", false, "control loop has not turned for " + seconds_text(now - s.now)};
}

// Isolated is who had members.
HealthCheck members_check(const NodeStatus& s) {
  if (!s.isolated)
    return {"members", true, std::to_string(1 + s.members.size()) + " known", Concern::kPeople};
  return {"members", false,
          "isolated: no member answers, this node goes on alone: look at its network",
          Concern::kPeople};
}

HealthCheck final_check(const NodeStatus& s) {
  if (!s.final_error.empty())
    return {"final model", false, s.final_error + ": make room, it is tried again",
            Concern::kPeople};
  return {"final model", true, s.self.run_state == RunState::kComplete ? "written" : "not due yet",
          Concern::kPeople};
}

// With members that answer, it is those addresses that are wrong, not this node.
HealthCheck key_check(const NodeStatus& s) {
  if (s.key_refusals.empty())
    return {"key", true, "no address ends the key exchange", Concern::kPeople};
  const bool somebody = std::ranges::any_of(s.members, [](const gossip::SwimMember& member) {
    return member.state() == schema::MemberState::kAlive;
  });
  const std::size_t more = s.key_refusals.size() - 1;
  const std::string who =
      s.key_refusals.front() + (more > 0 ? " and " + std::to_string(more) + " more" : "");
  if (somebody) return {"key", true, "other members answer, but not " + who, Concern::kPeople};
  return {"key", false,
          "the key exchange is ended by " + who +
              ": compare cluster.key_file there and here (sha256sum)",
          Concern::kPeople};
}

HealthCheck checkpoint_check(const NodeStatus& s, Duration every, TimePoint now) {
  const CheckpointStats& c = s.checkpoints;
  if (!c.last_error.empty())
    return {"checkpoint", false, c.last_error + ": make room, the node goes on", Concern::kPeople};
  if (c.written == 0) return {"checkpoint", true, "none written yet", Concern::kPeople};
  const Duration age = now - c.last_success;
  const bool late = every > Duration{0} && s.self.run_state == RunState::kTraining &&
                    age > std::max(every * kIntervalsLate, kLateAtLeast);
  const std::string last =
      "last at step " + std::to_string(c.last_step) + ", " + seconds_text(age) + " ago";
  return {"checkpoint", !late, late ? last + ": the disk is slow, or stands still" : last,
          Concern::kPeople};
}

HealthCheck joined_check(const NodeStatus& s) {
  const RunState state = s.self.run_state;
  const bool part =
      state == RunState::kTraining || state == RunState::kFinishing || state == RunState::kComplete;
  if (!part) return {"joined", false, "not training: " + s.waiting_for, Concern::kReadiness};
  return {"joined", true,
          std::string(schema::name_of(state)) + " with " + std::to_string(1 + s.members.size()) +
              " members known",
          Concern::kReadiness};
}

}  // namespace

monitoring::HealthReport health_of(const NodeStatus& status, const compute::TrainerStats& trainer,
                                   Duration checkpoint_every, TimePoint now) {
  return {{trainer_check(status, trainer), loop_check(status, now), members_check(status),
           key_check(status), checkpoint_check(status, checkpoint_every, now), final_check(status),
           joined_check(status)}};
}

}  // namespace kith::node
