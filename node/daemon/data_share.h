// DataShare: keeps the trainer on this node's share of the data while members come and go
// (data.shard = "auto"). What a share is, and what sharing guarantees:
// gossip/membership/data_sharing.h.
//
// Looks at the members once per kLooksPerSettle-th of the time to settle while training, each turn
// before; not at all once the run is finishing or this node leaves: then nothing is trained any
// more. A large table is computed on a thread of its own (above kPairsAtOnce hashes, a
// millisecond). After an adoption the trainer is also told where in the file the cluster is.
//
// Thread: the control loop. The trainer takes a new share between two steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "compute/data.h"
#include "gossip/membership/data_sharing.h"
#include "schema/messages.h"

namespace kith::node {

struct DataShareSettings {
  NodeId self;
  bool shares = false;      // data.shard = "auto"
  Hash256 fingerprint;      // of the file
  std::size_t samples = 0;  // in the file
  std::size_t loaded = 0;   // of these, what this node trains on unless it shares
  std::uint64_t seed = 0;   // the run's
  Duration probe_interval{};
};

class DataShare {
 public:
  // Changes settle for so many probe intervals before anything moves.
  static constexpr int kSettleIntervals = 4;
  static constexpr int kLooksPerSettle = 4;
  static constexpr std::size_t kPairsAtOnce = 1U << 16;

  using Apply =
      std::function<void(compute::SampleMask, std::optional<compute::BatchCursor::Position>)>;
  DataShare(DataShareSettings settings, Apply apply, LogSink& log);

  struct View {
    TimePoint now;
    schema::RunState state = schema::RunState::kWaiting;
    double epoch = 0.0;  // of the cluster
    std::uint64_t adoptions =
        0;  // of this node; one more: it stands where the cluster does from now on
  };
  // Once per turn of the loop. `members`: id -> something with the member's record; what `own` says
  // of the share is kept right.
  template <typename Members>
  void turn(const View& view, const Members& members, schema::MemberRecord& own) {
    if (wants_look(view)) {
      std::vector<NodeId> seen{settings_.self};
      for (const auto& [id, member] : members)
        if (gossip::is_sharer(record_of(member), settings_.fingerprint)) seen.push_back(id);
      look(view, std::move(seen));
    }
    describe(own);
  }
  // Fills shares_data and shard_samples.
  void describe(schema::MemberRecord& own) const;

 private:
  template <typename Member>
  static const schema::MemberRecord& record_of(const Member& member) {
    if constexpr (requires { member.record(); })
      return member.record();
    else
      return member.record;
  }
  bool wants_look(const View& view);
  void look(const View& view, std::vector<NodeId> seen);
  void compute();
  void collect();
  void take(compute::SampleMask mask);
  void follow_cluster(const View& view);

  DataShareSettings settings_;
  Apply apply_;
  LogSink& log_;
  gossip::ShareWatch watch_;
  TimePoint next_look_;
  compute::SampleMask mask_;  // as the trainer has it; empty = all
  std::size_t share_samples_;
  std::uint64_t adoptions_ = 0;
  bool stale_ = false;  // the sharers changed while a share was being computed
  std::future<compute::SampleMask> computing_;
};

}  // namespace kith::node
