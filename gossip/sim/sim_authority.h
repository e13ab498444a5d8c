// SimAuthority: signatures of the simulated world, and one copy of each record for all machines
// that hold it (ten thousand tables of ten thousand members fit because of that). A keyed 64-bit
// hash in place of Ed25519: a thousandth of the cost, and what somebody else made up or altered is
// still refused, unless the simulation itself (a lying node) has signed it. Thread: the
// simulation's.
#pragma once

#include <memory>
#include <vector>

#include "gossip/membership/swim.h"
#include "gossip/sim/event_queue.h"

namespace kith::sim {

class SimAuthority final : public gossip::RecordAuthority {
 public:
  explicit SimAuthority(std::uint64_t seed) : seed_(seed) {}

  void sign(schema::MemberRecord& own) override;
  void sign(schema::Accusation& own) override;
  bool verify(const schema::MemberRecord& record) override;
  bool verify(const schema::Accusation& accusation) override;
  std::shared_ptr<const schema::MemberRecord> keep(schema::MemberRecord record) override;

 private:
  // Shared by the machines' tables; gone when the last of them has a newer one.
  using Kept = std::weak_ptr<const schema::MemberRecord>;
  struct Shelf {
    std::vector<Kept> kept;  // newest last
    std::size_t sweep_at = 16;
  };
  std::vector<Shelf> shelves_;  // [node]
  std::uint64_t seed_;          // stands for everybody's secret key
};

}  // namespace kith::sim
