// A few machines, a clock that is moved by hand, and a wire on which every message can be dropped,
// doubled or held back.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gossip/exchange/exchange.h"
#include "schema/messages.h"
#include "tests/gossip/toy_store.h"

namespace kith::gossip {

using namespace std::chrono_literals;

inline NodeId toy_id(std::uint8_t n) {
  NodeId id;
  id.bytes.fill(n);
  return id;
}

// Everybody draws the same place in the sorted list, unless told otherwise.
class ToyChooser final : public PartnerChooser {
 public:
  std::optional<std::uint32_t> partner(std::uint32_t, std::uint32_t count, std::uint64_t,
                                       Random&) const override {
    return target < count ? std::optional(target) : std::nullopt;
  }
  bool is_matching() const override { return false; }
  std::uint32_t target = 0;
};

enum class Fate { kPass, kDrop, kTwice, kLate };

struct ToySetup {
  std::size_t nodes = 2;
  std::uint32_t fragments = 1;
  std::size_t values = 3;  // of 8 bytes each
  ExchangeSettings settings;
  PlantedFaults planted;
  ToySetup() { settings.chunk_bytes = 8; }
};

class Dialogue {
 public:
  struct Letter {
    std::size_t from = 0, to = 0;
    schema::Message message;
    Slice payload;
    [[nodiscard]] std::string name() const { return schema::name_of(message); }
  };
  struct Node {
    NodeId id;
    Incarnation incarnation = 1;
    std::unique_ptr<ToyStore> store;
    ToyChooser chooser;
    std::unique_ptr<ExchangeMachine> machine;
    std::vector<ExchangeEvent> events;
    bool up = true;
  };

  explicit Dialogue(ToySetup setup = {}) : setup_(std::move(setup)), nodes_(setup_.nodes) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Node& node = nodes_[i];
      node.id = toy_id(static_cast<std::uint8_t>(i + 1));
      node.store = std::make_unique<ToyStore>(setup_.fragments, setup_.values,
                                              i == 0 ? 0 : static_cast<std::int64_t>(i) << 20);
      node.chooser.target = i == 0 ? 1 : 0;
      boot(i);
    }
    introduce();
  }

  Node& operator[](std::size_t i) { return nodes_[i]; }
  ExchangeMachine& machine(std::size_t i) { return *nodes_[i].machine; }
  TimePoint now() const { return now_; }

  // A new machine on the store as it is.
  void boot(std::size_t i) {
    Node& node = nodes_[i];
    ExchangeSettings settings = setup_.settings;
    settings.self = node.id;
    settings.incarnation = node.incarnation;
    node.machine = std::make_unique<ExchangeMachine>(settings, *node.store, node.chooser,
                                                     Random(7 + i), setup_.planted);
    node.machine->set_active(true);
    node.up = true;
  }
  // Everybody knows everybody who is up.
  void introduce() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].up) set_peers(i, others(i));
    }
  }
  std::vector<ExchangeMachine::Peer> others(std::size_t i) const {
    std::vector<ExchangeMachine::Peer> peers;
    for (std::size_t j = 0; j < nodes_.size(); ++j) {
      if (j != i && nodes_[j].up) peers.push_back({nodes_[j].id, nodes_[j].incarnation, true});
    }
    return peers;
  }
  void set_peers(std::size_t i, std::vector<ExchangeMachine::Peer> peers) {
    machine(i).set_peers(now_, std::move(peers));
    collect(i);
  }
  void step(std::size_t i) {
    machine(i).on_step(now_, ++steps_);
    collect(i);
  }
  void inject(std::size_t from, std::size_t to, schema::Message message, Slice payload = {}) {
    wire_.push_back({from, to, std::move(message), std::move(payload)});
  }

  // `rule` sees every letter once, with its number since the rule was set.
  void set_rule(std::function<Fate(const Letter&, std::size_t)> rule) {
    rule_ = std::move(rule);
    number_ = 0;
  }
  std::size_t letters_seen() const { return number_; }

  // Delivers until the wire is empty; held-back letters come last.
  void deliver() {
    for (std::size_t bound = 0; bound < 100000; ++bound) {
      if (wire_.empty()) std::swap(wire_, late_);
      if (wire_.empty()) return;
      deliver_first();
    }
    throw std::runtime_error("the machines never stop talking");
  }
  void deliver_first() {
    if (wire_.empty()) throw std::runtime_error("nothing on the wire");
    Letter letter = std::move(wire_.front());
    wire_.pop_front();
    hand_over(letter);
  }
  void hand_over(const Letter& letter) {
    if (!nodes_[letter.to].up) return;
    machine(letter.to).on_message(now_, nodes_[letter.from].id, letter.message, letter.payload);
    collect(letter.to);
  }
  std::deque<Letter>& wire() { return wire_; }

  void advance(Duration d, bool and_deliver = true) {
    const TimePoint end = now_ + d;
    while (true) {
      if (and_deliver) deliver();
      const TimePoint next = next_deadline();
      if (next > end) break;
      now_ = std::max(now_, next);
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (!nodes_[i].up || machine(i).next_deadline() > now_) continue;
        machine(i).tick(now_);
        collect(i);
      }
    }
    now_ = end;
  }
  TimePoint next_deadline() {
    TimePoint next = TimePoint::max();
    for (Node& node : nodes_) {
      if (node.up) next = std::min(next, node.machine->next_deadline());
    }
    return next;
  }
  // True once nothing is open, in a ledger or on the wire; false after two minutes of trying.
  bool settle() {
    for (int i = 0; i < 1200; ++i) {
      deliver();
      if (is_quiet()) return true;
      advance(100ms);
    }
    return false;
  }
  bool is_quiet() {
    for (Node& node : nodes_) {
      if (!node.up) continue;
      if (node.machine->open_count() + node.machine->ledger_entries() > 0) return false;
    }
    return wire_.empty() && late_.empty();
  }

  std::int64_t mass() const {
    std::int64_t sum = 0;
    for (const Node& node : nodes_) sum += node.store->sum();
    return sum;
  }
  // Each exchange applied and committed at most once, and on both sides or on neither. "" if so.
  std::string ledger_complaint() const {
    std::map<ExchangeId, std::pair<std::size_t, std::size_t>> sides;
    for (const Node& node : nodes_) {
      for (const auto& [e, deltas] : node.store->committed) sides[e].first += deltas.size();
      for (const auto& [e, deltas] : node.store->applied) sides[e].second += deltas.size();
    }
    for (const auto& [e, counts] : sides) {
      if (counts != std::pair<std::size_t, std::size_t>{1, 1}) {
        return "exchange " + std::to_string(e.sequence) + ": committed " +
               std::to_string(counts.first) + " times, applied " + std::to_string(counts.second);
      }
    }
    return "";
  }
  std::size_t count_events(std::size_t i, ExchangeEvent::Kind kind) const {
    std::size_t count = 0;
    for (const ExchangeEvent& event : nodes_[i].events) count += event.kind == kind ? 1 : 0;
    return count;
  }

  void collect(std::size_t i) {
    for (ExchangeEvent& event : machine(i).take_events()) nodes_[i].events.push_back(event);
    for (Outgoing& out : machine(i).take_outgoing()) {
      std::size_t to = 0;
      while (to < nodes_.size() && nodes_[to].id != out.to) ++to;
      if (to == nodes_.size()) continue;
      post({i, to, std::move(out.message), std::move(out.payload)});
    }
  }

 private:
  void post(Letter letter) {
    const Fate fate = rule_ ? rule_(letter, number_) : Fate::kPass;
    ++number_;
    if (fate == Fate::kDrop) return;
    if (fate == Fate::kLate) {
      late_.push_back(std::move(letter));
      return;
    }
    if (fate == Fate::kTwice) wire_.push_back(letter);
    wire_.push_back(std::move(letter));
  }

  ToySetup setup_;
  std::vector<Node> nodes_;
  std::deque<Letter> wire_, late_;
  std::function<Fate(const Letter&, std::size_t)> rule_;
  std::size_t number_ = 0;
  TimePoint now_;
  Step steps_ = 0;
};

}  // namespace kith::gossip
