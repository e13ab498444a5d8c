// A few state transfers with toy donors, a clock that is moved by hand, and a wire on which every
// message can be dropped or doubled, and nodes killed.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "base/hash.h"
#include "gossip/transfer/state_transfer.h"
#include "tests/gossip/dialogue.h"

namespace kith::gossip {

inline FetchOrder order_of(std::vector<ItemKey> wanted) {
  FetchOrder order;
  order.wanted = std::move(wanted);
  return order;
}

class ToyDonor final : public DonorSource {
 public:
  Result<Item> item(const ItemKey& key) override {
    ++asked;
    if (on_asked) on_asked(key);
    if (busy > 0) {
      --busy;
      return fail(ErrorCode::kBusy, "not yet");
    }
    const auto it = items.find(key);
    if (it == items.end()) return fail(ErrorCode::kNotFound, "never");
    Item item;
    item.bytes = it->second;
    item.hash = lie ? Hash256{} : hash_bytes(it->second.bytes());
    item.optimizer_pieces = pieces;
    item.optimizer_step = step;
    item.cluster_samples = 77;
    return item;
  }
  void put(const ItemKey& key, std::size_t bytes) {
    std::vector<std::byte> content(bytes);
    for (std::size_t i = 0; i < bytes; ++i) content[i] = static_cast<std::byte>(i * 7 + key.index);
    items[key] = Slice::copy_of(content);
  }
  std::map<ItemKey, Slice> items;
  std::uint32_t pieces = 3;
  Step step = 0;  // of the image of its moments
  int busy = 0;
  int asked = 0;
  std::function<void(const ItemKey&)> on_asked;
  bool lie = false;
};

class Transfers {
 public:
  explicit Transfers(std::size_t count = 2, TransferSettings base = small_chunks()) {
    for (std::size_t i = 0; i < count; ++i) {
      donors_.push_back(std::make_unique<ToyDonor>());
      TransferSettings settings = base;
      settings.self = toy_id(static_cast<std::uint8_t>(i + 1));
      settings.incarnation = 1;
      if (i == other_run) settings.run_digest.bytes[0] = 1;
      nodes_.push_back(std::make_unique<StateTransfer>(settings, *donors_[i]));
    }
  }
  static TransferSettings small_chunks() {
    TransferSettings settings;
    settings.chunk_bytes = 10;
    settings.window_chunks = 3;
    return settings;
  }
  StateTransfer& operator[](std::size_t i) { return *nodes_[i]; }
  ToyDonor& donor(std::size_t i) { return *donors_[i]; }

  void deliver() {
    for (int bound = 0; bound < 10000; ++bound) {
      collect();
      if (wire_.empty()) return;
      auto [from, out] = std::move(wire_.front());
      wire_.erase(wire_.begin());
      const std::size_t to = out.to.bytes[0] - 1U;
      if (down.contains(to)) continue;
      nodes_[to]->on_message(now, toy_id(static_cast<std::uint8_t>(from + 1)), out.message,
                             out.payload);
      if (after_each) after_each();
    }
    FAIL() << "never stops";
  }
  void advance(Duration d) {
    const TimePoint end = now + d;
    for (int bound = 0;; ++bound) {
      if (bound == 10000) FAIL() << "asks to be woken again and again";
      deliver();
      TimePoint next = TimePoint::max();
      for (auto& node : nodes_) next = std::min(next, node->next_deadline());
      if (next > end) break;
      now = std::max(now, next);
      for (auto& node : nodes_) {
        if (node->next_deadline() <= now) node->tick(now);
      }
    }
    now = end;
  }
  // From now on it hears and says nothing; the others are told only by their own tries.
  void freeze(std::size_t i) { down.insert(i); }
  // ... and its links are gone.
  void kill(std::size_t i) {
    down.insert(i);
    for (std::size_t k = 0; k < nodes_.size(); ++k) {
      if (k == i) continue;
      nodes_[k]->peer_gone(now, toy_id(static_cast<std::uint8_t>(i + 1)));
      nodes_[i]->peer_gone(now, toy_id(static_cast<std::uint8_t>(k + 1)));
    }
  }
  std::set<std::size_t> down;
  // Every letter once, by number.
  std::function<Fate(const Outgoing&, std::size_t)> rule;
  std::function<void()> after_each;  // letter
  std::size_t number = 0;
  TimePoint now;
  static inline std::size_t other_run = ~std::size_t{0};

 private:
  void collect() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (Outgoing& out : nodes_[i]->take_outgoing()) {
        if (down.contains(i)) continue;
        const Fate fate = rule ? rule(out, number) : Fate::kPass;
        ++number;
        if (fate == Fate::kDrop) continue;
        if (fate == Fate::kTwice) wire_.emplace_back(i, out);
        wire_.emplace_back(i, std::move(out));
      }
    }
  }
  std::vector<std::unique_ptr<ToyDonor>> donors_;
  std::vector<std::unique_ptr<StateTransfer>> nodes_;
  std::vector<std::pair<std::size_t, Outgoing>> wire_;
};

}  // namespace kith::gossip
