#include "tests/membership/swim_network.h"

#include <algorithm>
#include <cstring>

namespace kith::gossip::testing {

using schema::MemberRecord;
using schema::MemberState;

namespace {

schema::Signature toy_signature(const NodeId& signer, const Hash256& hash) {
  schema::Signature out{};
  std::copy(signer.bytes.begin(), signer.bytes.end(), out.begin());
  std::copy(hash.bytes.begin(), hash.bytes.end(), out.begin() + 32);
  return out;
}

std::size_t bytes_of(const schema::News& news) {
  std::size_t out = 40 + 160 * news.accusations.size();
  for (const MemberRecord& record : news.records)
    out += 400 + record.name.size() + record.control_address.size() + record.bulk_address.size();
  return out;
}

}  // namespace

NodeId test_id(std::size_t number) {
  NodeId id;
  Random random(number * 7919 + 17);  // spread like keys are
  for (auto& byte : id.bytes) byte = static_cast<std::uint8_t>(random.below(256));
  return id;
}

void ToyAuthority::sign(MemberRecord& own) {
  own.signature = toy_signature(own.id, signing_hash(own));
}
void ToyAuthority::sign(schema::Accusation& own) {
  own.signature = toy_signature(own.accuser, accusation_hash(own));
}
bool ToyAuthority::verify(const MemberRecord& record) {
  ++verified;
  return record.signature == toy_signature(record.id, signing_hash(record));
}
bool ToyAuthority::verify(const schema::Accusation& accusation) {
  ++verified;
  return accusation.signature == toy_signature(accusation.accuser, accusation_hash(accusation));
}

std::size_t bytes_of(const schema::Message& message) {
  return std::visit(
      [](const auto& m) -> std::size_t {
        std::size_t out = 64;
        if constexpr (requires { m.news; }) out += bytes_of(m.news);
        if constexpr (requires { m.wanted; }) out += 56 * m.entries.size() + 32 * m.wanted.size();
        if constexpr (std::is_same_v<std::decay_t<decltype(m)>, schema::Digest>)
          out += 8 * m.buckets.size();
        return out;
      },
      message);
}

SwimNetwork::SwimNetwork(std::size_t count, SwimSettings settings, std::uint64_t seed)
    : settings_(settings), random_(seed), nodes_(count) {
  clock_.set(TimePoint{} + std::chrono::hours(1));
  for (std::size_t i = 0; i < count; ++i) {
    nodes_[i].id = test_id(i);
    index_[nodes_[i].id] = i;
    start(i, 1000 + i, "127.0.0.1:" + std::to_string(4000 + i));
  }
}

void SwimNetwork::start(std::size_t index, std::uint64_t boot_nonce, const std::string& address) {
  TestNode& node = nodes_[index];
  MemberRecord own;
  own.id = node.id;
  own.incarnation = node.boot << 32;
  own.boot_nonce = boot_nonce;
  own.name = "node-" + std::to_string(index);
  own.control_address = address;
  node.swim = std::make_unique<Swim>(settings_, own, node.authority, Random(random_.next()), now());
  node.inbox.clear();
  after_call(index);
}

void SwimNetwork::introduce(std::size_t a, std::size_t b) {
  swim(a).on_record(now(), swim(b).own(), true);
  swim(b).on_record(now(), swim(a).own(), true);
  after_call(a);
  after_call(b);
}

void SwimNetwork::introduce_all() {
  for (std::size_t a = 0; a < size(); ++a)
    for (std::size_t b = 0; b < a; ++b) introduce(a, b);
}

void SwimNetwork::crash(std::size_t index) {
  nodes_[index].swim.reset();
  nodes_[index].wake = TimePoint::max();
}

void SwimNetwork::pause(std::size_t index) {
  nodes_[index].paused = true;
  nodes_[index].paused_since = now();
}

void SwimNetwork::resume(std::size_t index) {
  TestNode& node = nodes_[index];
  node.paused = false;
  node.swim->on_own_pause(now());
  for (auto& [from, message] : std::exchange(node.inbox, {}))
    node.swim->on_message(now(), from, message);
  node.swim->tick(now());
  node.wake = TimePoint::max();
  after_call(index);
}

void SwimNetwork::send(std::size_t from, std::size_t to, schema::Message message) {
  nodes_[from].bytes_out += testing::bytes_of(message);
  ++nodes_[from].messages_out;
  if (cut && cut(from, to)) return;
  if (random_.chance(loss)) return;
  const Duration slowness = nodes_[from].slowness + nodes_[to].slowness;
  const auto delay = latency + from_seconds(random_.uniform() * to_seconds(jitter + slowness));
  queue_.push(
      {now() + delay, order_++, to, from, std::make_shared<schema::Message>(std::move(message))});
}

// Takes what a machine put out, and sees that it is woken in time.
void SwimNetwork::after_call(std::size_t index) {
  TestNode& node = nodes_[index];
  for (SwimOutgoing& out : node.swim->take_outgoing()) {
    const auto to = index_.find(out.to);
    if (to != index_.end()) send(index, to->second, std::move(out.message));
  }
  for (SwimEvent& event : node.swim->take_events()) node.events.push_back(std::move(event));
  const TimePoint due = std::max(now(), node.swim->next_deadline());
  if (due >= node.wake) return;
  node.wake = due;
  queue_.push({due, order_++, index, index, nullptr});
}

void SwimNetwork::deliver(const Event& event) {
  TestNode& node = nodes_[event.to];
  if (!node.swim) return;
  if (event.message == nullptr) {
    if (event.at != node.wake) return;  // an earlier one took its place
    node.wake = TimePoint::max();
    if (node.paused) return;
    if (each_tick) each_tick(node);
    node.swim->tick(now());
  } else if (node.paused) {
    if (node.inbox.size() < 10000) node.inbox.emplace_back(nodes_[event.from].id, *event.message);
    return;
  } else {
    node.swim->on_message(now(), nodes_[event.from].id, *event.message);
  }
  after_call(event.to);
}

bool SwimNetwork::step(TimePoint until) {
  if (queue_.empty() || queue_.top().at > until) return false;
  const Event event = queue_.top();
  queue_.pop();
  clock_.set(std::max(now(), event.at));
  deliver(event);
  return true;
}

void SwimNetwork::run(Duration duration) {
  const TimePoint end = now() + duration;
  while (step(end)) {
  }
  clock_.set(end);
}

bool SwimNetwork::run_until(const std::function<bool()>& holds, Duration at_most) {
  const TimePoint end = now() + at_most;
  const Duration pace = settings_.probe_interval / 4;
  while (!holds()) {
    if (now() >= end) return false;
    run(std::min(pace, end - now()));
  }
  return true;
}

std::optional<MemberState> SwimNetwork::view(std::size_t observer, std::size_t subject) const {
  const SwimMember* member = nodes_[observer].swim->find(nodes_[subject].id);
  return member == nullptr ? std::nullopt : std::optional(member->state());
}

bool SwimNetwork::all_see(std::size_t subject, MemberState state) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (i != subject && nodes_[i].swim && view(i, subject) != state) return false;
  return true;
}

bool SwimNetwork::all_well() const {
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].swim && !all_see(i, MemberState::kAlive)) return false;
  return true;
}

std::size_t SwimNetwork::events_of(SwimEvent::Kind kind) const {
  std::size_t out = 0;
  for (const TestNode& node : nodes_)
    out += static_cast<std::size_t>(std::ranges::count(node.events, kind, &SwimEvent::kind));
  return out;
}

}  // namespace kith::gossip::testing
