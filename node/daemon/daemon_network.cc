#include "node/daemon/daemon_network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "gossip/exchange/exchange.h"
#include "node/text/address.h"

namespace kith::node {

namespace {

gossip::ExchangeSettings exchange_settings(const NetworkParts& parts) {
  const Config& config = parts.config;
  const gossip::Composition& composition = parts.input.composition;
  gossip::ExchangeSettings s;
  s.self = parts.identity.id();
  s.incarnation = parts.incarnation;
  s.run_digest = run_digest(config.cluster.name, config.run.id);
  s.schema_hash = parts.input.schema_hash;
  s.codec = composition.codec;
  s.weight = composition.weight;
  s.every_steps = composition.what == gossip::What::kNothing      ? 0
                  : composition.when == gossip::When::kEverySteps ? composition.every_steps
                                                                  : 1;
  s.chunk_bytes = config.exchange.chunk_bytes;
  // An answer takes milliseconds: after one probe interval without any the node asks again, two
  // free the fragment for another peer.
  s.retry_interval = config.cluster.preset.probe_interval;
  s.suspend_after = config.cluster.preset.probe_interval * 2;
  return s;
}

// The first address of this machine that is not loopback, for nodes that listen on all of them.
std::string own_interface_address() {
  ifaddrs* list = nullptr;
  std::string found;
  if (::getifaddrs(&list) != 0) return found;
  for (const ifaddrs* i = list; i != nullptr && found.empty(); i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET ||
        (i->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    char text[INET_ADDRSTRLEN];
    const auto* in = reinterpret_cast<const sockaddr_in*>(i->ifa_addr);
    if (::inet_ntop(AF_INET, &in->sin_addr, text, sizeof text) != nullptr) found = text;
  }
  ::freeifaddrs(list);
  return found;
}

// The bulk plane takes the next port unless listen_bulk is set.
Result<std::string> bulk_listen(const Config& config, const std::string& control_bound) {
  if (!config.node.listen_bulk.empty()) return config.node.listen_bulk;
  KITH_ASSIGN(HostPort address, parse_mesh_address(config.node.listen));
  KITH_ASSIGN(const HostPort bound, parse_mesh_address(control_bound));
  address.port = address.port == 0 ? 0 : static_cast<std::uint16_t>(bound.port + 1);
  return address.text();
}

gossip::TransferSettings transfer_settings(const NetworkParts& parts) {
  gossip::TransferSettings s;
  s.self = parts.identity.id();
  s.incarnation = parts.incarnation;
  s.run_digest = run_digest(parts.config.cluster.name, parts.config.run.id);
  s.schema_hash = parts.input.schema_hash;
  s.chunk_bytes = parts.config.exchange.chunk_bytes;
  s.retry_interval = parts.config.cluster.preset.probe_interval * 2;
  return s;
}

MeshSettings mesh_settings(const NetworkParts& parts, schema::Plane plane,
                           const std::string& listen) {
  MeshSettings s;
  s.plane = plane;
  s.listen = listen;
  s.key = parts.input.key ? &*parts.input.key : nullptr;
  s.probe_interval = parts.config.cluster.preset.probe_interval;
  if (plane == schema::Plane::kControl) return s;
  s.send_hwm = 64;
  s.message_bytes_max = schema::kChunkBytesMax + 4096;
  return s;
}

Result<std::unique_ptr<Mesh>> bind_mesh(const NetworkParts& parts, schema::Plane plane,
                                        const std::string& listen) {
  const std::string name = plane == schema::Plane::kControl ? "control" : "bulk";
  auto mesh = std::make_unique<Mesh>(mesh_settings(parts, plane, listen), parts.identity,
                                     parts.policy, parts.clock, parts.random.fork(name), parts.log);
  KITH_TRY(mesh->bind(parts.config.insecure));
  return mesh;
}

std::string to_advertise(const NetworkParts& parts) {
  const auto host = parse_mesh_address(parts.config.node.listen);
  if (!host || !is_any_host(host->host) || !parts.config.node.advertise.empty()) return "";
  std::string address = own_interface_address();
  parts.log.log(LogLevel::kInfo, "kithd",
                "listening on every address; others are told the first one",
                {{"advertise", address}});
  return address;
}

}  // namespace

Result<Network> Network::bind(const NetworkParts& parts, std::function<void()> on_happening) {
  Network network;
  KITH_ASSIGN(network.control, bind_mesh(parts, schema::Plane::kControl, parts.config.node.listen));
  KITH_ASSIGN(const std::string listen_bulk,
              bulk_listen(parts.config, network.control->bound_address()));
  KITH_ASSIGN(network.bulk, bind_mesh(parts, schema::Plane::kBulk, listen_bulk));
  network.advertise = to_advertise(parts);
  const auto topology = gossip::find_topology(parts.input.composition.topology);
  network.chooser = (*topology)->make();
  network.exchange = std::make_unique<ExchangeLoop>(
      exchange_settings(parts), transfer_settings(parts), *network.bulk, parts.store,
      *network.chooser, parts.donor, parts.clock, parts.random.fork("exchange"), parts.log,
      std::move(on_happening));
  return network;
}

// Links take four open files each; the usual soft limit of 1024 is for programs that select().
void raise_open_files() {
  constexpr rlim_t kEnough = 65536;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kEnough) return;
  limit.rlim_cur = std::min(limit.rlim_max, kEnough);
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace kith::node
