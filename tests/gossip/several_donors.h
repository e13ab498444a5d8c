// One node that fetches from three, and what it got: for tests of fetches from several donors.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/gossip/transfers.h"

namespace kith::gossip {

inline constexpr std::uint32_t kFragments = 12;
inline const ItemKey kIntegers{schema::StateItem::kIntegers, 0, false};

inline ItemKey fragment(std::uint32_t i) { return {schema::StateItem::kFragment, i, false}; }
inline ItemKey piece(std::uint32_t i) { return {schema::StateItem::kOptimizer, i, false}; }

// Node 0 fetches; 1, 2 and 3 have the same fragments, and integers and moments of their own.
struct SeveralDonors {
  SeveralDonors() {
    for (std::size_t i = 1; i <= 3; ++i) {
      for (std::uint32_t f = 0; f < kFragments; ++f) t.donor(i).put(fragment(f), 95);
      t.donor(i).put(kIntegers, 8 * i);  // the length says whose they are
      for (std::uint32_t p = 0; p < 3; ++p) t.donor(i).put(piece(p), 20 * i);
      t.donor(i).step = i;
    }
  }
  FetchOrder fragments() const {
    FetchOrder order;
    for (std::uint32_t f = 0; f < kFragments; ++f) {
      order.wanted.push_back(fragment(f));
      order.expected[fragment(f)] = {.hash = {}, .bytes_min = 95, .bytes_max = 95};
    }
    return order;
  }
  FetchOrder everything() const {
    FetchOrder order = fragments();
    order.wanted.push_back(kIntegers);
    order.optimizer_pieces_max = 8;
    return order;
  }
  void collect() {
    for (auto& item : t[0].take_fetched()) {
      ++arrivals[item.key];
      given[item.from].insert(item.key);
      if (item.key == kIntegers) moments.clear();
      if (item.key.item != schema::StateItem::kFragment) moments[item.key] = item.from;
    }
  }
  void expect_success() {
    collect();
    const auto end = t[0].take_end();
    ASSERT_TRUE(end.has_value());
    EXPECT_TRUE(*end) << end->error().message;
    for (std::uint32_t f = 0; f < kFragments; ++f) EXPECT_EQ(arrivals[fragment(f)], 1) << f;
  }
  void expect_moments_of_one_donor() {
    ASSERT_EQ(moments.size(), 4U);
    for (const auto& [key, from] : moments) EXPECT_EQ(from, moments.begin()->second);
  }
  // Drives the wire until `count` letters have passed or nothing is left.
  void deliver_until(std::size_t count, const std::function<void()>& then) {
    t.rule = [this, count, then](const Outgoing&, std::size_t n) {
      if (n == count) pending_ = then;
      return Fate::kPass;
    };
    t.after_each = [this] {
      if (pending_) std::exchange(pending_, nullptr)();
    };
  }

  static TransferSettings settings() {
    TransferSettings s = Transfers::small_chunks();
    s.donors_max = 3;
    return s;
  }
  const std::vector<NodeId> donors{toy_id(2), toy_id(3), toy_id(4)};
  Transfers t{4, settings()};
  std::map<ItemKey, int> arrivals;
  std::map<NodeId, std::set<ItemKey>> given;
  std::map<ItemKey, NodeId> moments;

  std::function<void()> pending_;
};

}  // namespace kith::gossip
