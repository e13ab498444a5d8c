// What averaging holds beyond training, and that peers which never answer make it no more.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <memory>

#include "base/clock.h"
#include "compute/replica.h"
#include "gossip/exchange/exchange.h"
#include "node/daemon/replica_store.h"

namespace kith::node {
namespace {

using std::chrono::milliseconds;

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

NodeId id(std::uint8_t n) {
  NodeId node;
  node.bytes[0] = n;
  return node;
}

TEST(Memory, AReplicaIsThreeCopiesAndTwoBoundedPools) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has copies of its own";
#endif
  constexpr std::size_t kValues = 11U << 20;  // 44 MiB of fp32
  constexpr std::size_t kCopy = kValues * sizeof(float);
  const std::size_t before = resident_bytes();
  compute::Replica replica(kValues, 4U << 20);
  const std::size_t held = resident_bytes() - before;
  EXPECT_GE(held, 3 * kCopy - (1U << 20))
      << "reserved and touched at start, not page by page under load";
  EXPECT_LE(held, 3 * kCopy + (8U << 20)) << "three copies and one fragment";
  const ReplicaStore store(replica);
  EXPECT_LE(resident_bytes() - before - held,
            ReplicaStore::kSnapshotBytes + ReplicaStore::kDeltaBytes + (4U << 20));
}

TEST(Memory, StaysFlatOverAHundredThousandExchangesThatTimeOut) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer holds back what is freed";
#endif
  compute::Replica replica(32U << 10, 16U << 10);  // 8 fragments
  ReplicaStore store(replica);
  const auto chooser = (*gossip::find_topology("random"))->make();
  gossip::ExchangeSettings settings;
  settings.self = id(1);
  settings.incarnation = 1ULL << 32;
  gossip::ExchangeMachine machine(settings, store, *chooser, Random(1));
  TimePoint now;
  std::vector<gossip::ExchangeMachine::Peer> peers;
  for (std::uint8_t n = 2; n < 10; ++n) peers.push_back({id(n), 1ULL << 32, true});
  machine.set_peers(now, peers);
  machine.set_active(true);

  std::uint64_t started = 0;
  Incarnation boot = 1;
  std::size_t settled = 0;
  Step step = 0;
  const auto one_round = [&] {
    machine.on_step(now, ++step);
    machine.take_outgoing();  // lost: nobody answers a proposal
    now = now + milliseconds(401);
    machine.tick(now);
    machine.take_events();
    // Now and then the peers return, know nothing of what is asked for, and say so; else nothing
    // new could be proposed.
    if (step % 4 != 0) return;
    ++boot;
    for (auto& peer : peers) peer.incarnation = boot << 32;
    machine.set_peers(now, peers);
    for (const auto& out : machine.take_outgoing())
      if (const auto* asked = std::get_if<schema::Propose>(&out.message);
          asked != nullptr && asked->attempt > 0)
        machine.on_message(now, out.to, schema::Aborted{asked->e, schema::AbortReason::kUnknown},
                           {});
    machine.take_outgoing();
    machine.take_events();
  };
  while (started < 100000) {
    one_round();
    started = machine.counters().proposed;
    if (settled == 0 && started > 10000) settled = resident_bytes();
    ASSERT_LT(step, 100000U) << "too few exchanges start";
  }
  EXPECT_GT(machine.counters().suspended, 90000U);
  EXPECT_LE(resident_bytes(), settled + (2U << 20))
      << "grew while " << started << " exchanges timed out";
}

}  // namespace
}  // namespace kith::node
