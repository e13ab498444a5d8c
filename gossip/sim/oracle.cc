#include "gossip/sim/oracle.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "gossip/sim/node_ids.h"

namespace kith::sim {
namespace {

using Record = ExchangeRecord;

std::uint64_t bits(Fixed value) { return static_cast<std::uint64_t>(value); }

}  // namespace

Oracle::Oracle(Layout layout, std::uint32_t nodes, bool journal)
    : layout_(layout),
      journal_(journal),
      book_(nodes, layout.values),
      seen_(nodes * layout.total()),
      start_(layout.total()),
      total_(layout.total()),
      flying_(layout.total()),
      trained_(layout.total()),
      booked_(layout.total()),
      generations_(nodes),
      memories_(nodes) {}

void Oracle::start(NodeIndex node, const FixedPointStore& store) {
  for (std::size_t i = 0; i < layout_.total(); ++i) {
    seen_[node * layout_.total() + i] = store.mass(i);
    start_[i] += bits(store.mass(i));
    total_[i] += bits(store.mass(i));
  }
}

// ---- the two sides of an exchange

void Oracle::proposed(const ExchangeId& e, NodeIndex responder, FragmentIndex fragment) {
  const ExchangeKey key = key_of(e);
  Record& record = book_.make(key);
  if (record.has(Record::kProposed)) {
    return report("at most once", describe(key) + " was proposed twice under one id");
  }
  record.responder = responder;
  record.fragment = static_cast<std::uint16_t>(fragment);
  record.set(Record::kProposed);
  record.set(Record::kActive);
}

void Oracle::committed(NodeIndex node, const ExchangeId& e, FragmentIndex fragment,
                       std::span<const Fixed> delta) {
  const ExchangeKey key = key_of(e);
  Record* record = book_.find(key);
  if (record == nullptr)
    return report("at most once", describe(key) + " was committed but never proposed");
  if (record->responder != node || record->fragment != fragment) {
    return report("at most once", describe(key) + " was committed by node " + std::to_string(node) +
                                      ", fragment " + std::to_string(fragment) +
                                      ", to whom it was not proposed");
  }
  const bool again = record->has(Record::kUndone);
  if (record->has(Record::kCommitted) && !again) {
    return report("at most once", describe(key) + " was committed twice");
  }
  if (record->has(Record::kClosed) && !record->has(Record::kExcused)) {
    return report("both or neither",
                  describe(key) + " was committed after its initiator had closed it");
  }
  record->clear(Record::kUndone);
  record->set(Record::kCommitted);
  if (record->flight != 0) land(*record, true);  // the delta of the commit that was undone
  fly(key, *record, delta);
  if (forgotten(key)) {
    record->set(Record::kExcused);
    record->set(Record::kClosed);
    land(*record, true);
  }
  note(node, Entry::Act::kCommit, key, {});
}

void Oracle::applied(NodeIndex node, const ExchangeId& e, FragmentIndex,
                     std::span<const Fixed> delta) {
  const ExchangeKey key = key_of(e);
  Record* record = book_.find(key);
  if (record == nullptr || key.initiator != node) {
    return report("at most once", describe(key) + " was applied by node " + std::to_string(node) +
                                      ", which never proposed it");
  }
  if (record->has(Record::kApplied))
    return report("at most once", describe(key) + " was applied twice");
  if (record->has(Record::kClosed) || forgotten(key)) {
    return report("both or neither",
                  describe(key) + " was applied after its initiator had closed or forgotten it");
  }
  if (record->flight == 0) {
    return report("both or neither", describe(key) + " was applied but is not committed");
  }
  const std::span<const Fixed> committed = book_.delta(*record);
  if (!std::equal(delta.begin(), delta.end(), committed.begin(), committed.end())) {
    return report("same bits", describe(key) + " was applied with other bits than were committed");
  }
  record->set(Record::kApplied);
  note(node, Entry::Act::kApply, key, delta);
  land(*record, false);
}

void Oracle::closed(const ExchangeId& e) {
  const ExchangeKey key = key_of(e);
  Record* record = book_.find(key);
  if (record == nullptr || record->has(Record::kApplied) || record->has(Record::kClosed)) return;
  close(key, *record);
}

void Oracle::close(const ExchangeKey& key, Record& record) {
  record.set(Record::kClosed);
  const bool flies = record.flight != 0;
  note(key.initiator, Entry::Act::kClose, key,
       flies ? book_.delta(record) : std::span<const Fixed>{});
  if (!flies) return;
  if (!record.has(Record::kExcused)) {
    return report("both or neither",
                  describe(key) + " is committed by its responder and closed by its initiator");
  }
  land(record, true);
}

void Oracle::forfeited(const ExchangeId& e) {
  if (Record* record = book_.find(key_of(e)); record != nullptr) record->set(Record::kExcused);
}

void Oracle::trained(std::span<const Fixed> change) {
  for (std::size_t i = 0; i < change.size(); ++i) trained_[i] += bits(change[i]);
}

void Oracle::fly(const ExchangeKey& key, Record& record, std::span<const Fixed> delta) {
  book_.add_flight(key, record, delta);
  const std::size_t first = std::size_t{record.fragment} * layout_.values;
  for (std::size_t i = 0; i < delta.size(); ++i) flying_[first + i] += bits(delta[i]);
}

void Oracle::land(Record& record, bool booked) {
  const std::size_t first = std::size_t{record.fragment} * layout_.values;
  const std::span<const Fixed> delta = book_.delta(record);
  for (std::size_t i = 0; i < delta.size(); ++i) {
    flying_[first + i] -= bits(delta[i]);
    if (booked) book_change(first + i, -delta[i]);
  }
  excused_ += booked ? 1 : 0;
  book_.remove_flight(record);
}

void Oracle::book_change(std::size_t index, Fixed change) { booked_[index] += bits(change); }

// ---- crashes

void Oracle::note(NodeIndex node, Entry::Act act, const ExchangeKey& key,
                  std::span<const Fixed> delta) {
  if (!journal_ || generations_[node].empty()) return;
  Generation& newest = generations_[node].front();
  newest.journal.push_back({act, key, newest.deltas.size(), delta.size()});
  newest.deltas.insert(newest.deltas.end(), delta.begin(), delta.end());
}

void Oracle::checkpointed(NodeIndex node, std::uint32_t boot, std::vector<Fixed> published) {
  auto& generations = generations_[node];
  generations.insert(generations.begin(),
                     Generation{boot, book_.proposed(node, boot), std::move(published), {}, {}});
  if (generations.size() > 2) generations.pop_back();
}

bool Oracle::has_checkpoint(NodeIndex node, std::size_t generation) const {
  return generation < generations_[node].size();
}

bool Oracle::forgotten(const ExchangeKey& key) const {
  const auto& memories = memories_[key.initiator];
  return std::any_of(memories.begin(), memories.end(), [&](const Memory& memory) {
    if (key.boot >= memory.next_boot) return false;
    return key.boot > memory.boot || (key.boot == memory.boot && key.sequence > memory.sequence);
  });
}

void Oracle::crashed(NodeIndex node, std::optional<std::size_t> generation) {
  auto& generations = generations_[node];
  // Lives so far: boots are counted from 1 and each crash ends one.
  const auto next_boot = static_cast<std::uint32_t>(memories_[node].size() + 2);
  if (!generation) {
    generations.clear();
    memories_[node].push_back({0, 0, next_boot});
  } else {
    KITH_CHECK(*generation < generations.size(),
               "a node comes back only from a checkpoint that it has");
    const Generation& back_to = generations[*generation];
    memories_[node].push_back({back_to.boot, back_to.proposed, next_boot});
    for (std::size_t g = 0; g <= *generation; ++g) undo(generations[g]);
    generations.erase(generations.begin(),
                      generations.begin() + static_cast<std::ptrdiff_t>(*generation));
    generations.front().journal.clear();
    generations.front().deltas.clear();
  }
  forget_own(node);
}

// Its exchanges since the checkpoint are forgotten by their initiator; without one, its commits too
// by their responder.
void Oracle::forget_own(NodeIndex node) {
  const bool nothing_left = generations_[node].empty();
  for (const ExchangeBook::Flight& flight : book_.flights()) {
    if (flight.key.initiator == kNobody) continue;
    Record& record = *book_.find(flight.key);
    if (flight.responder == node && nothing_left) {
      record.set(Record::kUndone);
      record.set(Record::kExcused);
    }
    if (flight.key.initiator == node && forgotten(flight.key)) {
      record.set(Record::kExcused);
      record.set(Record::kClosed);
      land(record, true);
    }
  }
}

void Oracle::undo(const Generation& since) {
  for (auto entry = since.journal.rbegin(); entry != since.journal.rend(); ++entry) {
    Record& record = *book_.find(entry->key);
    record.set(Record::kExcused);
    if (entry->act == Entry::Act::kCommit) {
      if (!record.has(Record::kApplied)) record.set(Record::kUndone);
    } else if (!forgotten(entry->key)) {
      record.clear(entry->act == Entry::Act::kApply ? Record::kApplied : Record::kClosed);
      fly_again(entry->key, record,
                std::span(since.deltas).subspan(entry->delta, entry->delta_values));
    }
  }
}

// The initiator has the exchange open again: what its responder had committed may still reach it.
void Oracle::fly_again(const ExchangeKey& key, Record& record, std::span<const Fixed> delta) {
  if (delta.empty() || record.flight != 0) return;
  fly(key, record, delta);
  const std::size_t first = std::size_t{record.fragment} * layout_.values;
  for (std::size_t i = 0; i < delta.size(); ++i) book_change(first + i, delta[i]);
}

void Oracle::restarted(NodeIndex node, const FixedPointStore& store, std::span<const Fixed> state) {
  adopted(node, store, generations_[node].empty() ? state : generations_[node].front().published);
}

void Oracle::adopted(NodeIndex node, const FixedPointStore& store, std::span<const Fixed> state) {
  KITH_CHECK(state.size() == layout_.total(), "a node's new state is a checkpoint's or a donor's");
  for (std::size_t i = 0; i < layout_.total(); ++i) {
    book_change(i, state[i] - seen_[node * layout_.total() + i]);
  }
  check(node, store);
}

void Oracle::abandoned(NodeIndex node) {
  book_.each(node, [this](const ExchangeKey& key, Record& record) {
    if (record.has(Record::kApplied) || record.has(Record::kClosed) || forgotten(key)) return;
    record.set(Record::kExcused);
    record.clear(Record::kActive);
    close(key, record);
  });
}

bool Oracle::is_open(const ExchangeId& e) const {
  const ExchangeKey key = key_of(e);
  const Record* record = book_.find(key);
  return record != nullptr && !record->has(Record::kApplied) && !record->has(Record::kClosed) &&
         !forgotten(key);
}

// ---- the sums

void Oracle::check(NodeIndex node, const FixedPointStore& store) {
  Fixed* seen = &seen_[node * layout_.total()];
  for (std::size_t i = 0; i < layout_.total(); ++i) {
    const Fixed mass = store.mass(i);
    total_[i] += bits(mass) - bits(seen[i]);
    seen[i] = mass;
    check_mass(i);
  }
  if (!store.in_range())
    report("finite", "a value of node " + std::to_string(node) + " has left the exact range");
}

void Oracle::check_mass(std::size_t index) {
  const std::uint64_t have = total_[index] + flying_[index];
  const std::uint64_t want = start_[index] + trained_[index] + booked_[index];
  if (have == want) return;
  report("mass", "fragment " + std::to_string(index / layout_.values) + ", value " +
                     std::to_string(index % layout_.values) + ": the sum is off by " +
                     std::to_string(static_cast<Fixed>(have - want)) + " units of 2^-32");
}

void Oracle::recount(std::span<const FixedPointStore* const> stores) {
  for (std::size_t i = 0; i < layout_.total(); ++i) {
    std::uint64_t sum = 0;
    for (const FixedPointStore* store : stores) sum += bits(store->mass(i));
    if (sum != total_[i]) {
      report("mass", "a full recount of value " + std::to_string(i) +
                         " differs from the running sum: a node's replica "
                         "changed outside its own events");
    }
  }
}

std::vector<Oracle::Leftover> Oracle::leftovers(const std::vector<bool>& gone) {
  std::vector<Leftover> left(gone.size());
  for (NodeIndex initiator = 0; initiator < gone.size(); ++initiator) {
    std::set<std::pair<NodeIndex, std::uint16_t>> open;
    std::set<std::tuple<NodeIndex, std::uint16_t, std::uint32_t>> ledger;
    book_.each(initiator, [&](const ExchangeKey& key, const Record& record) {
      const std::pair place(record.responder, record.fragment);
      const bool ended =
          record.has(Record::kApplied) || record.has(Record::kClosed) || forgotten(key);
      if (gone[record.responder] && !ended) open.insert(place);
      if (gone[initiator] && record.has(Record::kCommitted))
        ledger.emplace(record.responder, record.fragment, key.boot);
    });
    left[initiator].open = open.size();
    for (const auto& entry : ledger) ++left[std::get<0>(entry)].ledger;
  }
  return left;
}

bool Oracle::all_landed() const {
  return std::all_of(
      book_.flights().begin(), book_.flights().end(), [this](const ExchangeBook::Flight& flight) {
        return flight.key.initiator == kNobody || book_.find(flight.key)->has(Record::kExcused);
      });
}

void Oracle::check_settled() {
  for (const ExchangeBook::Flight& flight : book_.flights()) {
    if (flight.key.initiator == kNobody) continue;
    const Record& record = *book_.find(flight.key);
    if (record.has(Record::kExcused)) {
      ++excused_;
    } else {
      report("both or neither", describe(flight.key) + " is committed by node " +
                                    std::to_string(record.responder) + " and was never applied");
    }
  }
}

void Oracle::report(std::string invariant, std::string text) {
  if (!violation_) violation_ = Violation{std::move(invariant), std::move(text)};
}

std::string Oracle::describe(const ExchangeKey& key) const {
  return "exchange " + std::to_string(key.sequence) + " of node " + std::to_string(key.initiator) +
         " (boot " + std::to_string(key.boot) + ")";
}

}  // namespace kith::sim
