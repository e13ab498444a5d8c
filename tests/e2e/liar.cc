#include "tests/e2e/liar.h"

#include <stdexcept>

#include "node/setup/run_setup.h"

namespace kith::e2e {
namespace {

using namespace node;

template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

RunIdentity run_of(const Config& config) {
  const auto composition = must(gossip::compose(config.method.name, method_overrides(config)));
  const auto data = must(compute::load_data(data_spec(config)));
  const auto model = must(compute::make_model(model_spec(config, data), optimizer_spec(config)));
  return {config.cluster.name, config.run.id, model->schema().hash(config.exchange.fragment_bytes),
          run_facts(config, composition, data)};
}

}  // namespace

Liar::Liar(const std::string& config_file, const std::string& folder, const std::string& seed,
           const schema::MemberRecord& figures, const std::vector<Flag>& flags) {
  const Config config = must(load_config(config_file, flags, {}));
  identity_ = std::make_unique<Identity>(must(Identity::load_or_create(folder)));
  run_digest_ = run_digest(config.cluster.name, config.run.id);
  policy_ = std::make_unique<RunPolicy>(run_of(config), identity_->id());
  MeshSettings settings;
  settings.listen = "127.0.0.1:0";
  settings.probe_interval = config.cluster.preset.probe_interval;
  mesh_ = std::make_unique<Mesh>(settings, *identity_, *policy_, clock_, Random(1), log_);
  if (const Status bound = mesh_->bind(false); !bound)
    throw std::runtime_error(bound.error().message);
  schema::MemberRecord own = figures;
  own.id = identity_->id();
  own.incarnation = Incarnation{1} << 32;
  own.boot_nonce = 1;
  own.name = "liar";
  own.control_address = mesh_->bound_address();
  own.bulk_address = "127.0.0.1:9";
  own.run_state = schema::RunState::kTraining;
  roster_ = std::make_unique<Roster>(RosterSettings{settings.probe_interval, {}, 512}, *identity_,
                                     own, mesh_.get(), clock_, log_, Random(2));
  roster_->set_own(own);
  policy_->set_record(roster_->own());
  policy_->set_book(roster_.get());
  roster_->seek(seed);
  thread_ = std::thread([this] { run(); });
}

void Liar::run() {
  while (!stopping_) {
    roster_->turn();
    if (declaring_) declare();
    for (MeshEvent& event : mesh_->poll(
             std::min(roster_->next_deadline(), clock_.now() + std::chrono::milliseconds(50)),
             -1)) {
      if (const auto* up = std::get_if<PeerUp>(&event)) roster_->on_peer_up(*up);
      if (const auto* down = std::get_if<PeerDown>(&event)) roster_->on_peer_down(*down);
      if (const auto* received = std::get_if<Received>(&event))
        roster_->on_message(received->from, received->message);
    }
  }
}

void Liar::declare() {
  schema::Final final;
  final.declarer = identity_->id();
  final.run_digest = run_digest_;
  final.root.bytes[0] = 1;
  roster_->send(final, [](const auto&) { return true; });
  ++declared_;
}

Liar::~Liar() {
  stopping_ = true;
  thread_.join();
}

}  // namespace kith::e2e
