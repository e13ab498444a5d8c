#include "node/mesh/mesh.h"

#include <zmq.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "node/mesh/cluster_key.h"
#include "node/mesh/mesh_core.h"
#include "node/mesh/mesh_dialler.h"
#include "node/mesh/mesh_listener.h"
#include "node/mesh/mesh_schedule.h"
#include "node/mesh/zap_handler.h"

namespace kith::node {
namespace {

// Longest wait in one go: what only polling notices is noticed within it.
constexpr Duration kWaitMax = std::chrono::seconds(1);

int timeout_ms(Duration wait) {
  if (wait <= Duration{0}) return 0;
  return static_cast<int>(
      std::chrono::ceil<std::chrono::milliseconds>(std::min(wait, kWaitMax)).count());
}

}  // namespace

struct Mesh::Impl {
  Impl(MeshSettings settings, const Identity& identity, HandshakePolicy& policy, const Clock& clock,
       Random random, LogSink& log)
      : core(std::move(settings), identity, policy, clock, std::move(random), log),
        zap(core.settings.key == nullptr
                ? nullptr
                : std::make_unique<ZapHandler>(core.context.get(),
                                               core.settings.key->curve().public_key)),
        dialler(core),
        listener(core, [this](const schema::Nonce& nonce) { return dialler.is_own_nonce(nonce); }) {
  }
  ~Impl() {
    core.context.shutdown();
  }  // lets the ZAP thread go; then the sockets, then the context

  void collect_items(int wake_fd);
  void wait(TimePoint now, TimePoint deadline, int wake_fd);
  bool drain_ready();
  void settle_owner();
  SendResult send_through(const LinkKey& link, const schema::Message& message,
                          const Slice& payload);

  MeshCore core;
  std::unique_ptr<ZapHandler> zap;
  MeshDialler dialler;
  MeshListener listener;
  // 0 wake_fd, 1 resolver, 2 router, 3 its monitor, then socket and monitor of each DEALER
  std::vector<zmq_pollitem_t> items;
  std::uint64_t items_generation = ~0ULL;
  bool woken = false;
  bool owner_settled = false;
};

namespace {
enum Item : std::size_t { kWake, kResolver, kRouter, kRouterMonitor, kDealers };
}

void Mesh::Impl::collect_items(int wake_fd) {
  if (items_generation == dialler.generation() && items[kWake].fd == wake_fd) return;
  items_generation = dialler.generation();
  items.assign(kDealers, zmq_pollitem_t{nullptr, -1, ZMQ_POLLIN, 0});
  items[kWake].fd = wake_fd;
  items[kResolver].fd = dialler.resolver_fd();
  items[kRouter].socket = listener.socket();
  items[kRouterMonitor].socket = listener.monitor();
  for (const auto& [socket, monitor] : dialler.handles()) {
    items.push_back({socket, 0, ZMQ_POLLIN, 0});
    items.push_back({monitor, 0, ZMQ_POLLIN, 0});
  }
}

void Mesh::Impl::wait(TimePoint now, TimePoint deadline, int wake_fd) {
  collect_items(wake_fd);
  const TimePoint until = std::min({deadline, dialler.next_deadline(), listener.next_deadline(),
                                    core.guard.next_check(), core.memory.next_deadline()});
  const bool at_once = !core.events.empty() || until <= now;
  if (zmq_poll(items.data(), static_cast<int>(items.size()),
               at_once ? 0 : timeout_ms(until - now)) < 0)
    for (auto& item : items) item.revents = 0;  // interrupted
  woken = items[kWake].revents != 0;
}

// On the thread that will own the mesh, which is rarely the one that made it.
void Mesh::Impl::settle_owner() {
  if (owner_settled) return;
  owner_settled = true;
  if (core.settings.plane == schema::Plane::kBulk) prefer_throughput();
}

bool Mesh::Impl::drain_ready() {
  if (items[kResolver].revents != 0) dialler.take_answers();
  if (items[kRouterMonitor].revents != 0) listener.drain_monitor();
  if (items[kRouter].revents != 0) listener.drain();
  for (std::size_t i = kDealers; i + 1 < items.size() && items_generation == dialler.generation();
       i += 2)
    if (items[i].revents != 0 || items[i + 1].revents != 0) dialler.drain((i - kDealers) / 2);
  return !core.events.empty();
}

SendResult Mesh::Impl::send_through(const LinkKey& link, const schema::Message& message,
                                    const Slice& payload) {
  return link.dealer != 0 ? dialler.send(link.dealer, message, payload)
                          : listener.send(link.routing_id, message, payload);
}

Mesh::Mesh(MeshSettings settings, const Identity& identity, HandshakePolicy& policy,
           const Clock& clock, Random random, LogSink& log)
    : impl_(std::make_unique<Impl>(std::move(settings), identity, policy, clock, std::move(random),
                                   log)) {}
Mesh::~Mesh() = default;

Status Mesh::bind(bool insecure) {
  impl_->items_generation = ~0ULL;
  return impl_->listener.bind(insecure);
}
std::string Mesh::bound_address() const { return impl_->listener.address(); }
void Mesh::dial(const std::string& address) { impl_->dialler.dial(address); }
void Mesh::undial(const std::string& address) { impl_->dialler.undial(address); }
std::size_t Mesh::links_max() const { return impl_->core.settings.links_max; }
bool Mesh::linked(const NodeId& id) const { return impl_->core.links.link_to(id) != nullptr; }
std::vector<KeyRefusal> Mesh::key_refusals() const { return impl_->dialler.key_refusals(); }
const MeshCounters& Mesh::counters() const { return impl_->core.counters; }

bool Mesh::send(const NodeId& to, const schema::Message& message, const Slice& payload) {
  for (;;) {
    const LinkKey* link = impl_->core.links.link_to(to);
    if (link == nullptr) return false;
    const LinkKey chosen = *link;  // a copy: the table changes when the link turns out to be gone
    const auto result = impl_->send_through(chosen, message, payload);
    if (result != SendResult::kNoRoute) return result == SendResult::kSent;
    impl_->core.unbind_link(chosen);
  }
}

std::vector<MeshEvent> Mesh::poll(TimePoint deadline, int wake_fd) {
  impl_->settle_owner();
  for (;;) {
    const TimePoint now = impl_->core.clock.now();
    impl_->dialler.tick(now);
    if (impl_->listener.bound()) impl_->listener.tick(now);
    impl_->core.memory.tick(now);
    impl_->core.counters.connections_cut += impl_->core.guard.check(now);
    impl_->wait(now, deadline, wake_fd);
    if (impl_->drain_ready() || impl_->woken || impl_->core.clock.now() >= deadline) break;
  }
  return std::exchange(impl_->core.events, {});
}

}  // namespace kith::node
