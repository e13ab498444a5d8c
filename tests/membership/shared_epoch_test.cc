// Whole epochs of a cluster that shares one file, without network or model: who draws which sample,
// and how often each is used while members join and die in the middle.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "base/random.h"
#include "compute/data.h"
#include "gossip/membership/data_sharing.h"

namespace kith::gossip {
namespace {

constexpr std::size_t kSamples = 8960, kBatch = 32;
constexpr std::uint64_t kSeed = 11;

compute::Dataset file() {
  compute::Dataset data;
  data.count = kSamples;
  data.sample_shape = {1};
  data.inputs.resize(kSamples);
  for (std::size_t i = 0; i < kSamples; ++i) data.labels.push_back(static_cast<std::int64_t>(i));
  return data;
}

struct Node {
  NodeId id;
  std::unique_ptr<compute::BatchCursor> cursor;
  double pace = 1.0;  // steps per round, on average
  double owed = 0.0;
  bool dead = false;
};

class Cluster {
 public:
  explicit Cluster(std::size_t members, std::uint64_t seed = 1) : random_(seed), used_(kSamples) {
    for (std::size_t i = 0; i < members; ++i) add(1.0);
    share_out();
  }
  void add(double pace) {
    Node node;
    node.id.bytes[0] = static_cast<std::uint8_t>(nodes_.size() + 1);
    node.cursor = std::make_unique<compute::BatchCursor>(data_, kBatch, kSeed);
    node.pace = pace;
    const double pass = std::floor(epoch()), place = (epoch() - pass) * kSamples;
    node.cursor->restore({static_cast<std::uint64_t>(pass), static_cast<std::uint64_t>(place)});
    nodes_.push_back(std::move(node));
    turn_ = 0;
  }
  void kill(std::size_t which) { nodes_[which].dead = true; }
  void set_pace(std::size_t which, double pace) { nodes_[which].pace = pace; }
  // What the live nodes do once they agree on who lives.
  void share_out() {
    std::vector<NodeId> sharers;
    for (const Node& node : nodes_)
      if (!node.dead) sharers.push_back(node.id);
    for (Node& node : nodes_)
      if (!node.dead) node.cursor->share(share_of(node.id, sharers, kSeed, kSamples));
  }
  // Round after round everybody steps at about its pace, in an order that chance gives.
  void run_until(double epoch_end) {
    while (epoch() < epoch_end) {
      if (turn_ % nodes_.size() == 0) shuffle_turns();
      Node& node = nodes_[turns_[turn_++ % nodes_.size()]];
      node.owed += node.dead ? 0.0 : node.pace * random_.uniform(0.5, 1.5);
      for (; node.owed >= 1.0; node.owed -= 1.0) step(node);
    }
  }
  void run_rounds(int rounds) {
    run_until(epoch() + static_cast<double>(rounds * kBatch * nodes_.size()) / kSamples);
  }
  [[nodiscard]] double epoch() const { return static_cast<double>(total_) / kSamples; }

  // Times used -> how many samples; printed too.
  std::map<int, std::size_t> histogram(const std::string& what) const {
    std::map<int, std::size_t> times;
    for (const int n : used_) ++times[n];
    std::cout << what << ", epoch " << epoch() << ":";
    for (const auto& [n, samples] : times) std::cout << " " << n << "x " << samples;
    std::cout << std::endl;
    return times;
  }

 private:
  void shuffle_turns() {
    turns_.resize(nodes_.size());
    std::iota(turns_.begin(), turns_.end(), std::size_t{0});
    random_.shuffle(std::span(turns_));
    turn_ = 0;
  }
  void step(Node& node) {
    const compute::Batch batch = node.cursor->next();
    for (const auto label : batch.labels) ++used_[static_cast<std::size_t>(label)];
    total_ += batch.count;
  }

  compute::Dataset data_ = file();
  Random random_;
  std::vector<Node> nodes_;
  std::vector<std::size_t> turns_;  // of this round
  std::size_t turn_ = 0;
  std::vector<int> used_;
  std::size_t total_ = 0;
};

double share_of_samples(const std::map<int, std::size_t>& times, int from, int to) {
  std::size_t samples = 0;
  for (const auto& [n, count] : times)
    if (n >= from && n <= to) samples += count;
  return static_cast<double>(samples) / kSamples;
}

TEST(SharedEpoch, WithoutChangesEachSampleIsUsedOncePerEpoch) {
  Cluster cluster(4);
  cluster.run_until(1.0);
  const auto one = cluster.histogram("four, no change");
  EXPECT_GE(share_of_samples(one, 1, 1), 0.98);
  EXPECT_EQ(share_of_samples(one, 0, 2), 1.0);
  cluster.run_until(4.0);
  EXPECT_EQ(share_of_samples(cluster.histogram("four, no change"), 3, 5), 1.0);
}

TEST(SharedEpoch, ADeathAndAJoinInTheMiddleStillUseEachSampleAboutOnce) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Cluster cluster(4, seed);
    cluster.run_until(0.3);
    cluster.add(1.0);
    cluster.run_rounds(
        5);  // until the news has settled: the newcomer still goes through everything
    cluster.share_out();
    cluster.run_until(0.7);
    cluster.kill(1);
    cluster.run_rounds(5);  // until it is known to be dead
    cluster.share_out();
    cluster.run_until(1.0);
    const auto one = cluster.histogram("a join at 0.3, a death at 0.7");
    EXPECT_GE(share_of_samples(one, 1, 1), 0.9);
    EXPECT_GE(share_of_samples(one, 0, 2), 0.999);
    cluster.run_until(4.0);
    const auto four = cluster.histogram("a join at 0.3, a death at 0.7");
    EXPECT_GE(share_of_samples(four, 3, 5), 0.99);
    EXPECT_EQ(share_of_samples(four, 2, 6), 1.0);
  }
}

TEST(SharedEpoch, ManyChangesNeverLeaveASampleOut) {
  Cluster cluster(8, 5);
  Random random(3);
  std::size_t next = 0;
  for (double epoch = 0.2; epoch < 6.0; epoch += 0.4) {
    cluster.run_until(epoch);
    cluster.kill(next++);
    cluster.share_out();
    cluster.run_until(epoch + 0.2);
    cluster.add(1.0);
    cluster.share_out();
  }
  cluster.run_until(6.0);
  const auto times = cluster.histogram("a death and a join every 0.4 epochs");
  EXPECT_GE(share_of_samples(times, 5, 7), 0.95);
  EXPECT_EQ(share_of_samples(times, 2, 10), 1.0);
}

// Shares are equal, not in proportion to speed: documented.
TEST(SharedEpoch, ASlowMembersShareIsUsedLessOften) {
  Cluster cluster(4);
  cluster.set_pace(3, 0.1);
  cluster.run_until(4.0);
  const auto times = cluster.histogram("one of four ten times slower");
  EXPECT_NEAR(share_of_samples(times, 0, 1), 0.25, 0.03) << "its part was gone through half a time";
  EXPECT_NEAR(share_of_samples(times, 4, 6), 0.75, 0.03);
}

}  // namespace
}  // namespace kith::gossip
