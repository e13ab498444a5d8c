// The ledger's side of ExchangeResponder: results that leave, are replayed, acknowledged or
// forfeited.
#include <algorithm>
#include <utility>

#include "gossip/exchange/exchange_responder.h"

namespace kith::gossip {
namespace {

// Reminding is the initiator's own business; the responder's is slow, and only so that quiet times
// empty every ledger.
constexpr int kRemindAfterRetries = 4;
constexpr Duration kRemindMax = std::chrono::seconds(30);

constexpr schema::Stream kResult = schema::Stream::kResult;

}  // namespace

void ExchangeResponder::send_result(LedgerEntry& entry) {
  const ExchangeId& e = entry.result.e;
  context_.send(e.initiator, entry.result);
  ++context_.sent.result;
  if (context_.sender.has(e, kResult)) {
    context_.sender.resend(e, kResult);
  } else {
    context_.sender.open(e.initiator, e, kResult, entry.delta, entry.result.chunk_bytes);
  }
}

void ExchangeResponder::replay(LedgerEntry& entry) {
  ++context_.counters.replays;
  send_result(entry);
  rest(entry);
}

// Only the header: who still wants it says with a CREDIT what is missing, who is done says ACK.
void ExchangeResponder::remind(LedgerEntry& entry) {
  context_.sender.pause(entry.result.e, kResult);
  context_.send(entry.result.e.initiator, entry.result);
  ++context_.sent.result;
  ++context_.counters.replays;
  entry.backoff = std::min(2 * entry.backoff, kRemindMax);
  entry.resend_at = context_.now + entry.backoff;
}

void ExchangeResponder::rest(LedgerEntry& entry) {
  entry.backoff = kRemindAfterRetries * context_.settings.retry_interval;
  entry.resend_at = context_.now + entry.backoff;
  if (entry.queued > entry.resend_at) schedule(entry);
}

void ExchangeResponder::schedule(LedgerEntry& entry) {
  const bool listens = context_.reachable(entry.result.e.initiator);
  ledger_.deadlines().set(entry.queued, entry.result.e,
                          listens ? entry.resend_at : TimePoint::max());
}

void ExchangeResponder::on_credit(const NodeId& from, const schema::Credit& message) {
  LedgerEntry* entry = ledger_.find(message.e);
  if (entry == nullptr) return;
  const bool fresh = !context_.sender.has(message.e, kResult);
  if (fresh) {  // restored: nothing has left yet
    context_.sender.open(from, message.e, kResult, entry->delta, entry->result.chunk_bytes);
  }
  const bool news = context_.sender.credit(from, message.e, kResult, message.received);
  const bool was_paused = context_.sender.paused(message.e, kResult);
  if (was_paused) context_.sender.resend(message.e, kResult);
  if (news || was_paused || fresh) rest(*entry);
}

void ExchangeResponder::on_ack(const schema::Ack& message) {
  const ExchangeId& e = message.e;
  Book& book = books_[e.initiator];
  meet(e.initiator, book, e.incarnation);
  drop_collection(book, e);
  if (ledger_.find(e) != nullptr) {
    free_entry(e);
    pass(FaultPoint::kAckReceived);
  } else {
    bury(book, e);
  }
  settle_below(e.initiator, book, e.incarnation, message.lowest_open);
}

void ExchangeResponder::free_entry(const ExchangeId& e_in) {
  const ExchangeId e = e_in;  // it may live in the entry
  context_.sender.close(e, kResult);
  ledger_.erase(e);
  bury(books_[e.initiator], e);
}

void ExchangeResponder::forfeit(const ExchangeId& e) {
  const LedgerEntry& entry = *ledger_.find(e);
  ++context_.counters.forfeited;
  context_.counters.forfeited_norm += entry.norm();
  ExchangeEvent event;
  event.kind = ExchangeEvent::Kind::kForfeited;
  event.e = entry.result.e;
  event.peer = entry.result.e.initiator;
  event.fragment = entry.result.fragment;
  event.distance_squared = entry.result.distance_squared;
  event.norm_squared = entry.result.norm_squared;
  event.payload_bytes = entry.delta.size();
  context_.events.push_back(event);
  free_entry(entry.result.e);
}

bool ExchangeResponder::is_forfeitable(const LedgerEntry& entry) const {
  return entry.superseded || context_.find_peer(entry.result.e.initiator) == nullptr;
}

bool ExchangeResponder::forfeit_one() {
  const LedgerEntry* oldest =
      ledger_.oldest([this](const LedgerEntry& entry) { return is_forfeitable(entry); });
  if (oldest == nullptr) return false;
  forfeit(oldest->result.e);
  return true;
}

// The initiator has restarted: what it was sending is lost, what was committed may still be asked
// for.
void ExchangeResponder::supersede(const NodeId& initiator, Book& book) {
  while (!book.collecting.empty()) {
    const ExchangeId e = book.collecting.begin()->second;
    drop_collection(book, e);
  }
  for (const ExchangeId& e : ledger_.of(initiator)) {
    LedgerEntry& entry = *ledger_.find(e);
    entry.superseded = true;
    context_.sender.close(e, kResult);  // it has lost what it had received
  }
}

void ExchangeResponder::forget_peer(const NodeId& initiator) {
  const auto it = books_.find(initiator);
  if (it == books_.end()) return;
  while (!it->second.collecting.empty()) {
    const ExchangeId e = it->second.collecting.begin()->second;
    drop_collection(it->second, e);
  }
  it->second.closed.condense();
}

void ExchangeResponder::on_peers(const std::vector<Peer>& before) {
  for (const Peer& was : before) {
    if (context_.find_peer(was.id) == nullptr) forget_peer(was.id);
  }
  for (const Peer& is : context_.peers) {
    const auto it = books_.find(is.id);
    if (it == books_.end()) continue;
    if (boot_of(is.incarnation) > boot_of(it->second.closed.incarnation())) {
      const Incarnation boot = boot_of(is.incarnation);
      meet(is.id, it->second, is.incarnation >> 32 != 0 ? boot << 32 : boot);
    }
  }
  for (const LedgerEntry* held : ledger_.all()) {
    LedgerEntry& entry = *ledger_.find(held->result.e);
    const bool listens = context_.reachable(entry.result.e.initiator);
    if (!listens) context_.sender.pause(entry.result.e, kResult);
    if (listens && entry.queued == TimePoint::max()) rest(entry);
    schedule(entry);
  }
}

std::vector<ExchangeResponder::ClosedOf> ExchangeResponder::closed_ids() const {
  std::vector<ClosedOf> all;
  for (const auto& [id, book] : books_) all.push_back({id, book.closed});
  std::sort(all.begin(), all.end(),
            [](const ClosedOf& a, const ClosedOf& b) { return a.initiator < b.initiator; });
  return all;
}

void ExchangeResponder::restore(std::vector<ClosedOf> closed, std::vector<LedgerEntry> entries) {
  for (ClosedOf& of : closed) books_[of.initiator].closed = std::move(of.closed);
  for (LedgerEntry& entry : entries) {
    books_.try_emplace(entry.result.e.initiator);
    LedgerEntry& stored = ledger_.add(std::move(entry));
    rest(stored);
    schedule(stored);
  }
}

}  // namespace kith::gossip
