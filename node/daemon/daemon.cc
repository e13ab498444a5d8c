#include "node/daemon/daemon.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "base/fault_point.h"
#include "compute/replica.h"
#include "compute/trainer.h"
#include "monitoring/http_server.h"
#include "monitoring/journal.h"
#include "monitoring/metrics.h"
#include "monitoring/recorder.h"
#include "monitoring/routes.h"
#include "node/daemon/checkpointer.h"
#include "node/daemon/control_loop.h"
#include "node/daemon/daemon_input.h"
#include "node/daemon/daemon_network.h"
#include "node/daemon/donor.h"
#include "node/daemon/event_kinds.h"
#include "node/daemon/handshake.h"
#include "node/daemon/node_view.h"
#include "node/daemon/replica_store.h"
#include "node/daemon/signal_watch.h"
#include "node/daemon/step_listener.h"
#include "node/daemon/step_log.h"
#include "node/mesh/mesh_handshake.h"
#include "node/setup/run_setup.h"
#include "node/store/checkpoint.h"

namespace kith::node {

namespace {

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text << "\n";
}

// The ready line. A full pipe that nobody reads must not stop a node: then there is no line.
void announce(const std::string& line) {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, 0) != 1 || (out.revents & POLLOUT) == 0) return;
  [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, line.data(), line.size());
}

void note_exchange(monitoring::Journal& journal, const gossip::ExchangeEvent& event) {
  using Kind = gossip::ExchangeEvent::Kind;
  if (event.kind == Kind::kCompletedInitiator)
    journal.exchange_started(event.peer, event.staleness_steps);
  else if (event.kind == Kind::kCompletedResponder)
    journal.exchange_answered(event.peer);
  else if (event.kind == Kind::kRefused || event.kind == Kind::kSuspended)
    journal.exchange_failed(event.peer);
}

// The HTTP address is part of what others are told, so it is bound before there is anything to
// show.
class LateHandler final : public monitoring::HttpHandler {
 public:
  monitoring::HttpReply get(const std::string& path, const monitoring::HttpQuery& query) override {
    auto* target = routes.load();
    return target ? target->get(path, query) : monitoring::HttpReply::text("starting\n", 503);
  }
  monitoring::HttpReply post(const std::string& path, const monitoring::HttpQuery& query) override {
    auto* target = routes.load();
    return target ? target->post(path, query) : monitoring::HttpReply::text("starting\n", 503);
  }
  std::atomic<monitoring::Routes*> routes{nullptr};
};

// Every part of a node. Members stand in the order in which they are made; each refers to earlier
// ones only, but for those that are wired afterwards (listener_, the exchange loop's way to the
// control loop).
class Daemon {
 public:
  Daemon(const Config& config, LogSink& log, ReloadHooks hooks)
      : config_(config),
        journal_(clock_, log, event_kind),
        log_(journal_.events()),
        live_(config),
        reloader_(
            config, std::move(hooks), live_, [this] { on_reload(); }, log_) {}

  // From nothing to bound and wired; nothing runs yet.
  Status make();
  // Until the run is over or the node leaves.
  int run();
  // The run was complete before: said by make(), nothing else was made.
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  Status restore();
  Status make_trainer();
  Status make_network();
  Status make_window();
  void make_loop();
  [[nodiscard]] ControlParts control_parts();
  void begin();
  int end(int code);
  void on_reload();

  // With what make() finds out: the data directory, the name, the address for others.
  Config config_;
  const SystemClock clock_;
  monitoring::Journal journal_;
  LogSink& log_;  // the journal's, which passes everything on
  LiveSettings live_;
  Reloader reloader_;
  bool complete_ = false;
  std::optional<RunInput> input_;
  std::optional<Home> home_;
  std::optional<CheckpointStore> store_;
  std::optional<LoadedCheckpoint> restored_;
  Incarnation incarnation_ = 0;
  std::optional<Random> random_;
  // what is trained
  std::unique_ptr<compute::Replica> replica_;
  StepListener listener_;
  std::unique_ptr<compute::Trainer> trainer_;
  std::unique_ptr<StepLog> step_log_;
  // the network; empty when standalone
  std::unique_ptr<RunPolicy> policy_;
  std::unique_ptr<Donor> donor_;
  std::unique_ptr<ReplicaStore> replica_store_;
  ControlLoop* loop_pointer_ = nullptr;
  Network network_;
  // decisions, and the window to the outside
  std::unique_ptr<Checkpointer> checkpointer_;
  std::unique_ptr<monitoring::Metrics> metrics_;
  LateHandler late_;
  std::unique_ptr<monitoring::HttpServer> http_;
  std::unique_ptr<ControlLoop> loop_;
  std::unique_ptr<NodeViewAdapter> view_;
  std::unique_ptr<monitoring::Routes> routes_;
  std::unique_ptr<monitoring::Recorder> recorder_;
};

// All that can be wrong with the input comes before anything is written.
Status Daemon::make() {
  KITH_ASSIGN(input_, RunInput::load(config_));
  KITH_ASSIGN(Home home, Home::take(config_, log_));
  home_.emplace(std::move(home));
  KITH_ASSIGN(const std::optional<LoadedFinal> finished, home_->finished(config_, *input_));
  if (finished) {
    complete_ = true;
    const std::string path = home_->final_path();
    log_.log(LogLevel::kInfo, "kithd", "this run is complete: nothing to do",
             {{"model", path}, {"accuracy", fact_text(finished->facts.accuracy)}});
    announce("name=" + config_.node.name + " id=" + home_->identity.id().hex() +
             " state=complete model=" + path + "\n");
    return {};
  }
  KITH_TRY(restore());
  KITH_TRY(make_trainer());
  KITH_TRY(make_network());
  KITH_TRY(make_window());
  make_loop();
  return {};
}

// Where we left off, and which start this is.
Status Daemon::restore() {
  store_.emplace(home_->path() + "/checkpoints", config_.checkpoint.keep, log_);
  KITH_ASSIGN(restored_,
              store_->load_newest(input_->schema(), input_->schema_hash, config_.run.id));
  if (restored_)
    log_.log(LogLevel::kInfo, "kithd", "resuming from a checkpoint", {{"path", restored_->path}});
  KITH_ASSIGN(incarnation_,
              next_incarnation(home_->path(), restored_ ? restored_->facts.incarnation : 0));
  random_.emplace(NodeIdHasher{}(home_->identity.id()) ^ (incarnation_ * 0x9E3779B97F4A7C15ULL) ^
                  config_.run.seed);
  return {};
}

Status Daemon::make_trainer() {
  const compute::LoadedData& data = input_->data;
  replica_ = std::make_unique<compute::Replica>(input_->schema().value_count,
                                                config_.exchange.fragment_bytes);
  compute::TrainerSettings settings;
  settings.batch_size = config_.train.batch_size;
  // Alone, a run is a function of its seed; with others, no two nodes draw the same batches: they
  // have seeds of their own, or shares of one order.
  settings.seed = config_.run.seed * 1000003 + data.shard_index;
  if (!config_.standalone && config_.data.shard != "auto")
    settings.seed ^= NodeIdHasher{}(home_->identity.id());
  settings.schedule = input_->schedule;
  settings.min_step = from_seconds(config_.train.min_step_ms / 1e3);
  const auto progress = [this] {
    return listener_.others_samples.load() + (trainer_ ? trainer_->stats().samples : 0);
  };
  trainer_ = std::make_unique<compute::Trainer>(settings, *input_->model, *replica_, data.train,
                                                data.test, clock_, progress, listener_, log_);
  const std::string& steps = config_.log.steps;
  if (!steps.empty()) {
    KITH_ASSIGN(step_log_,
                StepLog::open(steps.front() == '/' ? steps : home_->path() + "/" + steps));
  }
  listener_.trainer = trainer_.get();
  listener_.step_log = step_log_.get();
  listener_.clock = &clock_;
  listener_.samples_per_epoch = static_cast<double>(data.whole_count);
  listener_.length_steps = config_.run.steps;
  return {};
}

Status Daemon::make_network() {
  const Identity& identity = home_->identity;
  policy_ = std::make_unique<RunPolicy>(
      RunIdentity{config_.cluster.name, config_.run.id, input_->schema_hash,
                  run_facts(config_, input_->composition, input_->data)},
      identity.id());
  donor_ = std::make_unique<Donor>(*replica_, config_.exchange.fragment_bytes, clock_);
  donor_->attach(trainer_.get());
  replica_store_ = std::make_unique<ReplicaStore>(*replica_);
  replica_store_->on_landed([this] { trainer_->nudge(); });
  if (config_.standalone) return {};
  const NetworkParts parts{config_,  *input_,         identity, incarnation_, *random_,
                           *policy_, *replica_store_, *donor_,  clock_,       log_};
  KITH_ASSIGN(network_, Network::bind(parts, [this] {
                if (loop_pointer_ != nullptr) loop_pointer_->wake();
              }));
  if (!network_.advertise.empty()) config_.node.advertise = network_.advertise;
  listener_.exchange = network_.exchange.get();
  if (restored_ && !restored_->ledger.bytes.empty())
    return network_.exchange->restore(restored_->ledger);
  return {};
}

Status Daemon::make_window() {
  checkpointer_ = std::make_unique<Checkpointer>(*store_, input_->schema(), *replica_, *trainer_,
                                                 network_.exchange.get(), clock_, log_);
  metrics_ = std::make_unique<monitoring::Metrics>(clock_, monitoring::GpuStats::load());
  listener_.metrics = metrics_.get();
  KITH_ASSIGN(http_, monitoring::HttpServer::start(
                         {config_.node.http, home_->path() + "/control.sock", {}}, late_, clock_));
  write_text(home_->path() + "/http", http_->address());
  return {};
}

ControlParts Daemon::control_parts() {
  ControlParts parts;
  parts.config = &config_;
  parts.identity = &home_->identity;
  parts.incarnation = incarnation_;
  // Two copies of a data directory draw the same numbers from everything else.
  const schema::Nonce nonce = random_nonce();
  std::memcpy(&parts.boot_nonce, nonce.data(), sizeof parts.boot_nonce);
  parts.clock = &clock_;
  parts.log = &log_;
  parts.schema = &input_->schema();
  parts.data = &input_->data;
  parts.replica = replica_.get();
  parts.trainer = trainer_.get();
  parts.control = network_.control.get();
  parts.exchange = network_.exchange.get();
  parts.policy = policy_.get();
  parts.donor = donor_.get();
  parts.checkpointer = checkpointer_.get();
  parts.store = &*store_;
  parts.composition = input_->composition;
  parts.length = {config_.run.epochs, config_.run.steps};
  parts.schema_hash = input_->schema_hash;
  parts.model_json = model_json(config_, input_->data);
  parts.bulk_address = network_.bulk ? network_.bulk->bound_address() : "";
  parts.http_address = http_->address();
  parts.seed = random_->fork("control loop").next();
  if (restored_) parts.restored = restored_->facts;
  parts.live = &live_;
  parts.others_samples = &listener_.others_samples;
  parts.length_samples = &listener_.length_samples;
  parts.others_steps = &listener_.others_steps;
  return parts;
}

void Daemon::make_loop() {
  loop_ =
      std::make_unique<ControlLoop>(control_parts(), [this](const gossip::ExchangeEvent& event) {
        listener_.on_exchange(event);
        note_exchange(journal_, event);
        if (event.kind == gossip::ExchangeEvent::Kind::kCompletedInitiator)
          metrics_->observe_exchange(to_seconds(event.duration), event.staleness_steps);
      });
  loop_pointer_ = loop_.get();
  listener_.loop = loop_.get();
  view_ = std::make_unique<NodeViewAdapter>(config_, *loop_, *trainer_, input_->schema_hash, clock_,
                                            step_log_.get(), live_);
  routes_ = std::make_unique<monitoring::Routes>(*view_, *metrics_, journal_, clock_);
  late_.routes = routes_.get();
}

// The trainer takes a checkpoint's state before anything else runs.
void Daemon::begin() {
  trainer_->start();
  if (restored_) {
    std::promise<void> taken;
    trainer_->adopt(std::move(restored_->state), [&taken] { taken.set_value(); });
    taken.get_future().wait();
    restored_.reset();
  }
  if (network_.exchange) network_.exchange->start();
  recorder_ = std::make_unique<monitoring::Recorder>(
      [this]() noexcept { journal_.record(view_->snapshot()); });
}

int Daemon::run() {
  begin();
  const SignalWatch signals([this] { loop_->request_leave(); }, [this] { reloader_.reload(); });
  announce("name=" + config_.node.name + " id=" + home_->identity.id().hex() +
           " address=" + (network_.control ? network_.control->bound_address() : "-") +
           " http=" + http_->address() + "\n");
  return end(loop_->run());
}

void Daemon::on_reload() {
  store_->set_keep(live_.checkpoint_keep);
  loop_->checkpoint_interval_changed();
}

int Daemon::end(int code) {
  http_.reset();
  recorder_.reset();
  trainer_->stop();
  if (network_.exchange) network_.exchange->stop();
  // What it has begun is finished while the loop it reports to is still there.
  checkpointer_.reset();
  const auto known = loop_->incarnation_to_pass();
  if (!known) return code;
  if (const auto raised = next_incarnation(home_->path(), *known); !raised) {
    log_.log(LogLevel::kError, "kithd", raised.error().message);
    return exit_code(raised.error().code);
  }
  return kStartAgain;
}

[[noreturn]] void stop_before_start(LogSink& log) {
  log.log(LogLevel::kInfo, "kithd", "stopped before it had begun");
  ::_exit(0);
}

}  // namespace

int run_daemon(const Config& config, LogSink& log, ReloadHooks hooks) {
  SignalWatch::block();
  raise_open_files();
  const char* faults = std::getenv("KITH_FAULTS");
  Status made = arm_faults(faults != nullptr ? faults : "");
  // While data and model load there is nothing to leave in order.
  std::optional<SignalWatch> loading(
      std::in_place, [&log] { stop_before_start(log); }, [] {});
  Daemon daemon(config, log, std::move(hooks));
  if (made) made = daemon.make();
  loading.reset();
  if (made) return daemon.complete() ? 0 : daemon.run();
  log.log(LogLevel::kError, "kithd", made.error().message);
  return exit_code(made.error().code);
}

}  // namespace kith::node
