// SerialPairs: production machines over integer replicas, one exchange at a time, no network in
// between. For checks of the update rules themselves, where nothing may overlap.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "gossip/exchange/exchange.h"
#include "gossip/sim/fixed_point_store.h"
#include "gossip/sim/node_ids.h"

namespace kith::sim {

// Proposes to the node it is aimed at.
class AimedChooser final : public gossip::PartnerChooser {
 public:
  std::optional<std::uint32_t> target;
  [[nodiscard]] std::optional<std::uint32_t> partner(std::uint32_t, std::uint32_t, std::uint64_t,
                                                     Random&) const override {
    return target;
  }
  [[nodiscard]] bool is_matching() const override { return true; }
};

class SerialPairs {
 public:
  // Without `chooser`, exchange() says who averages with whom.
  SerialPairs(const std::vector<double>& start, double weight,
              const gossip::PartnerChooser* chooser = nullptr)
      : aimed_(start.size()) {
    for (NodeIndex i = 0; i < start.size(); ++i) by_id_.push_back(i);
    std::sort(by_id_.begin(), by_id_.end(),
              [](NodeIndex a, NodeIndex b) { return node_id(a) < node_id(b); });
    for (NodeIndex i = 0; i < start.size(); ++i) {
      stores_.push_back(std::make_unique<FixedPointStore>(Layout{1, 1}, i, nullptr));
      gossip::ExchangeSettings settings;
      settings.self = node_id(i);
      settings.incarnation = incarnation_of(1);
      settings.weight = weight;
      machines_.push_back(std::make_unique<gossip::ExchangeMachine>(
          settings, *stores_[i], chooser != nullptr ? *chooser : aimed_[i], Random(1000 + i)));
      machines_[i]->set_peers(now_, others(i));
      machines_[i]->set_active(true);
    }
    set(start);
  }

  void set(const std::vector<double>& values) {
    for (NodeIndex i = 0; i < values.size(); ++i)
      stores_[i]->set_live(std::vector<Fixed>{to_fixed(values[i])});
  }
  // One exchange that `from` proposes to `to`, to its end, and merged on both sides.
  void exchange(NodeIndex from, NodeIndex to) {
    aimed_[from].target = place(to);
    step(from);
  }
  // A safe point of one node: whatever its chooser draws, to the end.
  void step(NodeIndex node, bool merge = true) {
    now_ = now_ + std::chrono::milliseconds(1);
    machines_[node]->on_step(now_, ++steps_);
    deliver(node);
    if (merge) merge_all();
  }
  void merge_all() {
    for (auto& store : stores_) {
      store->begin_merge(0);
      store->finish_merge(0);
    }
  }
  // In the order of ids, as topologies count.
  [[nodiscard]] NodeIndex at_place(std::size_t place) const { return by_id_[place]; }

  [[nodiscard]] std::size_t size() const { return stores_.size(); }
  [[nodiscard]] FixedPointStore& store(NodeIndex node) { return *stores_[node]; }
  [[nodiscard]] Fixed fixed(NodeIndex node) const { return stores_[node]->mass(0); }
  [[nodiscard]] double value(NodeIndex node) const { return to_double(fixed(node)); }
  [[nodiscard]] Fixed sum() const {
    Fixed total = 0;
    for (const auto& store : stores_) total += store->mass(0);
    return total;
  }
  [[nodiscard]] double variance() const {
    const double mean = to_double(sum()) / static_cast<double>(size());
    double square = 0.0;
    for (NodeIndex i = 0; i < size(); ++i) square += (value(i) - mean) * (value(i) - mean);
    return square / static_cast<double>(size());
  }
  [[nodiscard]] std::uint64_t completed() const {
    std::uint64_t total = 0;
    for (const auto& machine : machines_) total += machine->counters().completed_initiator;
    return total;
  }

 private:
  struct Posted {
    NodeIndex from;
    gossip::Outgoing outgoing;
  };
  [[nodiscard]] std::uint32_t place(NodeIndex node) const {
    return static_cast<std::uint32_t>(std::find(by_id_.begin(), by_id_.end(), node) -
                                      by_id_.begin());
  }
  [[nodiscard]] std::vector<gossip::ExchangeMachine::Peer> others(NodeIndex self) const {
    std::vector<gossip::ExchangeMachine::Peer> peers;
    for (const NodeIndex i : by_id_) {
      if (i != self) peers.push_back({node_id(i), incarnation_of(1), true});
    }
    return peers;
  }
  void collect(NodeIndex node, std::deque<Posted>& mail) {
    for (auto& outgoing : machines_[node]->take_outgoing())
      mail.push_back({node, std::move(outgoing)});
    machines_[node]->take_events();
  }
  void deliver(NodeIndex first) {
    std::deque<Posted> mail;
    collect(first, mail);
    for (unsigned count = 0; !mail.empty(); ++count) {
      ASSERT_LT(count, 1000U) << "an exchange must come to an end";
      const Posted posted = std::move(mail.front());
      mail.pop_front();
      const NodeIndex to = index_of(posted.outgoing.to);
      machines_[to]->on_message(now_, node_id(posted.from), posted.outgoing.message,
                                posted.outgoing.payload);
      collect(to, mail);
    }
  }

  TimePoint now_;
  Step steps_ = 0;
  std::vector<NodeIndex> by_id_;
  std::vector<AimedChooser> aimed_;
  std::vector<std::unique_ptr<FixedPointStore>> stores_;
  std::vector<std::unique_ptr<gossip::ExchangeMachine>> machines_;
};

}  // namespace kith::sim
