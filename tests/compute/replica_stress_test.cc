// Real threads: a trainer that merges and publishes without pause, and exchange threads that
// snapshot, commit and apply. Also the thread sanitizer's target for the replica and the trainer.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include "base/random.h"
#include "compute/replica.h"
#include "fake_model.h"

namespace kith::compute {
namespace {

using testing::FakeModel;

constexpr std::size_t kRounds = KITH_STRESS_ROUNDS;  // fewer under a sanitizer (CMakeLists.txt)

// One node: a model, its replica, a trainer thread that takes safe points as fast as it can. The
// model's drift is a power of two of small integers, so that the drift itself adds no rounding.
struct Node {
  Node(std::size_t values, std::size_t fragment_bytes, std::uint64_t seed)
      : model(values), replica(values, fragment_bytes) {
    Random random(seed);
    for (float& v : model.x) v = static_cast<float>(random.uniform(-1, 1));
    replica.reset(model);
    drift = static_cast<float>(seed) / 64.0F;
  }
  void run(const std::atomic<bool>& stop) {
    while (!stop.load(std::memory_order_relaxed)) {
      const float move = (steps & 1U) == 0 ? drift : -drift;
      for (float& v : model.x) v += move;
      moved += static_cast<double>(move) * static_cast<double>(model.x.size());
      const auto stats = replica.safe_point(model, (steps++ & 7U) == 0);
      merged += stats.merged_values;
      skipped += stats.skipped_fragments;
      std::this_thread::yield();
    }
  }
  FakeModel model;
  Replica replica;
  float drift = 0.0F;
  double moved = 0.0;
  std::uint64_t steps = 0, merged = 0, skipped = 0;
};

// Sum over nodes of x + pending, in double, less what the models moved by themselves.
double mass(std::vector<std::unique_ptr<Node>>& nodes) {
  double sum = 0.0;
  for (auto& node : nodes) {
    sum -= node->moved;
    for (const float v : node->model.x) sum += v;
    for (FragmentIndex f = 0; f < node->replica.fragment_count(); ++f) {
      std::vector<float> pending(node->replica.range(f).count);
      node->replica.read_pending(f, pending);
      for (const float v : pending) sum += v;
    }
  }
  return sum;
}

double magnitude(const std::vector<std::unique_ptr<Node>>& nodes) {
  double sum = 0.0;
  for (const auto& node : nodes) {
    for (const float v : node->model.x) sum += std::abs(v);
  }
  return sum;
}

struct Buffers {
  explicit Buffers(std::size_t bytes)
      : proposal(std::make_shared<std::vector<std::byte>>(bytes + 1)),
        delta(std::make_shared<std::vector<std::byte>>(bytes)) {}
  std::shared_ptr<std::vector<std::byte>> proposal, delta;
};

bool exchange(Node& a, Node& b, FragmentIndex f, CodecId codec) {
  const std::size_t bytes = Replica::encoded_bytes(a.replica.range(f).count, codec);
  Buffers buffers(bytes);
  const std::span<std::byte> proposal(buffers.proposal->data() + 1,
                                      bytes);  // an odd address, as from the network
  if (!a.replica.snapshot(f, codec, proposal)) return false;
  const std::size_t half = bytes / 2 - 1;
  const Payload pieces{{Slice(buffers.proposal, proposal.first(half)),
                        Slice(buffers.proposal, proposal.subspan(half))}};
  if (!b.replica.commit(f, pieces, codec, 0.5, *buffers.delta)) return false;
  return a.replica.apply(f, {{Slice(buffers.delta, *buffers.delta)}}, codec).has_value();
}

void run_swarm(CodecId codec, std::size_t rounds, double tolerance) {
  constexpr std::size_t kNodes = 4, kValues = 5000, kFragmentBytes = 4096;
  std::vector<std::unique_ptr<Node>> nodes;
  for (std::size_t i = 0; i < kNodes; ++i)
    nodes.push_back(std::make_unique<Node>(kValues, kFragmentBytes, i + 1));
  const double before = mass(nodes), scale = magnitude(nodes);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> failed{0};
  std::vector<std::thread> threads;
  for (auto& node : nodes) threads.emplace_back([&node, &stop] { node->run(stop); });
  std::vector<std::thread> exchangers;
  for (std::uint64_t t = 0; t < 2; ++t) {
    exchangers.emplace_back([&, t] {
      Random random(100 + t);
      for (std::size_t i = 0; i < rounds; ++i) {
        const std::size_t a = random.below(kNodes), b = (a + 1 + random.below(kNodes - 1)) % kNodes;
        const auto f = static_cast<FragmentIndex>(random.below(nodes[0]->replica.fragment_count()));
        if (!exchange(*nodes[a], *nodes[b], f, codec)) ++failed;
        if (i % 64 == 0) std::this_thread::yield();
      }
    });
  }
  for (auto& thread : exchangers) thread.join();
  stop.store(true);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed.load(), 0U);
  EXPECT_NEAR(mass(nodes), before, tolerance * scale);
  std::uint64_t merged = 0;
  for (const auto& node : nodes) merged += node->merged;
  EXPECT_GT(merged, 0U);
}

TEST(ReplicaStress, MassIsConservedWhileTrainersMergeAndPeersExchange) {
  run_swarm(CodecId::kFp32, kRounds, 1e-6);
}

TEST(ReplicaStress, MassIsConservedWithBf16BecauseBothSidesApplyTheSameBits) {
  run_swarm(CodecId::kBf16, kRounds, 1e-6);
}

// Merges that take their time, with the lock free: the exchange goes on and loses nothing.
TEST(ReplicaStress, SlowMergesLoseNothing) {
  std::vector<std::unique_ptr<Node>> nodes;
  for (std::size_t i = 0; i < 2; ++i) nodes.push_back(std::make_unique<Node>(64, 64, i + 1));
  for (auto& node : nodes) {
    node->model.inside_merge = [] {
      for (int i = 0; i < 20; ++i) std::this_thread::yield();
    };
  }
  const double before = mass(nodes), scale = magnitude(nodes);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (auto& node : nodes) threads.emplace_back([&node, &stop] { node->run(stop); });
  Random random(5);
  for (std::size_t i = 0; i < 4 * kRounds; ++i) {
    const std::size_t a = random.below(2);
    EXPECT_TRUE(exchange(*nodes[a], *nodes[1 - a], static_cast<FragmentIndex>(random.below(4)),
                         CodecId::kFp32));
  }
  stop.store(true);
  for (auto& thread : threads) thread.join();
  EXPECT_NEAR(mass(nodes), before, 1e-6 * scale);
}

}  // namespace
}  // namespace kith::compute
