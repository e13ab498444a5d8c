#include "node/daemon.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/fault_point.h"
#include "base/hash.h"
#include "compute/data.h"
#include "compute/model.h"
#include "compute/replica.h"
#include "compute/trainer.h"
#include "gossip/exchange.h"
#include "gossip/method.h"
#include "monitoring/http_server.h"
#include "monitoring/metrics.h"
#include "monitoring/routes.h"
#include "node/address.h"
#include "node/checkpoint.h"
#include "node/checkpointer.h"
#include "node/cluster_key.h"
#include "node/control_loop.h"
#include "node/data_dir.h"
#include "node/donor.h"
#include "node/exchange_loop.h"
#include "node/handshake.h"
#include "node/mesh.h"
#include "node/mesh_handshake.h"
#include "node/node_view.h"
#include "node/replica_store.h"
#include "node/run_setup.h"
#include "node/step_listener.h"
#include "node/step_log.h"
#include "node/text.h"

namespace kith::node {

namespace {

// ---- from configuration to the parts' settings ------------------------------------------------------------------

gossip::ExchangeSettings exchange_settings(const Config& config, const gossip::Composition& composition,
                                           const Identity& identity, Incarnation incarnation,
                                           const Hash256& schema_hash) {
  gossip::ExchangeSettings s;
  s.self = identity.id();
  s.incarnation = incarnation;
  s.run_digest = run_digest(config.cluster.name, config.run.id);
  s.schema_hash = schema_hash;
  s.codec = composition.codec;
  s.weight = composition.weight;
  s.every_steps = composition.what == gossip::What::kNothing ? 0
                  : composition.when == gossip::When::kEverySteps ? composition.every_steps : 1;
  s.chunk_bytes = config.exchange.chunk_bytes;
  // An answer takes milliseconds: after one probe interval without any the node asks again, two free the fragment for
  // another peer.
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
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET || (i->ifa_flags & IFF_LOOPBACK) != 0) continue;
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

// Links take four open files each; the usual soft limit of 1024 is for programs that select().
void raise_open_files() {
  constexpr rlim_t kEnough = 65536;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kEnough) return;
  limit.rlim_cur = std::min(limit.rlim_max, kEnough);
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

// ---- small parts --------------------------------------------------------------------------------------------------

// SIGTERM and SIGINT leave in order; a second one ends at once, without a checkpoint. A thread of its own waits for them,
// so no handler runs.
class SignalWatch {
 public:
  explicit SignalWatch(ControlLoop& loop) {
    thread_ = std::thread([this, &loop] {
      sigset_t set = signals();
      for (int count = 0;;) {
        int signal = 0;
        if (sigwait(&set, &signal) != 0 || stopping_) return;
        if (++count == 2) ::_exit(exit_code(ErrorCode::kFailed));
        loop.request_leave();
      }
    });
  }
  ~SignalWatch() {
    stopping_ = true;
    ::pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }
  static sigset_t signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
  }
  // Before any other thread is made: they all inherit the mask.
  static void block() {
    const sigset_t set = signals();
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
  }

 private:
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text << "\n";
}

// The ready line. A full pipe that nobody reads must not stop a node: then there is no line.
void announce(const std::string& line) {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, 0) != 1 || (out.revents & POLLOUT) == 0) return;
  [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, line.data(), line.size());
}

int refuse(LogSink& log, const Error& error) {
  log.log(LogLevel::kError, "kithd", error.message);
  return exit_code(error.code);
}

// From now on the configuration names the directory that was taken; a node that was given no name of its own is called like it.
void live_in(const DataDir& home, Config& config, LogSink& log) {
  if (!is_automatic(config.node.data_dir)) return;
  config.node.data_dir = home.path;
  if (config.origin.at("node.name") == "default") config.node.name = std::filesystem::path(home.path).filename().string();
  log.log(LogLevel::kInfo, "kithd", "took a data directory", {{"data_dir", home.path}, {"name", config.node.name}});
}

// Hands a checkpoint's state to the trainer and waits until it has it: nothing else runs yet.
void resume_from(compute::Trainer& trainer, compute::TrainerState state) {
  std::promise<void> taken;
  trainer.adopt(std::move(state), [&taken] { taken.set_value(); });
  taken.get_future().wait();
}

}  // namespace

int run_daemon(const Config& given, LogSink& log) {
  SignalWatch::block();
  raise_open_files();
  const SystemClock clock;
  if (const Status armed = arm_faults(std::getenv("KITH_FAULTS") ? std::getenv("KITH_FAULTS") : ""); !armed)
    return refuse(log, armed.error());

  Config config = given;
  const std::string& dir = config.node.data_dir;

  // What we train, on what, how: all that can be wrong with the input, before anything is written.
  std::optional<ClusterKey> key;
  if (!config.cluster.key_file.empty()) {
    auto loaded = ClusterKey::load(config.cluster.key_file);
    // Whatever is wrong with it, the configuration names it.
    if (!loaded) return refuse(log, {ErrorCode::kUsage, loaded.error().message});
    key.emplace(std::move(*loaded));
  }
  const auto composition = gossip::compose(config.method.name, method_overrides(config));
  if (!composition) return refuse(log, composition.error());
  const auto data = compute::load_data(data_spec(config));
  if (!data) return refuse(log, data.error());
  auto model = compute::make_model(model_spec(config, *data), optimizer_spec(config));
  if (!model) return refuse(log, model.error());
  const compute::ModelSchema& schema = (*model)->schema();
  const Hash256 schema_hash = schema.hash(config.exchange.fragment_bytes);
  const compute::ScheduleSpec schedule = schedule_spec(config, *data);
  if (const Status valid = compute::validate(schedule); !valid) return refuse(log, valid.error());

  // Who we are, and that we are the only one here.
  const auto home = take_data_dir(dir, host_name());
  if (!home) return refuse(log, home.error());
  live_in(*home, config, log);
  const auto identity = Identity::load_or_create(dir);
  if (!identity) return refuse(log, identity.error());

  // Where we left off.
  auto finished = load_final_model(dir + "/model.safetensors", schema);
  if (!finished) return refuse(log, finished.error());
  if (*finished && (*finished)->facts.run_id == config.run.id) {
    log.log(LogLevel::kInfo, "kithd", "this run is complete: nothing to do",
            {{"model", dir + "/model.safetensors"}, {"accuracy", fact_text((*finished)->facts.accuracy)}});
    std::printf("name=%s id=%s state=complete model=%s/model.safetensors\n", config.node.name.c_str(),
                identity->id().hex().c_str(), dir.c_str());
    return 0;
  }
  CheckpointStore store(dir + "/checkpoints", config.checkpoint.keep, log);
  auto restored = store.load_newest(schema, schema_hash, config.run.id);
  if (!restored) return refuse(log, restored.error());
  if (*restored) log.log(LogLevel::kInfo, "kithd", "resuming from a checkpoint", {{"path", (*restored)->path}});
  const auto incarnation = next_incarnation(dir, *restored ? (*restored)->facts.incarnation : 0);
  if (!incarnation) return refuse(log, incarnation.error());

  // The replica and its trainer.
  compute::Replica replica(schema.value_count, config.exchange.fragment_bytes);
  StepListener listener;
  compute::TrainerSettings trainer_settings;
  trainer_settings.batch_size = config.train.batch_size;
  // Alone, a run is a function of its seed; with others, no two nodes draw the same batches: they have seeds of their own, or
  // shares of one order.
  trainer_settings.seed = config.run.seed * 1000003 + data->shard_index;
  if (!config.standalone && config.data.shard != "auto") trainer_settings.seed ^= NodeIdHasher{}(identity->id());
  trainer_settings.schedule = schedule;
  trainer_settings.min_step = from_seconds(config.train.min_step_ms / 1e3);
  compute::Trainer* trainer_pointer = nullptr;
  const auto progress = [&listener, &trainer_pointer] {
    return listener.others_samples.load() + (trainer_pointer != nullptr ? trainer_pointer->stats().samples : 0);
  };
  compute::Trainer trainer(trainer_settings, **model, replica, data->train, data->test, clock, progress, listener,
                           log);
  trainer_pointer = &trainer;
  listener.trainer = &trainer;
  std::unique_ptr<StepLog> step_log;
  if (!config.log.steps.empty()) {
    auto opened = StepLog::open(config.log.steps.front() == '/' ? config.log.steps : dir + "/" + config.log.steps);
    if (!opened) return refuse(log, opened.error());
    step_log = std::move(*opened);
  }
  listener.step_log = step_log.get();
  listener.clock = &clock;
  listener.samples_per_epoch = static_cast<double>(data->whole_count);

  // The network: two planes, each with its own context and thread.
  const Random random(NodeIdHasher{}(identity->id()) ^ (*incarnation * 0x9E3779B97F4A7C15ULL) ^ config.run.seed);
  RunPolicy policy({config.cluster.name, config.run.id, schema_hash, run_facts(config, *composition, *data)},
                   identity->id());
  Donor donor(replica, config.exchange.fragment_bytes, clock);
  donor.attach(&trainer);
  ReplicaStore replica_store(replica);
  replica_store.on_landed([&trainer] { trainer.nudge(); });
  const auto topology = gossip::find_topology(composition->topology);
  const auto chooser = (*topology)->make();
  std::unique_ptr<Mesh> control;
  std::unique_ptr<Mesh> bulk;
  std::unique_ptr<ExchangeLoop> exchange;
  ControlLoop* loop_pointer = nullptr;
  Config effective = config;
  if (!config.standalone) {
    MeshSettings mesh;
    mesh.listen = config.node.listen;
    mesh.key = key ? &*key : nullptr;
    mesh.probe_interval = config.cluster.preset.probe_interval;
    control = std::make_unique<Mesh>(mesh, *identity, policy, clock, random.fork("control"), log);
    if (const Status bound = control->bind(config.insecure); !bound) return refuse(log, bound.error());
    mesh.plane = schema::Plane::kBulk;
    const auto listen_bulk = bulk_listen(config, control->bound_address());
    if (!listen_bulk) return refuse(log, listen_bulk.error());
    mesh.listen = *listen_bulk;
    mesh.send_hwm = 64;
    mesh.message_bytes_max = schema::kChunkBytesMax + 4096;
    bulk = std::make_unique<Mesh>(mesh, *identity, policy, clock, random.fork("bulk"), log);
    if (const Status bound = bulk->bind(config.insecure); !bound) return refuse(log, bound.error());
    const auto host = parse_mesh_address(config.node.listen);
    if (host && is_any_host(host->host) && config.node.advertise.empty()) {
      effective.node.advertise = own_interface_address();
      log.log(LogLevel::kInfo, "kithd", "listening on every address; others are told the first one",
              {{"advertise", effective.node.advertise}});
    }
    gossip::TransferSettings transfer;
    transfer.self = identity->id();
    transfer.incarnation = *incarnation;
    transfer.run_digest = run_digest(config.cluster.name, config.run.id);
    transfer.schema_hash = schema_hash;
    transfer.chunk_bytes = config.exchange.chunk_bytes;
    transfer.retry_interval = config.cluster.preset.probe_interval * 2;
    exchange = std::make_unique<ExchangeLoop>(
        exchange_settings(config, *composition, *identity, *incarnation, schema_hash), transfer, *bulk, replica_store,
        *chooser, donor, clock, random.fork("exchange"), log, [&loop_pointer] {
          if (loop_pointer != nullptr) loop_pointer->wake();
        });
    if (*restored && !(*restored)->ledger.bytes.empty())
      if (const Status ledger = exchange->restore((*restored)->ledger); !ledger) return refuse(log, ledger.error());
  }
  listener.exchange = exchange.get();

  // Checkpoints, control loop, and the window to the outside.
  auto checkpointer = std::make_unique<Checkpointer>(store, schema, replica, trainer, exchange.get(), clock, log);
  monitoring::Metrics metrics(clock, monitoring::GpuStats::load());
  listener.metrics = &metrics;
  ControlParts parts;
  parts.config = &effective;
  parts.identity = &*identity;
  parts.incarnation = *incarnation;
  // Two copies of a data directory draw the same numbers from everything else.
  const schema::Nonce nonce = random_nonce();
  std::memcpy(&parts.boot_nonce, nonce.data(), sizeof parts.boot_nonce);
  parts.clock = &clock;
  parts.log = &log;
  parts.schema = &schema;
  parts.data = &*data;
  parts.replica = &replica;
  parts.trainer = &trainer;
  parts.control = control.get();
  parts.exchange = exchange.get();
  parts.policy = &policy;
  parts.donor = &donor;
  parts.checkpointer = checkpointer.get();
  parts.store = &store;
  parts.composition = *composition;
  parts.length = {config.run.epochs, config.run.steps};
  parts.schema_hash = schema_hash;
  parts.model_json = model_json(config, *data);
  parts.bulk_address = bulk ? bulk->bound_address() : "";
  parts.seed = random.fork("control loop").next();
  if (*restored) parts.restored = (*restored)->facts;
  parts.others_samples = &listener.others_samples;
  parts.length_samples = &listener.length_samples;
  parts.others_steps = &listener.others_steps;

  // The HTTP address is part of what others are told, so it is bound before the loop makes its record.
  class LateView final : public monitoring::HttpHandler {
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
  } late;
  std::unique_ptr<monitoring::HttpServer> http;
  {
    auto started = monitoring::HttpServer::start({config.node.http, dir + "/control.sock", {}}, late, clock);
    if (!started) return refuse(log, started.error());
    http = std::move(*started);
  }
  parts.http_address = http->address();
  write_text(dir + "/http", http->address());

  ControlLoop loop(std::move(parts), [&metrics, &listener](const gossip::ExchangeEvent& event) {
    listener.on_exchange(event);
    if (event.kind == gossip::ExchangeEvent::Kind::kCompletedInitiator)
      metrics.observe_exchange(to_seconds(event.duration), event.staleness_steps);
  });
  loop_pointer = &loop;
  listener.loop = &loop;
  listener.length_steps = config.run.steps;
  NodeViewAdapter view(config, loop, trainer, schema_hash, clock, step_log.get());
  monitoring::Routes routes(view, metrics);
  late.routes = &routes;

  trainer.start();
  if (*restored) {
    resume_from(trainer, std::move((*restored)->state));
    restored->reset();
  }
  if (exchange) exchange->start();
  int code = 0;
  {
    const SignalWatch signals(loop);
    announce("name=" + config.node.name + " id=" + identity->id().hex() + " address=" +
             (control ? control->bound_address() : "-") + " http=" + http->address() + "\n");
    code = loop.run();
    http.reset();
    trainer.stop();
    if (exchange) exchange->stop();
    checkpointer.reset();  // what it has begun is finished while the loop it reports to is still there
  }
  if (const auto known = loop.incarnation_to_pass()) {
    if (const auto raised = next_incarnation(dir, *known); !raised) return refuse(log, raised.error());
    return kStartAgain;
  }
  return code;
}

}  // namespace kith::node
