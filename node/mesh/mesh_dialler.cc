#include "node/mesh/mesh_dialler.h"

#include <zmq.h>

#include <algorithm>
#include <utility>

#include "node/mesh/mesh_dealer.h"
#include "node/mesh/mesh_handshake.h"

namespace kith::node {
namespace {

// How much rarer things are that need no hurry: another look at a name that works, at an address
// that is our own.
constexpr int kUnhurried = 4;

bool contains(const std::vector<std::string>& list, const std::string& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

std::string without_scheme(const std::string& endpoint) {
  return endpoint.substr(endpoint.find("//") + 2);
}

}  // namespace

MeshDialler::MeshDialler(MeshCore& core) : core_(core), resolver_(core.settings.lookup) {}
MeshDialler::~MeshDialler() = default;

void MeshDialler::dial(const std::string& address) {
  const auto parsed = parse_mesh_address(address);
  if (!parsed || parsed->port == 0) {
    core_.events.emplace_back(DialFailed{
        address, parsed ? "port 0 cannot be dialled: say the port" : parsed.error().message});
    return;
  }
  auto [it, fresh] = targets_.try_emplace(address);
  Target& target = it->second;
  if (fresh) {
    target.address = *parsed;
    target.numeric = is_numeric_host(parsed->host);
    target.backoff = core_.retry_min;
    if (target.numeric) target.endpoints = {tcp_endpoint(*parsed)};
  }
  for (const auto& endpoint : target.endpoints)
    if (const auto parked = parked_.find(endpoint);
        parked != parked_.end() && parked->second == TimePoint::max())
      parked_.erase(parked);
  dirty_ = true;
}

void MeshDialler::undial(const std::string& address) {
  if (targets_.erase(address) == 0) return;
  close_unused();
  dirty_ = true;
}

// ---- time

void MeshDialler::tick(TimePoint now) {
  if (!dirty_ && now < next_due_) return;
  dirty_ = false;
  look_up_due(now);
  open_missing(now);
  retry_due(now);
  schedule();
}

void MeshDialler::look_up_due(TimePoint now) {
  for (auto& [text, target] : targets_) {
    if (target.numeric || target.looking_up || now < target.next_lookup) continue;
    target.looking_up = true;
    const bool linked = any_linked(target);
    target.backoff =
        linked ? core_.retry_max * kUnhurried : std::min(target.backoff, core_.retry_max);
    target.next_lookup = now + core_.jittered(target.backoff);
    target.backoff = linked ? core_.retry_min : std::min(target.backoff * 2, core_.retry_max);
    resolver_.start(target.address.host);
  }
}

void MeshDialler::take_answers() {
  for (auto& answer : resolver_.take()) {
    for (auto& [text, target] : targets_) {
      if (target.numeric || !target.looking_up || target.address.host != answer.host) continue;
      target.looking_up = false;
      dirty_ = true;
      if (!answer.addresses) {  // the addresses of the last answer stay
        core_.events.emplace_back(DialFailed{text, answer.addresses.error().message});
        continue;
      }
      target.endpoints.clear();
      for (const auto& host : *answer.addresses)
        if (is_numeric_host(host))
          target.endpoints.push_back(tcp_endpoint({host, target.address.port}));
    }
  }
  if (dirty_) close_unused();
}

void MeshDialler::open_missing(TimePoint now) {
  for (const auto& [text, target] : targets_) {
    for (const auto& endpoint : target.endpoints) {
      if (dealers_.contains(endpoint)) continue;
      const auto parked = parked_.find(endpoint);
      if (parked != parked_.end() && now < parked->second) continue;
      parked_.erase(endpoint);
      open(endpoint, now);
    }
  }
}

void MeshDialler::open(const std::string& endpoint, TimePoint now) {
  make_room();
  auto dealer = Dealer::open(core_, endpoint, next_number_);
  if (!dealer) {
    report_failure(endpoint, dealer.error().message);
    parked_[endpoint] = now + core_.jittered(core_.retry_max);
    return;
  }
  ++next_number_;
  (*dealer)->last_use = ++uses_;
  (*dealer)->next_try = now + core_.jittered((*dealer)->backoff);
  order_.push_back(dealer->get());
  dealers_[endpoint] = std::move(*dealer);
  ++generation_;
}

void MeshDialler::make_room() {
  if (dealers_.size() < core_.settings.links_max) return;
  const auto oldest =
      std::min_element(order_.begin(), order_.end(),
                       [](const Dealer* a, const Dealer* b) { return a->last_use < b->last_use; });
  const std::string endpoint = (*oldest)->endpoint;
  close(endpoint);
  parked_[endpoint] = TimePoint::max();
}

void MeshDialler::close_unused() {
  std::vector<std::string> unused;
  for (const auto& [endpoint, dealer] : dealers_) {
    const auto wants = [&endpoint](const auto& entry) {
      return contains(entry.second.endpoints, endpoint);
    };
    if (std::none_of(targets_.begin(), targets_.end(), wants)) unused.push_back(endpoint);
  }
  for (const auto& endpoint : unused) close(endpoint);
  std::erase_if(parked_, [this](const auto& parked) {
    return std::none_of(targets_.begin(), targets_.end(), [&parked](const auto& entry) {
      return contains(entry.second.endpoints, parked.first);
    });
  });
}

void MeshDialler::close(const std::string& endpoint) {
  const auto it = dealers_.find(endpoint);
  unlink(*it->second);
  core_.guard.closed(it->second->fd);
  order_.erase(std::find(order_.begin(), order_.end(), it->second.get()));
  dealers_.erase(it);
  ++generation_;
}

void MeshDialler::retry_due(TimePoint now) {
  for (auto& [endpoint, dealer] : dealers_) {
    if (dealer->state == Dealer::State::kLinked || now < dealer->next_try) continue;
    if (dealer->state != Dealer::State::kWaiting) {
      dealer->refused = false;
      report_failure(endpoint, dealer->why_silent());
    }
    dealer->backoff = std::min(dealer->backoff * 2, core_.retry_max);
    dealer->next_try = now + core_.jittered(dealer->backoff);
    if (dealer->state != Dealer::State::kConnecting) greet(*dealer, now);
  }
}

void MeshDialler::schedule() {
  next_due_ = TimePoint::max();
  for (const auto& [text, target] : targets_)
    if (!target.numeric && !target.looking_up) next_due_ = std::min(next_due_, target.next_lookup);
  for (const auto& [endpoint, dealer] : dealers_)
    if (dealer->state != Dealer::State::kLinked) next_due_ = std::min(next_due_, dealer->next_try);
  for (const auto& [endpoint, until] : parked_) next_due_ = std::min(next_due_, until);
}

// ---- looking things up

bool MeshDialler::any_linked(const Target& target) const {
  return std::any_of(target.endpoints.begin(), target.endpoints.end(),
                     [this](const std::string& endpoint) {
                       const auto it = dealers_.find(endpoint);
                       return it != dealers_.end() && it->second->state == Dealer::State::kLinked;
                     });
}

// An address of our own, which is parked, is nobody's refusal.
bool MeshDialler::all_refused(const Target& target) const {
  return std::all_of(target.endpoints.begin(), target.endpoints.end(),
                     [this](const std::string& endpoint) {
                       const auto it = dealers_.find(endpoint);
                       return it != dealers_.end() && it->second->refused;
                     });
}

bool MeshDialler::is_own_nonce(const schema::Nonce& nonce) const {
  return std::any_of(order_.begin(), order_.end(),
                     [&](const Dealer* d) { return d->nonce == nonce; });
}

MeshDialler::Dealer* MeshDialler::find(std::uint64_t number) {
  const auto it = std::find_if(order_.begin(), order_.end(),
                               [=](const Dealer* d) { return d->number == number; });
  return it == order_.end() ? nullptr : *it;
}

std::vector<std::string> MeshDialler::addresses_of(const std::string& endpoint) const {
  std::vector<std::string> addresses;
  for (const auto& [text, target] : targets_)
    if (contains(target.endpoints, endpoint)) addresses.push_back(text);
  return addresses;
}

void MeshDialler::report_failure(const std::string& endpoint, const std::string& why) {
  for (const auto& address : addresses_of(endpoint))
    core_.events.emplace_back(DialFailed{address, without_scheme(endpoint) + ": " + why});
}

std::vector<KeyRefusal> MeshDialler::key_refusals() const {
  std::vector<KeyRefusal> refusals;
  for (const auto& [endpoint, dealer] : dealers_) {
    if (!dealer->key_refused()) continue;
    const std::string numeric = without_scheme(endpoint);
    const auto given = addresses_of(endpoint);
    const bool by_name = !given.empty() && given.front() != numeric;
    refusals.push_back({by_name ? given.front() + " (" + numeric + ")" : numeric, dealer->trouble});
  }
  return refusals;
}

std::vector<std::pair<void*, void*>> MeshDialler::handles() const {
  std::vector<std::pair<void*, void*>> handles;
  handles.reserve(order_.size());
  for (const Dealer* dealer : order_)
    handles.emplace_back(dealer->socket.get(), dealer->monitor.handle());
  return handles;
}

// ---- one DEALER

bool MeshDialler::drain(std::size_t index) {
  Dealer& dealer = *order_[index];
  ConnectionEvent event;
  while (dealer.monitor.next(event)) on_connection(dealer, event);
  const std::uint64_t generation = generation_;
  Incoming incoming;
  for (int i = 0; i < MeshCore::kBatchMessages; ++i) {
    const auto result = receive_message(dealer.socket.get(), false, incoming);
    if (result == ReceiveResult::kNothing) return false;
    core_.guard.delivered(dealer.fd);
    if (result == ReceiveResult::kMalformed)
      core_.count_malformed();
    else
      on_incoming(dealer, incoming);
    if (generation != generation_) return false;  // this DEALER was closed by what it received
  }
  return true;
}

void MeshDialler::on_connection(Dealer& dealer, const ConnectionEvent& event) {
  using Kind = ConnectionEvent::Kind;
  if (event.kind == Kind::kUnmade) dealer.forget_trouble();
  if (event.kind == Kind::kRefused) {
    dealer.trouble = event.why;
    if (!event.slow) dealer.hung_up += event.sure ? 2 : 1;
  }
  if (event.kind == Kind::kMade) {
    dealer.fd = event.fd;
    core_.guard.opened(event.fd);
  } else if (event.kind == Kind::kLost) {
    core_.guard.closed(event.fd);
    unlink(dealer);
    dealer.state = Dealer::State::kConnecting;
    dirty_ = true;
  } else if (event.kind == Kind::kReady) {
    dealer.backoff = core_.retry_min;
    greet(dealer, core_.clock.now());
  }
}

void MeshDialler::greet(Dealer& dealer, TimePoint now) {
  unlink(dealer);
  dealer.nonce = random_nonce();
  auto hello = core_.policy.make_hello(core_.settings.plane);
  hello.plane = core_.settings.plane;
  hello.nonce = dealer.nonce;
  hello.peer_nonce = {};
  hello.signature = {};
  core_.send(dealer.socket, nullptr, hello);
  dealer.state = Dealer::State::kGreeting;
  dealer.forget_trouble();
  dealer.next_try = now + core_.jittered(dealer.backoff);
  dirty_ = true;
}

void MeshDialler::unlink(Dealer& dealer) {
  if (dealer.state != Dealer::State::kLinked) return;
  dealer.state = Dealer::State::kConnecting;
  dealer.backoff = core_.retry_min;
  dealer.next_try = core_.clock.now() + core_.jittered(dealer.backoff);
  core_.unbind_link(LinkKey::of_dealer(dealer.number));
}

void MeshDialler::on_incoming(Dealer& dealer, Incoming& incoming) {
  auto message = core_.decode(incoming);
  if (!message) return;
  dealer.last_use = ++uses_;
  if (const auto* challenge = std::get_if<schema::Challenge>(&*message))
    return on_challenge(dealer, *challenge);
  if (auto* welcome = std::get_if<schema::Welcome>(&*message))
    return on_welcome(dealer, std::move(*welcome));
  if (const auto* reject = std::get_if<schema::Reject>(&*message))
    return on_reject(dealer, *reject);
  if (is_handshake(*message)) return core_.count_malformed();  // HELLO: not towards a dialler
  const NodeId* peer = core_.links.peer_of_dealer(dealer.number);
  if (peer == nullptr)
    ++core_.counters.dropped_unbound;
  else
    core_.deliver(*peer, std::move(*message), std::move(incoming.payload));
}

void MeshDialler::on_challenge(Dealer& dealer, const schema::Challenge& challenge) {
  if (dealer.state != Dealer::State::kGreeting || challenge.peer_nonce != dealer.nonce) return;
  auto hello = core_.policy.make_hello(core_.settings.plane);
  hello.plane = core_.settings.plane;
  hello.nonce = dealer.nonce;
  hello.peer_nonce = challenge.nonce;
  hello.signature = core_.identity.sign(
      hello_proof(core_.settings.plane, hello.nonce, hello.peer_nonce, core_.identity.id()));
  core_.send(dealer.socket, nullptr, hello);
  dealer.state = Dealer::State::kProving;
}

void MeshDialler::on_welcome(Dealer& dealer, schema::Welcome welcome) {
  if (dealer.state != Dealer::State::kProving) return;
  if (const auto flaw = find_flaw(welcome, core_.settings.plane, dealer.nonce); !flaw.empty()) {
    dealer.state = Dealer::State::kWaiting;
    return report_failure(dealer.endpoint, std::string(flaw));
  }
  dealer.state = Dealer::State::kLinked;
  dealer.refused = false;
  dealer.backoff = core_.retry_min;
  dirty_ = true;
  const NodeId id = welcome.record.id;
  core_.bind_link(LinkKey::of_dealer(dealer.number),
                  PeerUp{id, true, true, std::nullopt, std::move(welcome)});
}

void MeshDialler::on_reject(Dealer& dealer, const schema::Reject& reject) {
  if (dealer.state ==
      Dealer::State::kLinked) {  // a process that does not know us has taken the other's place
    greet(dealer, core_.clock.now());
    return;
  }
  if (dealer.state != Dealer::State::kGreeting && dealer.state != Dealer::State::kProving) return;
  dealer.state = Dealer::State::kWaiting;
  dealer.refused = true;
  const bool self = reject.code == schema::RejectCode::kSelf;
  for (const auto& address : addresses_of(dealer.endpoint)) {
    const Target& target = targets_.at(address);
    core_.events.emplace_back(
        Refused{self && !target.numeric ? without_scheme(dealer.endpoint) : address, reject,
                all_refused(target)});
  }
  if (!self) return;
  const std::string endpoint = dealer.endpoint;
  parked_[endpoint] = core_.clock.now() + core_.jittered(core_.retry_max * kUnhurried);
  close(endpoint);
  dirty_ = true;
}

SendResult MeshDialler::send(std::uint64_t number, const schema::Message& message,
                             const Slice& payload) {
  Dealer* dealer = find(number);
  if (dealer == nullptr) return SendResult::kNoRoute;
  dealer->last_use = ++uses_;
  return core_.send(dealer->socket, nullptr, message, payload);
}

}  // namespace kith::node
