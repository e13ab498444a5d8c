// Network: which copies of a message arrive, and when. Seeded, so that a run can be repeated.
//
// A link is a direction between two nodes; its own delay is constant (drawn once from the seed and
// the pair), so that messages of a link keep their order unless the reorder fault strikes, as on a
// real connection. Faults per message: drop, a second copy, an extra delay. Cuts are partitions:
// both ways, or only from one side to the other. The payload is not touched: what arrives are the
// sender's own bytes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "gossip/sim/event_queue.h"

namespace kith::sim {

struct NetworkSettings {
  double loss = 0.0;       // probability that a message never arrives
  double duplicate = 0.0;  // ... that it arrives twice
  double reorder = 0.0;    // ... that a copy is late by up to `reorder_delay_max`
  Duration latency{0};     // mean one-way delay
  double jitter = 0.1;     // links differ by up to this share of the latency, both ways
  Duration reorder_delay_max{0};
};

// A partition: `side[i]` says on which side node i is. `one_way`: only messages from side 1 to side
// 0 are lost.
struct Cut {
  std::vector<std::uint8_t> side;
  bool one_way = false;
  bool active = false;
};

class Network {
 public:
  Network(NetworkSettings settings, std::uint64_t seed);

  struct Route {
    unsigned copies = 0;  // 0 to 2
    std::array<Duration, 2> delay{};
  };
  Route route(NodeIndex from, NodeIndex to);

  // Cuts are numbered in the order in which they are added.
  std::uint32_t add_cut(Cut cut);
  void set_cut(std::uint32_t cut, bool active);
  // No messages of the link get through now.
  [[nodiscard]] bool is_cut(NodeIndex from, NodeIndex to) const;
  // A cut in both directions, so that membership will miss the other side too.
  [[nodiscard]] bool separated(NodeIndex a, NodeIndex b) const;
  // Ends all faults and cuts; delays stay.
  void heal();

  struct Counts {
    std::uint64_t dropped = 0, cut = 0, duplicated = 0, delayed = 0;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }
  [[nodiscard]] Duration link_delay(NodeIndex from, NodeIndex to) const;
  // No copy arrives later than this after it was sent.
  [[nodiscard]] Duration delay_max() const;

 private:
  Duration late();

  NetworkSettings settings_;
  std::uint64_t seed_;
  Random random_;
  std::vector<Cut> cuts_;
  unsigned active_cuts_ = 0;
  Counts counts_;
};

}  // namespace kith::sim
