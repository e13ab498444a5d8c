// FinishMachine: how a run ends with byte-identical models everywhere (design: section 5,
// "Finish").
//
//   running -> converging   progress reached the length: nobody trains, pair deltas in fp32 go on
//   converging -> declaring every live member converges too and says so; we have the lowest live id
//   converging -> fetching  somebody declared: fetch what differs from the declared state
//   fetching -> converging  the declarer died, or took it back, before anybody had its state
//   declaring, complete -> converging   we stood still, and nobody is known to have what we
//   declared declaring, fetching -> complete   the state is here; linger until every live member
//   has it complete -> over                  ... and the file is written
//
// A step machine over the members' records; no clock, no sockets. The node acts on `phase()` and
// reports back. A declared hash wins over an undeclared one; of two declarations the lower
// declarer's; of one declarer's two, to who still fetches, what it says now. Thread: one owner
// (control loop).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "schema/messages.h"

namespace kith::gossip {

struct FinishSettings {
  NodeId self;
  std::uint32_t fragments = 1;
  double distance_max = 1e-4;  // relative, per fragment, as seen in exchanges
  Duration linger_max =
      std::chrono::seconds(20);  // after the last sign that somebody still fetches
};

enum class FinishPhase { kRunning, kConverging, kDeclaring, kFetching, kComplete, kOver };

class FinishMachine {
 public:
  explicit FinishMachine(FinishSettings settings);

  struct Peer {
    NodeId id;
    schema::RunState run_state = schema::RunState::kTraining;
    bool converged = false;
    bool live = true;  // alive or suspect
  };

  void begin(TimePoint now);  // progress reached the length
  // An exchange of this fragment since begin(): relative distance |a-b| / |mean|.
  void on_distance(FragmentIndex fragment, double relative);
  void update(
      TimePoint now,
      std::vector<Peer> peers);  // call on every change and at least once per probe interval
  // A verified FINAL that `from` sent. True if it is the one to follow now: the first, a lower
  // declarer's, or while we fetch another of the same declarer, from itself (others may tell what
  // it has taken back since).
  bool on_final(TimePoint now, const NodeId& from, const schema::Final& final);
  // `from` says that it has no final state: if it declared what we fetch, and nobody else has that,
  // it took it back.
  void on_withdrawn(const NodeId& from);
  void declared(TimePoint now, const schema::Final& final);  // we computed and signed ours
  void completed(TimePoint now);                             // our state equals the declared one
  void written();                                            // ... and is on disk
  void served(TimePoint now);                                // somebody fetched from us

  // This process stood still while others may have gone on, agreed and ended: what it knew of them
  // is no reason to declare. Distances count anew, and a declaration of our own that nobody is
  // known to have is given up, then true. Those who have it after all tell us so by its FINAL.
  bool on_own_pause();

  // True once after the declared state was lost with its declarer, or taken back: exchanges go on.
  bool take_reverted();

  [[nodiscard]] FinishPhase phase() const { return phase_; }
  // For our own record: true when every fragment's last distance was small, or nobody is there to
  // differ from.
  [[nodiscard]] bool converged() const;
  [[nodiscard]] const std::optional<schema::Final>& final() const { return final_; }
  // A living member has, or had while it lived, the final state that we have.
  [[nodiscard]] bool shared() const { return shared_; }
  [[nodiscard]] TimePoint began() const { return began_; }

 private:
  [[nodiscard]] bool alone() const;
  [[nodiscard]] bool somebody_has_it() const;
  [[nodiscard]] bool wins(const NodeId& from, const schema::Final& final) const;
  void agree_again();

  FinishSettings settings_;
  FinishPhase phase_ = FinishPhase::kRunning;
  std::vector<double> distance_;  // per fragment, last seen; infinity before
  std::vector<Peer> peers_;
  bool reverted_ = false;
  bool viewed_ = false;  // update() was called since begin(): without a view nobody is alone
  std::optional<schema::Final> final_;
  bool written_ = false;
  bool shared_ = false;
  TimePoint began_;
  TimePoint last_sign_;
};

}  // namespace kith::gossip
