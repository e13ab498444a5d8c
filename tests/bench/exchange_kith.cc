// The production exchange between two processes: the daemon's own exchange thread (ExchangeLoop)
// over a bulk Mesh, the exchange machine with ledger and credit, the replica with its pooled
// snapshots and deltas. Only the trainer is left out: a flat model stands in for it, and rounds are
// started by hand.
//
// Each side proposes one half of the fragments, so that the same bytes travel both ways as on the
// plain socket: a proposal one way and its result the other. A round is over for a side when all of
// its proposals have been applied, all of the other's committed, and the ledger is empty.
#include <sys/prctl.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "compute/replica.h"
#include "gossip/topology.h"
#include "node/daemon/exchange_loop.h"
#include "node/daemon/replica_store.h"
#include "node/mesh/cluster_key.h"
#include "node/mesh/mesh.h"
#include "tests/bench/exchange_lane.h"
#include "tests/bench/flat_model.h"

namespace kith::bench {
namespace {

constexpr Incarnation kIncarnation = 1ULL << 32;
constexpr Duration kRoundMax = std::chrono::seconds(60);
constexpr Duration kStepMax = std::chrono::seconds(1);

class BenchPolicy final : public node::HandshakePolicy {
 public:
  explicit BenchPolicy(const node::Identity& identity) {
    record_.id = identity.id();
    record_.incarnation = kIncarnation;
    node::sign_record(identity, record_);
  }
  schema::Hello make_hello(schema::Plane plane) override {
    schema::Hello hello;
    hello.plane = plane;
    hello.record = record_;
    return hello;
  }
  schema::Welcome make_welcome(schema::Plane, const schema::Hello&) override {
    schema::Welcome welcome;
    welcome.record = record_;
    return welcome;
  }
  std::optional<schema::Reject> judge(const schema::Hello&) override { return std::nullopt; }

 private:
  schema::MemberRecord record_;
};

class NoDonor final : public gossip::DonorSource {
 public:
  Result<Item> item(const gossip::ItemKey&) override {
    return fail(ErrorCode::kNotFound, "nothing to fetch here");
  }
};

// The replica's store, but only every other fragment is proposed by this side; knows which
// fragments this round has averaged.
class HalfStore final : public gossip::FragmentStore {
 public:
  HalfStore(compute::Replica& replica, int side)
      : store_(replica),
        side_(static_cast<std::uint32_t>(side)),
        averaged_(replica.fragment_count()) {}
  [[nodiscard]] std::uint32_t fragment_count() const override { return store_.fragment_count(); }
  [[nodiscard]] std::size_t payload_bytes(FragmentIndex fragment, CodecId codec) const override {
    return store_.payload_bytes(fragment, codec);
  }
  Result<Slice> snapshot(const ExchangeId& e, FragmentIndex fragment, CodecId codec) override {
    if (fragment % 2 != side_ || is_averaged(fragment))
      return fail(ErrorCode::kNotFound, "not this side's to propose now");
    return store_.snapshot(e, fragment, codec);
  }
  Result<Committed> commit(const ExchangeId& e, FragmentIndex fragment, const Payload& proposal,
                           CodecId codec, double weight) override {
    auto committed = store_.commit(e, fragment, proposal, codec, weight);
    if (committed) set_averaged(fragment);
    return committed;
  }
  Status apply(const ExchangeId& e, FragmentIndex fragment, const Payload& delta,
               CodecId codec) override {
    auto applied = store_.apply(e, fragment, delta, codec);
    if (applied) set_averaged(fragment);
    return applied;
  }
  void begin_round() {
    const std::lock_guard lock(mutex_);
    averaged_.assign(averaged_.size(), false);
    left_ = averaged_.size();
  }
  bool wait(Duration bound) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, bound, [this] { return left_ == 0; });
  }

 private:
  bool is_averaged(FragmentIndex fragment) {
    const std::lock_guard lock(mutex_);
    return averaged_[fragment];
  }
  void set_averaged(FragmentIndex fragment) {
    const std::lock_guard lock(mutex_);
    left_ -= averaged_[fragment] ? 0 : 1;
    averaged_[fragment] = true;
    if (left_ == 0) changed_.notify_one();
  }
  node::ReplicaStore store_;
  const std::uint32_t side_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> averaged_;  // guarded by mutex_, like the next
  std::size_t left_ = 0;
};

class KithLane final : public Lane {
 public:
  KithLane(const ExchangeBenchOptions& options, int side, std::optional<node::ClusterKey> key);
  Status connect(Pair& pair);
  [[nodiscard]] std::string_view name() const override { return key_ ? "kith, encrypted" : "kith"; }
  void prepare(std::uint64_t round) override;
  Status run() override;
  Result<std::uint64_t> check(std::uint64_t round) override;

 private:
  [[nodiscard]] node::MeshSettings mesh_settings() const;
  [[nodiscard]] gossip::ExchangeSettings exchange_settings() const;
  [[nodiscard]] gossip::TransferSettings transfer_settings() const;
  [[nodiscard]] std::string explain();

  const ExchangeBenchOptions options_;
  const int side_;
  const std::optional<node::ClusterKey> key_;
  SystemClock clock_;
  NullLog log_;
  const node::Identity identity_;
  BenchPolicy policy_;
  NoDonor donor_;
  FlatModel model_;
  compute::Replica replica_;
  HalfStore store_;
  std::unique_ptr<gossip::PartnerChooser> chooser_;
  node::Mesh mesh_;
  std::optional<node::ExchangeLoop> loop_;
  Step steps_ = 0;
};

KithLane::KithLane(const ExchangeBenchOptions& options, int side,
                   std::optional<node::ClusterKey> key)
    : options_(options),
      side_(side),
      key_(std::move(key)),
      identity_(node::Identity::ephemeral(static_cast<std::uint64_t>(side) + 1)),
      policy_(identity_),
      model_(value_count(options)),
      replica_(value_count(options), options.fragment_bytes),
      store_(replica_, side),
      chooser_((*gossip::find_topology("random"))->make()),
      mesh_(mesh_settings(), identity_, policy_, clock_, Random(static_cast<std::uint64_t>(side)),
            log_) {}

node::MeshSettings KithLane::mesh_settings() const {
  auto settings = node::plane_settings(schema::Plane::kBulk);
  settings.listen = "127.0.0.1:0";
  settings.key = key_ ? &*key_ : nullptr;
  return settings;
}

gossip::ExchangeSettings KithLane::exchange_settings() const {
  gossip::ExchangeSettings settings;
  settings.self = identity_.id();
  settings.incarnation = kIncarnation;
  settings.chunk_bytes = options_.chunk_bytes;
  return settings;
}

gossip::TransferSettings KithLane::transfer_settings() const {
  gossip::TransferSettings settings;
  settings.self = identity_.id();
  settings.incarnation = kIncarnation;
  return settings;
}

Status KithLane::connect(Pair& pair) {
  KITH_TRY(mesh_.bind(false));
  loop_.emplace(exchange_settings(), transfer_settings(), mesh_, store_, *chooser_, donor_, clock_,
                Random(static_cast<std::uint64_t>(side_)), log_, [] {});
  KITH_ASSIGN(const NodeId other, NodeId::from_hex(pair.trade(identity_.id().hex())));
  const std::string address = pair.trade(mesh_.bound_address());
  loop_->set_peers({{other, kIncarnation, address, true}});
  loop_->set_active(true);
  prctl(PR_SET_NAME, "exchange");  // inherited by the loop's thread: for profiles
  loop_->start();
  prctl(PR_SET_NAME, "bench");
  while (loop_->snapshot().mesh.messages_received == 0)
    std::this_thread::yield();  // the link is being made
  return {};
}

void KithLane::prepare(std::uint64_t round) {
  for (std::size_t i = 0; i < model_.values().size(); ++i)
    model_.values()[i] = start_value(side_, round, i);
  replica_.reset(model_);
  store_.begin_round();
}

std::string KithLane::explain() {
  const auto now = loop_->snapshot();
  const auto& c = now.counters;
  return "proposed " + std::to_string(c.proposed) + ", completed " +
         std::to_string(c.completed_initiator) + " and " + std::to_string(c.completed_responder) +
         ", busy " + std::to_string(c.refused_busy) + ", refused " +
         std::to_string(c.refused_crossing + c.refused_other) + ", suspended " +
         std::to_string(c.suspended) + ", retries " + std::to_string(c.retries) + ", replays " +
         std::to_string(c.replays) + ", invalid " + std::to_string(c.invalid) + ", forfeited " +
         std::to_string(c.forfeited) + ", open " + std::to_string(now.open) + ", ledger " +
         std::to_string(now.ledger_entries) + ", no room " +
         std::to_string(now.mesh.dropped_no_room) + ", malformed " +
         std::to_string(now.mesh.dropped_malformed);
}

// Like a trainer, whose next step starts the next round: what was lost or refused is proposed
// again.
Status KithLane::run() {
  const TimePoint end = clock_.now() + kRoundMax;
  do {
    loop_->step(++steps_);
    if (clock_.now() > end) return fail("the exchange has not ended within a minute: " + explain());
  } while (!store_.wait(kStepMax));
  while (!loop_->snapshot().drained) std::this_thread::sleep_for(std::chrono::microseconds(50));
  loop_->take_happenings();
  return {};
}

Result<std::uint64_t> KithLane::check(std::uint64_t round) {
  replica_.safe_point(model_, true);
  const auto& values = model_.values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != mean_value(round, i))
      return fail("value " + std::to_string(i) + " is " + std::to_string(values[i]) +
                  ", the mean is " + std::to_string(mean_value(round, i)));
  }
  const Hash256 hash = hash_bytes(std::as_bytes(std::span(values)));
  std::uint64_t word = 0;
  std::memcpy(&word, hash.bytes.data(), sizeof word);
  return word;
}

}  // namespace

Result<std::unique_ptr<Lane>> make_kith_lane(const ExchangeBenchOptions& options, Pair& pair,
                                             const std::string& key) {
  std::optional<node::ClusterKey> cluster_key;
  if (!key.empty()) {
    KITH_ASSIGN(auto parsed, node::ClusterKey::from_hex(key));
    cluster_key.emplace(std::move(parsed));
  }
  auto lane = std::make_unique<KithLane>(options, pair.side(), std::move(cluster_key));
  KITH_TRY(lane->connect(pair));
  return std::unique_ptr<Lane>(std::move(lane));
}

}  // namespace kith::bench
