// ExchangeLoop: the thread that averages. It owns the bulk Mesh, the exchange machine and the state
// transfer, feeds them what arrives and what the trainer's safe points announce, and sends what
// they answer.
//
// Threads: start/stop by the owner; every other call from any thread (it queues a command and wakes
// the loop). What happened collects in take_happenings() for the control loop, which is woken
// through `on_happening`. Nothing here ever makes the trainer wait: step() stores a number and
// rings an eventfd.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "gossip/exchange/exchange.h"
#include "gossip/transfer/state_transfer.h"
#include "node/daemon/happenings.h"
#include "node/daemon/peer_links.h"
#include "node/daemon/wake.h"
#include "node/mesh/mesh.h"

namespace kith::node {

struct BulkPeer {
  NodeId id;
  Incarnation incarnation = 0;
  std::string bulk_address;
  bool exchanges = true;  // false: a link is kept (state transfer), but no averaging
  bool operator==(const BulkPeer&) const = default;
};

struct ExchangeSnapshot {
  gossip::ExchangeCounters counters;
  MeshCounters mesh;
  std::size_t open = 0, ledger_entries = 0, ledger_bytes = 0, inbound_bytes = 0;
  bool drained = true;
};

class ExchangeLoop {
 public:
  // All references outlive the loop. `mesh` is bound already; the loop's thread owns it from
  // start() to stop().
  ExchangeLoop(gossip::ExchangeSettings exchange, gossip::TransferSettings transfer, Mesh& mesh,
               gossip::FragmentStore& store, const gossip::PartnerChooser& chooser,
               gossip::DonorSource& donor, const Clock& clock, Random random, LogSink& log,
               std::function<void()> on_happening);
  ~ExchangeLoop();

  // Before start(): what a checkpoint held. kCorrupt if it is no image.
  Status restore(const gossip::LedgerImage& image);
  void start();
  void stop();

  void set_peers(std::vector<BulkPeer> peers);
  void set_active(bool active);
  void set_draining(bool draining);
  void set_codec(CodecId codec);
  void set_depth(Step depth, Step own_step, Step max_lag);
  void step(Step step);                      // trainer thread: a safe point has passed
  void set_rounds_every(Duration interval);  // finishing: rounds by time, nobody steps; zero = off
  void abandon_open();
  void fetch(std::vector<NodeId> donors, gossip::FetchOrder order);
  void set_donors(std::vector<NodeId> donors);  // of the running fetch
  void cancel_fetch();

  // Stops delivering messages to the machine and hands out its ledger: until resume_exchanges()
  // nothing touches the replica from this side, so that a checkpoint's values and ledger agree.
  // Of several pauses the last one's end counts. Links stay alive meanwhile.
  void pause_exchanges(std::function<void(gossip::LedgerImage)> taker);
  void resume_exchanges();

  // Nothing of a fetch that was given up or is not the last one (happenings.h).
  std::vector<Happening> take_happenings() { return happenings_.take(); }
  [[nodiscard]] ExchangeSnapshot snapshot() const;

 private:
  void run();
  void post(std::function<void()> command);
  void handle(MeshEvent& event);
  void connect_peers(TimePoint now);
  void turn(TimePoint now);  // ticks, rounds, outgoing, events
  [[nodiscard]] std::vector<NodeId> reachable_donors() const;
  void report_fetch();  // what arrived, who was lost, the end
  void send_all(std::vector<gossip::Outgoing> outgoing);
  [[nodiscard]] TimePoint deadline() const;
  [[nodiscard]] bool drained() const;
  [[nodiscard]] bool paused() const { return pauses_ > 0; }

  // constant after construction
  Mesh& mesh_;
  const Clock& clock_;
  LogSink& log_;
  NodeId self_;
  std::function<void()> on_happening_;
  // loop thread only
  gossip::ExchangeMachine machine_;
  gossip::StateTransfer transfer_;
  std::vector<BulkPeer> peers_;
  PeerLinks links_;
  std::vector<NodeId> fetch_donors_;
  NodeId last_giver_;
  std::vector<NodeId> lost_donors_;
  Happenings::FetchNumber fetch_ = 0;  // that transfer_ works on
  unsigned pauses_ = 0;
  std::vector<MeshEvent> held_back_;  // arrived while paused
  std::size_t held_back_bytes_ = 0;
  Duration rounds_every_{0};
  TimePoint next_round_;
  // any thread
  Wake wake_;
  std::atomic<Step> stepped_{0};
  std::atomic<bool> step_pending_{false};
  std::atomic<bool> stopping_{false};
  Happenings happenings_;
  mutable std::mutex mutex_;  // guards the two below
  std::vector<std::function<void()>> commands_;
  ExchangeSnapshot snapshot_;
  std::thread thread_;
};

}  // namespace kith::node
