// The rounds of ExchangeInitiator: with whom, which fragments, in which order.
#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "gossip/exchange/exchange_initiator.h"

namespace kith::gossip {
namespace {

// Redraws when the drawn peer has no link or does not answer. Deterministic topologies draw the
// same again.
constexpr int kDraws = 8;

// Where a round begins to propose: unrelated between nodes and between rounds, so that two nodes
// that draw each other start at different fragments.
std::uint64_t rotation(const NodeId& self, std::uint64_t round) {
  std::uint64_t x = NodeIdHasher()(self) + round * 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCDULL;
  return x ^ (x >> 33);
}

}  // namespace

void ExchangeInitiator::on_step(Step step) {
  context_.own_step = step;
  const std::uint64_t every = context_.settings.every_steps;
  if (every == 0 || step / every == step_quotient_) return;
  step_quotient_ = step / every;
  start_round();
}

void ExchangeInitiator::start_round() {
  if (!context_.active || context_.draining) return;
  no_buffer_ = false;
  draw_partner();
  const std::size_t count = current_.size();
  const std::size_t first = rotation(context_.settings.self, round_) % count;
  ++round_;
  granted_.assign(count, partner_.has_value());
  wanting_.clear();
  if (!partner_) return;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t fragment = (first + i) % count;
    if (current_[fragment] == 0) wanting_.push_back(static_cast<FragmentIndex>(fragment));
  }
}

void ExchangeInitiator::draw_partner() {
  partner_.reset();
  const auto after =
      std::lower_bound(context_.peers.begin(), context_.peers.end(), context_.settings.self,
                       [](const Peer& peer, const NodeId& id) { return peer.id < id; });
  const auto self_index = static_cast<std::uint32_t>(after - context_.peers.begin());
  for (int i = 0; i < kDraws; ++i) {
    const Peer* peer = draw_once(self_index);
    if (peer == nullptr || !peer->connected) continue;
    partner_ = peer->id;  // a silent one only if no draw finds another
    const auto state = peers_.find(peer->id);
    if (state == peers_.end() || !state->second.silent) return;
  }
}

const Peer* ExchangeInitiator::draw_once(std::uint32_t self_index) {
  const auto count = static_cast<std::uint32_t>(context_.peers.size()) + 1;
  const auto drawn = chooser_.partner(self_index, count, round_, context_.random);
  if (!drawn || *drawn == self_index || *drawn >= count) return nullptr;
  return &context_.peers[*drawn < self_index ? *drawn : *drawn - 1];
}

bool ExchangeInitiator::has_budget(std::size_t bytes) const {
  return open_bytes_ == 0 || open_bytes_ + bytes <= context_.settings.proposal_bytes_max;
}

void ExchangeInitiator::pump() {
  if (!context_.active || context_.draining || !partner_) return;
  while (!wanting_.empty() && !no_buffer_) {
    const FragmentIndex fragment = wanting_.front();
    if (const auto it = suspended_.find({*partner_, fragment}); it != suspended_.end()) {
      Entry& entry = *open_.find(it->second);
      granted_[fragment] = false;
      wanting_.pop_front();
      if (context_.now >= entry.second.last_ask + context_.settings.retry_interval) ask(entry);
      schedule(entry);
      continue;
    }
    if (!has_budget(context_.store.payload_bytes(fragment, context_.codec))) return;
    if (!start(fragment)) return;
  }
}

bool ExchangeInitiator::start(FragmentIndex fragment) {
  const Key key{context_.settings.incarnation, next_sequence_};
  auto snapshot = context_.store.snapshot(id_of(key), fragment, context_.codec);
  if (!snapshot && snapshot.error().code == ErrorCode::kBusy) {
    no_buffer_ = true;
    return false;
  }
  granted_[fragment] = false;
  wanting_.pop_front();
  if (!snapshot) return true;  // our own replica is broken: the trainer notices, nothing leaves
  KITH_CHECK(snapshot->size() == context_.store.payload_bytes(fragment, context_.codec),
             "snapshot of fragment " + std::to_string(fragment) + " has " +
                 std::to_string(snapshot->size()) + " bytes");
  ++next_sequence_;
  Entry& entry = *open_.try_emplace(key).first;
  Exchange& exchange = entry.second;
  exchange.peer = *partner_;
  exchange.fragment = fragment;
  exchange.codec = context_.codec;
  exchange.payload_bytes = snapshot->size();
  exchange.step = context_.own_step;
  exchange.started = exchange.last_progress = exchange.last_ask = context_.now;
  current_[fragment] = key.second;
  open_bytes_ += exchange.payload_bytes;
  peers_.try_emplace(exchange.peer);
  ++context_.counters.proposed;
  send_propose(entry, true);
  context_.sender.open(exchange.peer, id_of(key), schema::Stream::kProposal, std::move(*snapshot),
                       context_.chunk_bytes_for(exchange.payload_bytes));
  schedule(entry);
  return true;
}

void ExchangeInitiator::free_fragment(FragmentIndex fragment) {
  current_[fragment] = 0;
  no_buffer_ = false;
  if (granted_[fragment]) wanting_.push_back(fragment);
}

}  // namespace kith::gossip
