#include "node/daemon/exchange_loop.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"

namespace kith::node {

using gossip::ExchangeMachine;

namespace {

constexpr std::size_t kHeldBackBytesMax =
    64U << 20;  // beyond it a message counts as lost, and is asked for again
constexpr std::size_t kHeldBackMessageBytes = 1024;  // a header, decoded

bool is_transfer(const schema::Message& message) {
  constexpr std::uint64_t kTransferBit = 1ULL << 63;
  return std::visit(
      [](const auto& m) {
        if constexpr (requires { m.e.sequence; }) return (m.e.sequence & kTransferBit) != 0;
        return false;
      },
      message);
}

}  // namespace

ExchangeLoop::ExchangeLoop(gossip::ExchangeSettings exchange, gossip::TransferSettings transfer,
                           Mesh& mesh, gossip::FragmentStore& store,
                           const gossip::PartnerChooser& chooser, gossip::DonorSource& donor,
                           const Clock& clock, Random random, LogSink& log,
                           std::function<void()> on_happening)
    : mesh_(mesh),
      clock_(clock),
      log_(log),
      self_(exchange.self),
      on_happening_(std::move(on_happening)),
      machine_(std::move(exchange), store, chooser, random.fork("exchange")),
      transfer_(std::move(transfer), donor),
      links_(PeerLinks::wires_of(mesh)) {}

ExchangeLoop::~ExchangeLoop() { stop(); }

Status ExchangeLoop::restore(const gossip::LedgerImage& image) { return machine_.restore(image); }

void ExchangeLoop::start() {
  thread_ = std::thread([this] { run(); });
}

void ExchangeLoop::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  wake_.ring();
  thread_.join();
}

void ExchangeLoop::post(std::function<void()> command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  wake_.ring();
}

void ExchangeLoop::step(Step step) {
  stepped_.store(step, std::memory_order_relaxed);
  if (!step_pending_.exchange(true, std::memory_order_release)) wake_.ring();
}

void ExchangeLoop::set_active(bool active) {
  post([this, active] { machine_.set_active(active); });
}
void ExchangeLoop::set_draining(bool draining) {
  post([this, draining] { machine_.set_draining(draining); });
}
void ExchangeLoop::set_codec(CodecId codec) {
  post([this, codec] { machine_.set_codec(codec); });
}
void ExchangeLoop::set_depth(Step depth, Step own_step, Step max_lag) {
  post([this, depth, own_step, max_lag] {
    machine_.set_depth(depth, own_step);
    machine_.set_max_lag(max_lag);
  });
}
void ExchangeLoop::abandon_open() {
  post([this] { machine_.abandon_open(clock_.now()); });
}
void ExchangeLoop::cancel_fetch() {
  post([this, number = happenings_.next_fetch()] {
    fetch_ = number;
    transfer_.cancel();
  });
}

void ExchangeLoop::set_rounds_every(Duration interval) {
  post([this, interval] {
    rounds_every_ = interval;
    next_round_ = clock_.now();
  });
}

void ExchangeLoop::fetch(std::vector<NodeId> donors, gossip::FetchOrder order) {
  post([this, number = happenings_.next_fetch(), donors = std::move(donors),
        order = std::move(order)]() mutable {
    fetch_ = number;
    last_giver_ = donors.empty() ? NodeId{} : donors.front();
    lost_donors_.clear();
    fetch_donors_ = std::move(donors);
    transfer_.fetch(clock_.now(), reachable_donors(), std::move(order));
  });
}

// Those with a link: a question to anybody else is lost, and waited for. Without any, all: links
// are being made.
std::vector<NodeId> ExchangeLoop::reachable_donors() const {
  std::vector<NodeId> linked;
  for (const NodeId& id : fetch_donors_)
    if (mesh_.linked(id)) linked.push_back(id);
  return linked.empty() ? fetch_donors_ : linked;
}

void ExchangeLoop::set_donors(std::vector<NodeId> donors) {
  post([this, donors = std::move(donors)]() mutable {
    if (!transfer_.fetching() || donors == fetch_donors_) return;
    fetch_donors_ = std::move(donors);
    transfer_.set_donors(clock_.now(), reachable_donors());
  });
}

void ExchangeLoop::pause_exchanges(std::function<void(gossip::LedgerImage)> taker) {
  post([this, taker = std::move(taker)] {
    ++pauses_;
    taker(machine_.image());
  });
}

void ExchangeLoop::resume_exchanges() {
  post([this] {
    KITH_CHECK(pauses_ > 0, "exchanges that go on were paused");
    if (--pauses_ > 0) return;
    held_back_bytes_ = 0;
    for (MeshEvent& event : std::exchange(held_back_, {})) handle(event);
  });
}

void ExchangeLoop::set_peers(std::vector<BulkPeer> peers) {
  post([this, peers = std::move(peers)]() mutable {
    if (peers == peers_) return;
    std::set<NodeId> stay;
    for (const BulkPeer& peer : peers) stay.insert(peer.id);
    for (const BulkPeer& old : peers_)
      if (!stay.contains(old.id)) transfer_.peer_gone(clock_.now(), old.id);
    peers_ = std::move(peers);
    connect_peers(clock_.now());
  });
}

// Keeps a link to every peer and tells the machine who is there and reachable.
void ExchangeLoop::connect_peers(TimePoint now) {
  std::vector<PeerLinks::Peer> wanted;
  for (const BulkPeer& peer : peers_)
    wanted.push_back({peer.id, peer.bulk_address, true, self_ < peer.id});
  links_.keep_all(wanted, now);
  std::vector<ExchangeMachine::Peer> present;
  for (const BulkPeer& peer : peers_)
    if (peer.exchanges) present.push_back({peer.id, peer.incarnation, mesh_.linked(peer.id)});
  std::sort(present.begin(), present.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  machine_.set_peers(now, std::move(present));
}

void ExchangeLoop::handle(MeshEvent& event) {
  const TimePoint now = clock_.now();
  if (auto* received = std::get_if<Received>(&event)) {
    if (is_transfer(received->message))
      transfer_.on_message(now, received->from, received->message, received->payload);
    else if (!paused())
      machine_.on_message(now, received->from, received->message, received->payload);
    else if (held_back_bytes_ < kHeldBackBytesMax) {
      held_back_bytes_ += received->payload.size() + kHeldBackMessageBytes;
      held_back_.push_back(std::move(event));
    }
    return;
  }
  if (const auto* up = std::get_if<PeerUp>(&event)) {
    connect_peers(now);
    transfer_.set_donors(now, reachable_donors());
    transfer_.peer_up(now, up->id);
  } else if (const auto* down = std::get_if<PeerDown>(&event)) {
    transfer_.peer_gone(now, down->id);
    connect_peers(now);
  } else if (const auto* refused = std::get_if<Refused>(&event)) {
    log_.log(LogLevel::kDebug, "exchange", "bulk link refused",
             {{"address", refused->address}, {"reason", refused->reject.detail}});
  }
}

TimePoint ExchangeLoop::deadline() const {
  TimePoint at = std::min(machine_.next_deadline(), transfer_.next_deadline());
  if (paused()) at = transfer_.next_deadline();
  if (rounds_every_ > Duration{0} && !paused()) at = std::min(at, next_round_);
  return std::min(at, links_.next_deadline());
}

void ExchangeLoop::send_all(std::vector<gossip::Outgoing> outgoing) {
  for (const gossip::Outgoing& out : outgoing) {
    // No room or no link: the message counts as lost, and the machines ask again.
    (void)mesh_.send(out.to, out.message, out.payload);
  }
}

void ExchangeLoop::turn(TimePoint now) {
  if (now >= links_.next_deadline()) connect_peers(now);
  if (!paused()) {
    if (step_pending_.exchange(false, std::memory_order_acquire))
      machine_.on_step(now, stepped_.load(std::memory_order_relaxed));
    if (rounds_every_ > Duration{0} && now >= next_round_) {
      next_round_ = now + rounds_every_;
      machine_.on_round(now);
    }
    if (machine_.next_deadline() <= now) machine_.tick(now);
  }
  if (transfer_.next_deadline() <= now) transfer_.tick(now);
  send_all(machine_.take_outgoing());
  send_all(transfer_.take_outgoing());

  report_fetch();
  auto events = machine_.take_events();
  // Exchanges are only counted: the control loop looks often enough. What it must act on wakes it.
  bool ring = false;
  for (const auto& event : events) ring |= event.kind == gossip::ExchangeEvent::Kind::kLagging;
  happenings_.add(std::move(events));
  const std::lock_guard lock(mutex_);
  snapshot_ = {machine_.counters(),
               mesh_.counters(),
               machine_.open_count(),
               machine_.ledger_entries(),
               machine_.ledger_bytes(),
               machine_.inbound_bytes(),
               drained()};
  if (ring) on_happening_();
}

void ExchangeLoop::report_fetch() {
  for (const auto& trouble : transfer_.take_troubles()) {
    lost_donors_.push_back(trouble.donor);
    log_.log(LogLevel::kInfo, "exchange", "a donor was lost",
             {{"peer", trouble.donor.short_hex()}, {"why", trouble.why.message}});
  }
  auto fetched = transfer_.take_fetched();
  auto end = transfer_.take_end();
  if (fetched.empty() && !end) return;
  bool told = false;
  for (auto& item : fetched) {
    last_giver_ = item.from;
    told |= happenings_.add(fetch_, std::move(item));
  }
  if (end)
    told |= happenings_.add(
        fetch_, FetchEnded{last_giver_, std::move(*end), std::exchange(lost_donors_, {})});
  if (told) on_happening_();
}

void ExchangeLoop::run() {
  while (!stopping_) {
    turn(clock_.now());
    auto events = mesh_.poll(deadline(), wake_.fd());
    wake_.clear();
    for (MeshEvent& event : events) handle(event);
    std::vector<std::function<void()>> commands;
    {
      const std::lock_guard lock(mutex_);
      commands.swap(commands_);
    }
    for (auto& command : commands) command();
  }
  turn(clock_.now());
}

// Nobody is waited for who is not there any more: what it has not collected is in the checkpoint's
// ledger.
bool ExchangeLoop::drained() const {
  return machine_.drained([this](const NodeId& id) {
    return std::any_of(peers_.begin(), peers_.end(),
                       [&id](const BulkPeer& peer) { return peer.id == id; });
  });
}

ExchangeSnapshot ExchangeLoop::snapshot() const {
  const std::lock_guard lock(mutex_);
  return snapshot_;
}

}  // namespace kith::node
