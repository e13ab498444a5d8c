#include "node/cli/doctor_probe.h"

#include <cmath>
#include <cstring>

#include "node/config/version.h"
#include "node/identity/identity.h"
#include "node/mesh/cluster_key.h"
#include "node/mesh/mesh_handshake.h"

namespace kith::node {
namespace {

std::uint64_t random_seed() {
  const schema::Nonce nonce = random_nonce();
  std::uint64_t seed = 0;
  std::memcpy(&seed, nonce.data(), sizeof seed);
  return seed;
}

// Says as little as a HELLO may.
class ProbePolicy final : public HandshakePolicy {
 public:
  ProbePolicy(const Identity& identity, const Clock& clock, std::uint16_t dial_back_port)
      : clock_(clock), dial_back_port_(dial_back_port) {
    record_.id = identity.id();
    record_.incarnation = 1;
    record_.name = "kith-doctor";
    record_.loss = record_.accuracy = std::nan("");
    record_.version_text = version();
    sign_record(identity, record_);
  }
  // Made anew for the greeting and for the proof: the last one counts.
  schema::Hello make_hello(schema::Plane) override {
    sent_ = clock_.now();
    schema::Hello hello;
    hello.record = record_;
    hello.probe = true;
    hello.dial_back_port = dial_back_port_;
    return hello;
  }
  // Nobody dials a probe.
  schema::Welcome make_welcome(schema::Plane, const schema::Hello&) override { return {}; }
  std::optional<schema::Reject> judge(const schema::Hello&) override { return schema::Reject{}; }
  [[nodiscard]] TimePoint sent() const { return sent_; }

 private:
  const Clock& clock_;
  const std::uint16_t dial_back_port_;
  schema::MemberRecord record_;
  TimePoint sent_;
};

}  // namespace

struct Probe::Impl {
  Impl(const ClusterKey* key, std::uint16_t dial_back_port)
      : identity(Identity::ephemeral(random_seed())),
        policy(identity, clock, dial_back_port),
        mesh(settings(key), identity, policy, clock, Random(random_seed()), log) {}

  static MeshSettings settings(const ClusterKey* key) {
    MeshSettings settings = plane_settings(schema::Plane::kControl);
    settings.key = key;
    settings.probe_interval = std::chrono::seconds(1);
    settings.links_max = 1;
    return settings;
  }

  SystemClock clock;
  NullLog log;
  Identity identity;
  ProbePolicy policy;
  Mesh mesh;
  std::optional<schema::DialBack> dialled_back;
  double wall_seconds = 0, took_seconds = 0;
};

Probe::Probe(const std::string& address, const ClusterKey* key, std::uint16_t dial_back_port)
    : impl_(std::make_unique<Impl>(key, dial_back_port)) {
  impl_->mesh.dial(address);
}
Probe::~Probe() = default;

Probe::Outcome Probe::greet(Duration patience) {
  Outcome outcome;
  const TimePoint began = impl_->clock.now(), deadline = began + patience;
  while (impl_->clock.now() < deadline) {
    for (MeshEvent& event : impl_->mesh.poll(deadline, -1)) {
      if (auto* up = std::get_if<PeerUp>(&event); up != nullptr && up->welcome) {
        impl_->wall_seconds = impl_->clock.wall_seconds();
        impl_->took_seconds = to_seconds(impl_->clock.now() - impl_->policy.sent());
        outcome.welcome = std::move(up->welcome);
      } else if (auto* refused = std::get_if<Refused>(&event)) {
        outcome.reject = std::move(refused->reject);
      } else if (const auto* failed = std::get_if<DialFailed>(&event)) {
        outcome.trouble = failed->why;
      } else if (const auto* received = std::get_if<Received>(&event)) {
        if (const auto* answer = std::get_if<schema::DialBack>(&received->message))
          impl_->dialled_back = *answer;
      }
    }
    if (outcome.welcome || outcome.reject) break;
    // A connection that was refused by its key once will be so again.
    if (!outcome.trouble.empty() && impl_->clock.now() - began > patience / 2) break;
  }
  return outcome;
}

std::optional<schema::DialBack> Probe::dial_back(Duration patience) {
  const TimePoint deadline = impl_->clock.now() + patience;
  while (!impl_->dialled_back && impl_->clock.now() < deadline)
    for (const MeshEvent& event : impl_->mesh.poll(deadline, -1))
      if (const auto* received = std::get_if<Received>(&event))
        if (const auto* answer = std::get_if<schema::DialBack>(&received->message))
          impl_->dialled_back = *answer;
  return impl_->dialled_back;
}

double Probe::welcome_wall_seconds() const { return impl_->wall_seconds; }
double Probe::welcome_took_seconds() const { return impl_->took_seconds; }

}  // namespace kith::node
