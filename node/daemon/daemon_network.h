// The daemon's two planes: control and bulk, each a Mesh with its own context and thread, and the
// exchange loop over the bulk one. Thread: the process's main thread, at start and end.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "gossip/topology.h"
#include "node/daemon/daemon_input.h"
#include "node/daemon/donor.h"
#include "node/daemon/exchange_loop.h"
#include "node/daemon/handshake.h"
#include "node/daemon/replica_store.h"
#include "node/mesh/mesh.h"
#include "node/store/checkpoint.h"

namespace kith::node {

// What both planes are made from; all of it outlives them.
struct NetworkParts {
  const Config& config;
  const RunInput& input;
  const Identity& identity;
  Incarnation incarnation;
  const Random& random;
  RunPolicy& policy;
  ReplicaStore& store;
  Donor& donor;
  const Clock& clock;
  LogSink& log;
};

struct Network {
  std::unique_ptr<gossip::PartnerChooser> chooser;
  std::unique_ptr<Mesh> control, bulk;
  std::unique_ptr<ExchangeLoop> exchange;
  // What others are told to dial where `node.advertise` is empty and `node.listen` means every
  // address; else "".
  std::string advertise;

  // Bound, not started. `on_happening`: see ExchangeLoop.
  static Result<Network> bind(const NetworkParts& parts, std::function<void()> on_happening);
};

// Links take four open files each; the usual soft limit of 1024 is for programs that select().
void raise_open_files();

}  // namespace kith::node
